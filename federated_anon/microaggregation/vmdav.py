"""V-MDAV: MDAV with groups that grow while a close record has no closer company."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from federated_anon.arrays import Labels, Points
from federated_anon.errors import DataRefused
from federated_anon.microaggregation.compiled import compiled
from federated_anon.microaggregation.estimator import Microaggregation
from federated_anon.microaggregation.mdav import choose, farthest, measure
from federated_anon.microaggregation.units import nearest_unit


@dataclass
class VariableMDAV(Microaggregation):
    """Variable-size MDAV: distances to the mean of the table are taken once, groups reach k to 2k-1 records.

    A group accepts its nearest free record if that is nearer to it than ``gamma`` times the distance from the
    record to the next free one: 0.2 suits scattered records, 1.1 clustered ones. The fewer than k records
    left at the end join the group of the nearest mean. O(n^2) time, O(n) memory.
    Solanas & Martinez-Balleste (2006), COMPSTAT, 917-925.
    """

    gamma: float = 0.2

    def _group(self, points: Points) -> Labels:
        if not self.gamma >= 0:
            raise DataRefused(f"gamma must not be negative, got {self.gamma}")
        return vmdav_columns(np.ascontiguousarray(points.T), self.k, float(self.gamma))


@compiled
def vmdav_columns(columns: Points, k: int, gamma: float) -> Labels:
    """V-MDAV of (d, n) columns; free records stay packed in front, taken ones behind them."""
    width, n = columns.shape
    free, index, rank, near = columns.copy(), np.arange(n), np.empty(n), np.empty(n)
    labels, taken, group, left = np.full(n, -1), np.empty(k, np.int64), 0, n
    means = np.zeros((n // k, width))
    measure(free, n, columns.sum(axis=1) / n, rank)
    while left >= k:
        seed = farthest(rank, index, left)
        measure(free, left, free[:, seed].copy(), near)
        choose(near, index, left, seed, taken)
        start = left
        for position in np.sort(taken)[::-1]:
            left = withdraw(free, index, rank, near, position, left)
        left = extend(free, index, rank, near, start, left, k, gamma)
        for position in range(left, start):
            labels[index[position]] = group
            means[group] += free[:, position] / (start - left)
        group += 1
    alive = np.arange(group)
    for position in range(left):
        labels[index[position]] = nearest_unit(free[:, position].copy(), means, alive)
    return labels


@compiled
def extend(
    free: Points,
    index: Labels,
    rank: Points,
    near: Points,
    start: int,
    left: int,
    k: int,
    gamma: float,
) -> int:
    """Let the group at positions left..start accept records while the gain test holds."""
    apart = np.empty(start)
    near[:left] = np.inf
    for position in range(left, start):
        measure(free, left, free[:, position].copy(), apart)
        near[:left] = np.minimum(near[:left], apart[:left])
    while start - left < 2 * k - 1 and left > 1:
        candidate = int(np.argmin(near[:left]))
        measure(free, left, free[:, candidate].copy(), apart)
        apart[candidate] = np.inf
        if not np.sqrt(near[candidate]) < gamma * np.sqrt(apart[:left].min()):
            break
        near[:left] = np.minimum(near[:left], apart[:left])
        left = withdraw(free, index, rank, near, candidate, left)
    return left


@compiled
def withdraw(
    free: Points,
    index: Labels,
    rank: Points,
    near: Points,
    position: int,
    left: int,
) -> int:
    """Exchange a position with the last free one; gives the number of free records."""
    left -= 1
    for column in range(len(free)):
        free[column, position], free[column, left] = free[column, left], free[column, position]
    index[position], index[left] = index[left], index[position]
    rank[position], rank[left] = rank[left], rank[position]
    near[position], near[left] = near[left], near[position]
    return left
