"""Refine: move and swap records between neighbouring groups while that lowers the loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Labels, Points
from federated_anon.microaggregation.compiled import compiled, vectorised
from federated_anon.microaggregation.estimator import Microaggregation
from federated_anon.microaggregation.loss import compact
from federated_anon.microaggregation.neighbours import nearest_records
from federated_anon.microaggregation.partition import Partition, partition_of, transfer
from federated_anon.microaggregation.split import split_large_groups, starting_labels

LEAST_GAIN = 1e-12
NEIGHBOURS = 10


@dataclass
class Refine(Microaggregation):
    r"""Descent on SSE from a given partition (``start``), or from MDAV, with sizes kept in k..2k-1.

    Moving x from group a to b changes SSE by
    :math:`\frac{n_b}{n_b+1} \lVert x - c_b \rVert^2 - \frac{n_a}{n_a-1} \lVert x - c_a \rVert^2`, swapping x
    and y by :math:`2 (c_b - c_a) \cdot (y - x) - \lVert y - x \rVert^2 (1/n_a + 1/n_b)`. Each record tries
    the groups of its
    ``neighbours`` nearest records and takes the best change, until none is left.
    """

    start: Labels | None = None
    neighbours: int = NEIGHBOURS

    def _group(self, points: Points) -> Labels:
        return descent(points, starting_labels(points, self.start, self.k), self.k, self.neighbours)


def descent(points: Points, labels: Labels, k: int, neighbours: int = NEIGHBOURS) -> Labels:
    """Descent from ``labels``, whose groups of 2k or more records are split first."""
    partition = partition_of(points, split_large_groups(points, labels, k), k)
    settle(partition, nearest_records(points, neighbours), k)
    return compact(partition.label)


@compiled
def settle(partition: Partition, near: Labels, k: int) -> float:
    """Sweep over all records until nothing improves; gives the change of SSE."""
    n, change = len(partition.label), 0.0
    queue, queued = np.empty(n, np.int64), np.zeros(n, np.bool_)
    log = np.empty((0, 2), np.int64)
    while True:
        queue[:] = np.arange(n)
        queued[:] = True
        gained = descend(partition, near, k, queue, queued, n, log, 0)[0]
        change += gained
        if gained > -LEAST_GAIN:
            return change


@compiled
def descend(
    partition: Partition,
    near: Labels,
    k: int,
    queue: Labels,
    queued: NDArray[np.bool_],
    waiting: int,
    log: Labels,
    logged: int,
) -> tuple[float, int]:
    """Serve the records waiting in ``queue`` and those their changes wake; log (record, old group) if there
    is room.

    Gives the change of SSE and the length of the log. A full log ends the descent: the caller then undoes it.
    """
    head, change, size = 0, 0.0, len(queue)
    while waiting > 0:
        record = queue[head]
        head, waiting = (head + 1) % size, waiting - 1
        queued[record] = False
        gain, target, other = best_change(partition, near, k, record)
        if gain > -LEAST_GAIN or (len(log) and logged + 2 > len(log)):
            continue
        source = partition.label[record]
        transfer(partition, record, -1)
        if other >= 0:
            transfer(partition, other, source)
        transfer(partition, record, target)
        change += gain
        if len(log):
            log[logged, 0], log[logged, 1] = record, source
            logged += 1
            if other >= 0:
                log[logged, 0], log[logged, 1] = other, target
                logged += 1
        for group in (source, target):
            for slot in range(partition.size[group]):
                woken = partition.member[group, slot]
                if not queued[woken]:
                    queued[woken] = True
                    queue[(head + waiting) % size] = woken
                    waiting += 1
    return change, logged


@vectorised
def best_change(partition: Partition, near: Labels, k: int, record: int) -> tuple[float, int, int]:
    """The move (other = -1) or swap that lowers SSE most, as (change, group, other)."""
    label, count = partition.label, partition.size
    a = label[record]
    axis = np.empty(partition.points.shape[1])
    best, target, partner = 0.0, -1, -1
    for t in range(near.shape[1]):
        b = label[near[record, t]]
        if b == a or tried(label, near, record, t):
            continue
        change = moved(partition, record, a, b)
        if change < best and count[a] > k and count[b] < 2 * k - 1:
            best, target, partner = change, b, -1
        for column in range(len(axis)):
            axis[column] = partition.sums[b, column] / count[b] - partition.sums[a, column] / count[a]
        for slot in range(count[b]):
            other = partition.member[b, slot]
            change = swapped(partition.points[record], partition.points[other], axis, 1 / count[a] + 1 / count[b])
            if change < best:
                best, target, partner = change, b, other
    return best, target, partner


@compiled
def tried(label: Labels, near: Labels, record: int, t: int) -> bool:
    """Whether a nearer neighbour has offered the same group already."""
    group = label[near[record, t]]
    for earlier in range(t):  # noqa: SIM110 (compiled code has no generators)
        if label[near[record, earlier]] == group:
            return True
    return False


@vectorised
def moved(partition: Partition, record: int, a: int, b: int) -> float:
    """Change of SSE if the record leaves group a for group b."""
    size, room = partition.size[a], partition.size[b]
    away, apart = 0.0, 0.0
    for column in range(partition.points.shape[1]):
        value = partition.points[record, column]
        gap = value - partition.sums[a, column] / size
        away += gap * gap
        gap = value - partition.sums[b, column] / room
        apart += gap * gap
    return room / (room + 1) * apart - size / max(size - 1, 1) * away


@vectorised
def swapped(x: Points, y: Points, axis: Points, shares: float) -> float:
    """Change of SSE if x and y change places; ``axis`` points from the mean of x's group to that of y's."""
    along, square = 0.0, 0.0
    for column in range(len(axis)):
        gap = y[column] - x[column]
        along += axis[column] * gap
        square += gap * gap
    return 2 * along - square * shares
