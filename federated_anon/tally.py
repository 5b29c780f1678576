"""How often each value occurs in each group: what every per-group measure of a column starts from.

Values are ranked once (declared level order, else sorted order), so that ties, medians and cumulative
distances mean the same everywhere. Missing is a value like any other and always ranks last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from federated_anon.arrays import Counts, Labels
from federated_anon.errors import DataRefused

Values: TypeAlias = pa.Array | pa.ChunkedArray


@dataclass(frozen=True, slots=True)
class Ranks:
    """Values as positions in an ordered list of the distinct ones; position ``len(distinct)`` is missing."""

    positions: Labels
    distinct: pa.Array


@dataclass(frozen=True, slots=True)
class Tally:
    """Occurrences as sparse triples sorted by group, then level; only pairs that occur are listed."""

    group: Labels
    level: Labels
    count: Counts
    sizes: Counts
    """(g,): records per group."""
    totals: Counts
    """(m,): records per level over the whole column, missing last if it occurs."""


def plain(values: Values) -> pa.Array:
    """The same values as one array, without dictionary encoding and in a type that can be sorted."""
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if pt.is_dictionary(whole.type):
        return plain(whole.cast(whole.type.value_type))
    if pt.is_large_string(whole.type) or pt.is_string_view(whole.type):
        return whole.cast(pa.large_string())
    return whole.cast(pa.float32()) if pt.is_float16(whole.type) else whole


def is_present(values: Values) -> np.ndarray:
    """(n,) of booleans: whether the value is there."""
    return np.asarray(pc.is_valid(values).to_numpy(zero_copy_only=False), dtype=bool)


def group_sizes(labels: Labels) -> Counts:
    """(g,): records per group; every group from 0 to the highest must have one.

    Raises ``DataRefused`` for labels below 0 or a group without records: its measures would mean nothing.
    """
    if len(labels) and labels.min() < 0:
        raise DataRefused(f"groups are counted from 0, the lowest label is {labels.min()}")
    sizes = np.bincount(labels, minlength=1)
    if empty := int((sizes == 0).sum()):
        raise DataRefused(f"{empty} of {len(sizes)} groups have no records")
    return sizes


def ranked(values: Values, levels: Sequence[str] = ()) -> Ranks:
    """Values ranked in the order of ``levels`` where declared, otherwise in their sorted order."""
    whole = plain(values)
    distinct = pc.unique(whole).drop_null()
    distinct = distinct.take(pc.sort_indices(distinct))
    if levels:
        distinct = distinct.take(_level_order(distinct, levels))
    positions = pc.index_in(whole, value_set=distinct).fill_null(len(distinct))
    return Ranks(positions.to_numpy(zero_copy_only=False).astype(np.int64), distinct)


def _level_order(distinct: pa.Array, levels: Sequence[str]) -> pa.Array:
    """Positions of the distinct values in declared order; undeclared ones follow, sorted."""
    declared = pc.index_in(distinct.cast(pa.string()), value_set=pa.array(levels, pa.string()))
    return pc.sort_indices(declared.fill_null(len(levels)))


def tally(positions: Labels, labels: Labels) -> Tally:
    """Count every (group, level) pair that occurs, by one sort: O(n log n) whatever the number of levels."""
    if len(positions) != len(labels):
        raise DataRefused(f"one group per value is needed, got {len(labels)} groups for {len(positions)} values")
    sizes, width = group_sizes(labels), int(positions.max()) + 1
    keys = np.sort(labels.astype(np.int64) * width + positions)
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    count = np.diff(starts, append=len(keys))
    totals = np.bincount(positions)
    return Tally(keys[starts] // width, keys[starts] % width, count, sizes, totals)


def first_pair(counted: Tally) -> Labels:
    """(g,): where each group's pairs begin."""
    return np.searchsorted(counted.group, np.arange(len(counted.sizes)))
