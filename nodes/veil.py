"""Representatives, with noise on the few groups whose exact means would give a record away.

The coordinator knows the means of cells and of groups; a record that is a bridge between the two partitions
would follow from them exactly (``federated_anon.bridges``). For the fewest groups that break every such chain,
each mean gets normal noise of the group's own standard deviation divided by its size: on the sum, which is what
the chain uses, as much as the group's own spread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from federated_anon.arrays import Labels
from federated_anon.bridges import groups_to_veil
from federated_anon.columns import NUMERIC, Column
from federated_anon.crypto.agreement import derive
from federated_anon.crypto.signing import Identity
from federated_anon.representatives import representatives


@dataclass(frozen=True, slots=True)
class Veiled:
    """Representatives, one row per group, and how many groups got noise."""

    table: pa.Table
    groups: int


def veiled_representatives(
    table: pa.Table, columns: Sequence[Column], groups: Labels, cells: Labels, identity: Identity
) -> Veiled:
    """Representatives of all groups; the noise is drawn from the holder's own key and the groups, so runs repeat."""
    plain = representatives(table, columns, groups)
    chosen = groups_to_veil(cells, groups)
    numeric = [column for column in columns if column.kind in NUMERIC]
    if not chosen.any() or not numeric:
        return Veiled(plain, 0)
    seed = derive(identity.secret, "veil", _digest(groups))
    rng = np.random.default_rng(np.frombuffer(seed, dtype=np.uint64))
    for column in numeric:
        noisy = _with_noise(plain[column.name], table[column.name], groups, chosen, rng)
        plain = plain.set_column(plain.column_names.index(column.name), column.name, noisy)
    return Veiled(plain, int(chosen.sum()))


def _digest(groups: Labels) -> str:
    return hashlib.sha256(np.ascontiguousarray(groups, dtype="<i8").tobytes()).hexdigest()


def _with_noise(
    means: pa.ChunkedArray,
    values: pa.ChunkedArray,
    groups: Labels,
    chosen: np.ndarray,
    rng: np.random.Generator,
) -> pa.Array:
    """``means`` with noise on the chosen groups, in the column's own type; missing stays missing."""
    noise = rng.standard_normal(len(chosen)) * _spread(values, groups) * chosen
    integral = _integral(means.type)
    flat = means.combine_chunks()
    if integral is None:
        moved = pc.add(flat.cast(pa.float64()), pa.array(noise))
        return moved.cast(means.type)
    shifted = pc.add(flat.cast(integral).cast(pa.int64()), pa.array(np.rint(noise).astype(np.int64)))
    return shifted.cast(integral).cast(means.type)


def _integral(kind: pa.DataType) -> pa.DataType | None:
    """The integer type behind integers, dates and timestamps; None for floating point."""
    if pa.types.is_integer(kind):
        return kind
    if pa.types.is_date32(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_date64(kind) or pa.types.is_timestamp(kind) else None


def _spread(values: pa.ChunkedArray, groups: Labels) -> np.ndarray:
    """Standard deviation divided by size, per group, over the present values."""
    integral = _integral(values.type)
    numbers = (values.cast(integral) if integral else values).cast(pa.float64(), safe=False)
    present = pc.is_valid(values).to_numpy()
    x = np.where(present, pc.fill_null(numbers, 0.0).to_numpy(), 0.0)
    count = np.maximum(np.bincount(groups, present), 1)
    mean = np.bincount(groups, x) / count
    variance = np.bincount(groups, np.where(present, (x - mean[groups]) ** 2, 0.0)) / count
    spread: np.ndarray = np.sqrt(variance) / count
    return spread
