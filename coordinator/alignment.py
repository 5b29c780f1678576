"""Which people all holders have in common, from their pseudonyms alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from federated_anon.crypto.compact import unpacked
from federated_anon.crypto.matching import common_positions
from federated_anon.crypto.pseudonyms import PSEUDONYM_BITS
from federated_anon.errors import MessageRefused


@dataclass(frozen=True, slots=True)
class Overlap:
    """The common people: for each holder their positions in its sorted pseudonyms, in one common order."""

    records: int
    positions: Mapping[str, np.ndarray]
    sizes: Mapping[str, int]


def matched(pseudonyms: Mapping[str, bytes], width: int = PSEUDONYM_BITS) -> Overlap:
    """The intersection of all holders' pseudonyms of ``width`` bits, each set as ``compact.packed`` made it."""
    values = {name: _opened(name, content, width) for name, content in pseudonyms.items()}
    positions = common_positions(values)
    records = len(next(iter(positions.values())))
    return Overlap(records, positions, {name: len(own) for name, own in values.items()})


def _opened(name: str, content: bytes, width: int) -> np.ndarray:
    try:
        return unpacked(content, width)
    except MessageRefused as error:
        raise MessageRefused(f"the pseudonyms of '{name}' cannot be used: {error}") from None
