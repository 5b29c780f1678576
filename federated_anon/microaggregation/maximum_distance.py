"""MD: groups of k around the two records farthest from each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from federated_anon.arrays import Labels, Points
from federated_anon.microaggregation.compiled import compiled
from federated_anon.microaggregation.estimator import Microaggregation
from federated_anon.microaggregation.mdav import choose, measure, remove


@dataclass
class MaximumDistance(Microaggregation):
    """Maximum distance: the two farthest free records each take their k-1 nearest, the last group has k to
    2k-1.

    Each record remembers its farthest free record. Records only leave, so what it remembers never falls
    short, and is measured anew only when it stands first and its partner is gone: about O(n^2) in place of
    O(n^3 / k).
    Domingo-Ferrer & Mateo-Sanz (2002), IEEE TKDE 14(1), 189-201.
    """

    def _group(self, points: Points) -> Labels:
        return maximum_distance_columns(np.ascontiguousarray(points.T), self.k)


@compiled
def maximum_distance_columns(columns: Points, k: int) -> Labels:
    """MD of (d, n) columns; ``reach`` and ``partner`` are by record, the other arrays by packed position."""
    n = columns.shape[1]
    free, index, distance, spare = columns.copy(), np.arange(n), np.empty(n), np.zeros(len(columns))
    labels, nearest, group, left = np.full(n, -1), np.empty(k, np.int64), 0, n
    reach, partner = np.empty(n), np.empty(n, np.int64)
    for position in range(n):
        look(free, index, distance, position, n, reach, partner)
    while left >= 2 * k:
        r = most_distant(free, index, distance, left, labels, reach, partner)
        other = partner[index[r]]
        for turn in range(2):
            seed = r if turn == 0 else position_of(index, left, other)
            if seed < 0 or left < 2 * k:
                break
            measure(free, left, free[:, seed].copy(), distance)
            choose(distance, index, left, seed, nearest)
            left = remove(free, index, distance, spare, labels, nearest, group, left)
            group += 1
    labels[index[:left]] = group
    return labels


@compiled
def look(
    free: Points,
    index: Labels,
    distance: Points,
    position: int,
    left: int,
    reach: Points,
    partner: Labels,
) -> None:
    """Remember the farthest free record of the one at ``position``; ties to the first record."""
    measure(free, left, free[:, position].copy(), distance)
    most, record = -1.0, index[position]
    for i in range(left):
        if i != position and (distance[i] > most or (distance[i] == most and index[i] < partner[record])):
            most, partner[record] = distance[i], index[i]
    reach[record] = most


@compiled
def most_distant(
    free: Points,
    index: Labels,
    distance: Points,
    left: int,
    labels: Labels,
    reach: Points,
    partner: Labels,
) -> int:
    """Position of a record of the farthest pair; ties to the first record."""
    while True:
        best = 0
        for i in range(1, left):
            here, there = index[i], index[best]
            if reach[here] > reach[there] or (reach[here] == reach[there] and here < there):
                best = i
        if labels[partner[index[best]]] < 0:
            return best
        look(free, index, distance, best, left, reach, partner)


@compiled
def position_of(index: Labels, left: int, record: int) -> int:
    """Where a record stands among the free ones, or -1."""
    for position in range(left):
        if index[position] == record:
            return position
    return -1
