"""Which people all holders have in common, from their pseudonyms alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from federated_anon.crypto.pseudonyms import PSEUDONYM_BYTES
from federated_anon.errors import MessageRefused


@dataclass(frozen=True, slots=True)
class Overlap:
    """The common people: for each holder their positions in its sorted pseudonyms, in one common order."""

    records: int
    positions: Mapping[str, np.ndarray]
    sizes: Mapping[str, int]


def matched(pseudonyms: Mapping[str, bytes]) -> Overlap:
    """The intersection of all holders' pseudonyms; each must come sorted and without repetition."""
    values = {name: _checked(name, content) for name, content in pseudonyms.items()}
    common = reduce(_intersection, values.values())
    positions = {name: _positions(common, own) for name, own in values.items()}
    return Overlap(len(common), positions, {name: len(own) for name, own in values.items()})


def _intersection(left: pa.Array, right: pa.Array) -> pa.Array:
    return left.filter(pc.is_in(left, right))


def _positions(common: pa.Array, own: pa.Array) -> np.ndarray:
    return pc.index_in(common, own).to_numpy(zero_copy_only=False).astype(np.int32)


def _checked(name: str, content: bytes) -> pa.Array:
    if len(content) % PSEUDONYM_BYTES:
        raise MessageRefused(f"the pseudonyms of '{name}' are not {PSEUDONYM_BYTES} bytes each")
    parts = np.frombuffer(content, dtype=">u8").reshape(-1, 2).astype(np.uint64)
    high, low = parts[:, 0], parts[:, 1]
    rises = (high[1:] > high[:-1]) | ((high[1:] == high[:-1]) & (low[1:] > low[:-1]))
    if not rises.all():
        raise MessageRefused(f"the pseudonyms of '{name}' are not sorted, or one stands there twice")
    kind = pa.binary(PSEUDONYM_BYTES)
    return pa.Array.from_buffers(kind, len(parts), [None, pa.py_buffer(content)])
