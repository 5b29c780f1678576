"""TFRP: groups taken in turn from two fixed corners of the table, then groups dissolved where that pays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from federated_anon.arrays import Labels, Points
from federated_anon.microaggregation.compiled import compiled
from federated_anon.microaggregation.estimator import Microaggregation
from federated_anon.microaggregation.loss import compact
from federated_anon.microaggregation.mdav import choose, farthest, measure, remove
from federated_anon.microaggregation.partition import Partition, group_error, partition_of, transfer
from federated_anon.microaggregation.split import split_large_groups
from federated_anon.microaggregation.units import nearest_unit


@dataclass
class TFRP(Microaggregation):
    """Two fixed reference points: the corners of the smallest and of the largest values of all columns.

    First stage: in turn, the free record farthest from one corner takes its k-1 nearest; the last fewer than
    k records join the nearest group. Second stage (``dissolve``): from the group of the largest error down, a
    group dissolves into the nearest others if the total error falls and none outgrows 4k-1. Groups of 2k and
    more are split at the end.
    Chang, Li & Huang (2007), Journal of Systems and Software 80(11), 1866-1878.
    """

    dissolve: bool = True

    def _group(self, points: Points) -> Labels:
        labels = corner_groups(np.ascontiguousarray(points.T), self.k)
        if self.dissolve:
            partition = partition_of(points, labels, self.k, capacity=4 * self.k - 1)
            dissolve_groups(partition)
            labels = compact(partition.label)
        return split_large_groups(points, labels, self.k)


@compiled
def corner_groups(columns: Points, k: int) -> Labels:
    """First stage on (d, n) columns."""
    width, n = columns.shape
    free, index, distance, spare = columns.copy(), np.arange(n), np.empty(n), np.zeros(width)
    labels, nearest, group, left = np.empty(n, np.int64), np.empty(k, np.int64), 0, n
    corners, means = np.empty((2, width)), np.zeros((n // k, width))
    for column in range(width):
        corners[0, column], corners[1, column] = columns[column].min(), columns[column].max()
    while left >= k:
        measure(free, left, corners[group % 2], distance)
        seed = farthest(distance, index, left)
        measure(free, left, free[:, seed].copy(), distance)
        choose(distance, index, left, seed, nearest)
        for position in nearest:
            means[group] += free[:, position] / k
        left = remove(free, index, distance, spare, labels, nearest, group, left)
        group += 1
    alive = np.arange(group)
    for i in range(left):
        labels[index[i]] = nearest_unit(free[:, i].copy(), means, alive)
    return labels


@compiled
def dissolve_groups(partition: Partition) -> None:
    """Second stage: try every group once, from the largest error down."""
    groups = len(partition.size)
    errors = np.array([group_error(partition, group) for group in range(groups)])
    means = np.empty_like(partition.sums)
    for group in range(groups):
        means[group] = partition.sums[group] / partition.size[group]
    for group in np.argsort(-errors, kind="mergesort"):
        others = np.flatnonzero(partition.size)
        others = others[others != group]
        if len(others) == 0:
            return
        members = partition.member[group, : partition.size[group]].copy()
        targets = np.array([nearest_unit(partition.points[record], means, others) for record in members])
        touched = np.append(np.unique(targets), group)
        room = partition.member.shape[1] - partition.size
        if (np.bincount(targets, minlength=groups) > room).any():
            continue
        before = errors[touched].sum()
        for record, target in zip(members, targets):  # noqa: B905
            transfer(partition, record, target)
        after = 0.0
        for other in touched[:-1]:
            after += group_error(partition, other)
        if after >= before:
            for record in members:
                transfer(partition, record, group)
            continue
        errors[group] = 0.0
        for other in touched[:-1]:
            errors[other] = group_error(partition, other)
            means[other] = partition.sums[other] / partition.size[other]
