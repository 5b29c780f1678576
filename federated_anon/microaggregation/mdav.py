"""MDAV: groups of k around the records farthest from the middle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from federated_anon.arrays import Labels, Points
from federated_anon.microaggregation.compiled import compiled
from federated_anon.microaggregation.estimator import Microaggregation


@dataclass
class MDAV(Microaggregation):
    """Maximum distance to average vector, the textbook form: groups of exactly k, the last of k to 2k-1.

    While 3k records are left: r is the farthest from their mean, s the farthest from r, and each takes its
    k-1 nearest. Equal distances go to the record that comes first. O(n^2 / k) time, O(n) memory.
    Domingo-Ferrer & Torra (2005), Data Mining and Knowledge Discovery 11(2), 195-212.
    """

    def _group(self, points: Points) -> Labels:
        return mdav_labels(points, self.k)


def mdav_labels(points: Points, k: int) -> Labels:
    """MDAV of accepted points, without checks."""
    return mdav_columns(np.ascontiguousarray(points.T, dtype=float), k)


@compiled
def mdav_columns(columns: Points, k: int) -> Labels:
    """MDAV of (d, n) columns. Free records stay packed in front, so that a pass is a plain scan."""
    n = columns.shape[1]
    free, index, distance = columns.copy(), np.arange(n), np.empty(n)
    labels, nearest, group, left = np.empty(n, np.int64), np.empty(k, np.int64), 0, n
    total = columns.sum(axis=1)
    while left >= 2 * k:
        measure(free, left, total / left, distance)
        r = farthest(distance, index, left)
        measure(free, left, free[:, r].copy(), distance)
        choose(distance, index, left, r, nearest)
        left = remove(free, index, distance, total, labels, nearest, group, left)
        group += 1
        if left < 2 * k:
            break
        s = farthest(distance, index, left)
        measure(free, left, free[:, s].copy(), distance)
        choose(distance, index, left, s, nearest)
        left = remove(free, index, distance, total, labels, nearest, group, left)
        group += 1
    labels[index[:left]] = group
    return labels


@compiled
def measure(free: Points, left: int, centre: Points, out: Points) -> None:
    """Squared distances of the free records to ``centre``."""
    out[:left] = 0.0
    for column in range(len(free)):
        row, middle = free[column], centre[column]
        for i in range(left):
            gap = row[i] - middle
            out[i] += gap * gap


@compiled
def farthest(distance: Points, index: Labels, left: int) -> int:
    """Position of the largest distance; ties to the first record."""
    best = 0
    for i in range(1, left):
        if distance[i] > distance[best] or (distance[i] == distance[best] and index[i] < index[best]):
            best = i
    return best


@compiled
def choose(distance: Points, index: Labels, left: int, seed: int, nearest: Labels) -> None:
    """Fill ``nearest`` with the seed and its k-1 nearest positions; ties to the first record."""
    k, found = len(nearest), 1
    nearest[0] = seed
    worst = np.inf
    for i in range(left):
        if distance[i] > worst or i == seed:
            continue
        slot = min(found, k - 1)
        if found == k and not precedes(distance, index, i, nearest[k - 1]):
            continue
        while slot > 1 and precedes(distance, index, i, nearest[slot - 1]):
            nearest[slot] = nearest[slot - 1]
            slot -= 1
        nearest[slot] = i
        found = min(found + 1, k)
        if found == k:
            worst = distance[nearest[k - 1]]


@compiled
def precedes(distance: Points, index: Labels, a: int, b: int) -> bool:
    """Whether position a comes before position b: nearer, or as near and earlier in the table."""
    return bool(distance[a] < distance[b] or (distance[a] == distance[b] and index[a] < index[b]))


@compiled
def remove(
    free: Points,
    index: Labels,
    distance: Points,
    total: Points,
    labels: Labels,
    taken: Labels,
    group: int,
    left: int,
) -> int:
    """Label the taken positions and fill their holes from the end; gives the number of records left."""
    for position in np.sort(taken)[::-1]:
        labels[index[position]] = group
        left -= 1
        total -= free[:, position]
        free[:, position] = free[:, left]
        index[position] = index[left]
        distance[position] = distance[left]
    return left
