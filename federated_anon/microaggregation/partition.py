"""A partition under change: members, counts and sums of every group, kept in step record by record."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from federated_anon.arrays import Labels, Points
from federated_anon.microaggregation.compiled import compiled, vectorised


class Partition(NamedTuple):
    """Arrays of a partition that compiled loops edit in place; ``label`` -1 is a record in no group."""

    points: Points  # (n, d)
    label: Labels  # (n,)
    place: Labels  # (n,) position of a record among the members of its group
    size: Labels  # (g,)
    member: Labels  # (g, capacity)
    sums: Points  # (g, d)


def partition_of(points: Points, labels: Labels, k: int, capacity: int = 0) -> Partition:
    """Partition with room for the n // k groups that k allows, and for 2k - 1 records (or more) in each."""
    groups = max(int(labels.max()) + 1, len(points) // k)
    capacity = max(capacity, 2 * k - 1, int(np.bincount(labels).max()))
    empty = Partition(
        np.ascontiguousarray(points, dtype=float),
        np.full(len(points), -1),
        np.zeros(len(points), np.int64),
        np.zeros(groups, np.int64),
        np.zeros((groups, capacity), np.int64),
        np.zeros((groups, points.shape[1])),
    )
    fill(empty, labels)
    return empty


@compiled
def fill(partition: Partition, labels: Labels) -> None:
    """Put every record in its group."""
    for record in range(len(labels)):
        transfer(partition, record, labels[record])


@compiled
def transfer(partition: Partition, record: int, target: int) -> None:
    """Take a record out of its group and put it in ``target``; -1 is no group."""
    source = partition.label[record]
    if source >= 0:
        last = partition.size[source] - 1
        moved = partition.member[source, last]
        partition.member[source, partition.place[record]] = moved
        partition.place[moved] = partition.place[record]
        partition.size[source] = last
        total(partition, source)
    partition.label[record] = target
    if target >= 0:
        partition.member[target, partition.size[target]] = record
        partition.place[record] = partition.size[target]
        partition.size[target] += 1
        total(partition, target)


@vectorised
def total(partition: Partition, group: int) -> None:
    """Sum a group afresh: long searches would otherwise drift by rounding."""
    row = partition.sums[group]
    row[:] = 0.0
    for slot in range(partition.size[group]):
        record = partition.points[partition.member[group, slot]]
        for column in range(len(row)):
            row[column] += record[column]


@vectorised
def group_error(partition: Partition, group: int) -> float:
    """SSE of one group."""
    error, count = 0.0, partition.size[group]
    for slot in range(count):
        record = partition.points[partition.member[group, slot]]
        for column in range(len(record)):
            gap = record[column] - partition.sums[group, column] / count
            error += gap * gap
    return error
