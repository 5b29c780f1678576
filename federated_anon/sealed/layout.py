"""Where the rows of a holder's table lie: in canonical order, and near those that are read with them.

A table may be larger than memory, in a file that the system pages in and out. So it is read and written from front to
back, a bucket at a time, and never one row here and one there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Labels, Points
from federated_anon.errors import DataRefused
from federated_anon.som.parallel import slices

BUCKET_BYTES = 1 << 26
"""Bytes of a table that are moved together."""

Empty = Callable[[tuple[int, int]], Points]
"""Where a new table is kept: ``np.empty`` in memory, or a holder's scratch file."""


def canonical_order(points: Points, private: NDArray[np.generic]) -> Labels:
    """Positions of the rows in the order of their values, equal rows by their private number.

    Column after column sorts the rows that all columns before it leave alike, so most columns are never looked at.
    """
    n = len(points)
    if private.shape != (n,) or len(np.unique(private)) != n:
        raise DataRefused(f"expected {n} private numbers, all different")
    rank: Labels = np.zeros(n, dtype=np.int64)
    tied: Labels = np.arange(n)
    for column in range(points.shape[1]):
        if len(tied) == 0:
            break
        tied = _refined(rank, tied, points[tied, column] + 0.0)
    return np.lexsort((private, rank))


def _refined(rank: Labels, tied: Labels, values: Points) -> Labels:
    """Sort rows of equal rank by ``values``, and give those that are still alike; a rank is its first row's place."""
    order = np.lexsort((values, rank[tied]))
    tied, values = tied[order], values[order]
    before = rank[tied]
    is_first = np.concatenate([[True], before[1:] != before[:-1]])
    is_new = is_first.copy()
    is_new[1:] |= values[1:] != values[:-1]
    places = np.arange(len(tied))
    rank[tied] = before + _latest(places, is_new) - _latest(places, is_first)
    is_alone = is_new & np.append(is_new[1:], True)
    return np.sort(tied[~is_alone])


def _latest(places: Labels, marked: NDArray[np.bool_]) -> Labels:
    """(n,): the last place up to each that is marked."""
    return np.maximum.accumulate(np.where(marked, places, 0))


def gathered(points: Points, order: Labels, empty: Empty) -> Points:
    """``points[order]``, for a permutation ``order``, in an array of ``empty``.

    A table of more than a bucket is dealt to buckets of consecutive places as it is read from front to back; then each
    bucket is put in order by itself. So every byte is read and written twice, and none is sought.
    """
    out = empty((len(points), points.shape[1]))
    size = max(1, BUCKET_BYTES // max(1, points.itemsize * points.shape[1]))
    dealt = np.argsort(inverse(order) // size, kind="stable")
    place = inverse(dealt)
    for rows in slices(len(points), max(1, size // 8)):
        out[place[rows]] = points[rows]
    for rows in slices(len(points), size):
        out[rows] = out[rows][place[order[rows]] - rows.start]
    return np.asarray(out)


def inverse(order: Labels) -> Labels:
    """(n,): the position of each record in a permutation."""
    found = np.empty(len(order), dtype=np.int64)
    found[order] = np.arange(len(order))
    return found
