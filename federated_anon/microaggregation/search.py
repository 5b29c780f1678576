"""LocalSearch: tear down a few neighbouring groups, build them anew, descend, keep what pays."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Labels, Points
from federated_anon.errors import DataRefused
from federated_anon.microaggregation.compiled import compiled, vectorised
from federated_anon.microaggregation.estimator import Microaggregation
from federated_anon.microaggregation.loss import compact
from federated_anon.microaggregation.neighbours import nearest_records
from federated_anon.microaggregation.partition import Partition, group_error, partition_of, transfer
from federated_anon.microaggregation.refine import NEIGHBOURS, descend, settle
from federated_anon.microaggregation.split import split_large_groups, starting_labels

BATCH = 2000
MOST_GROUPS = 4


@dataclass
class LocalSearch(Microaggregation):
    """Iterated local search on SSE with sizes in k..2k-1, from ``start`` or from MDAV; anytime and seeded.

    A step takes 2 to 4 groups around a random record, regroups their records around random seeds, descends as
    ``Refine`` does, and is undone unless SSE falls or, early in the search, rises little: the accepted rise
    is exponential with a mean that shrinks linearly to 0 at the end of the budget (simulated annealing). The
    best partition met is the result. The budget is ``steps``, so that results repeat, or ``seconds`` where
    given.
    """

    steps: int = 20_000
    seconds: float | None = None
    seed: int = 0
    start: Labels | None = None
    neighbours: int = NEIGHBOURS
    heat: float = 0.1

    def _group(self, points: Points) -> Labels:
        if self.steps < 0 or (self.seconds is not None and self.seconds <= 0):
            raise DataRefused(f"steps must not be negative and seconds positive, got {self.steps}, {self.seconds}")
        return self.improve(points, starting_labels(points, self.start, self.k))

    def improve(self, points: Points, labels: Labels) -> Labels:
        """Search from ``labels`` over accepted points."""
        near = nearest_records(points, self.neighbours)
        partition = partition_of(points, split_large_groups(points, labels, self.k), self.k)
        settle(partition, near, self.k)
        best, gain = partition.label.copy(), np.zeros(2)
        heat = self.heat * total_error(partition) / len(partition.size)
        state = np.random.SeedSequence(self.seed).generate_state(1, np.uint64).astype(np.uint64)
        begun, done = time.monotonic(), 0
        while (progress := self._progress(done, time.monotonic() - begun)) < 1:
            batch = BATCH if self.seconds is not None else min(BATCH, self.steps - done)
            explore(partition, near, self.k, batch, heat * (1 - progress), state, best, gain)
            done += batch
        return compact(best)

    def _progress(self, done: int, elapsed: float) -> float:
        if self.seconds is not None:
            return elapsed / self.seconds
        return done / self.steps if self.steps else 1.0


@compiled
def total_error(partition: Partition) -> float:
    """SSE of the whole partition."""
    error = 0.0
    for group in range(len(partition.size)):
        error += group_error(partition, group)
    return error


@compiled
def draw(state: NDArray[np.uint64], below: int) -> int:
    """Next integer in [0, below) of a xorshift64* stream (Vigna 2016)."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return int((x * np.uint64(2685821657736338717)) >> np.uint64(33)) % below


@compiled
def explore(
    partition: Partition,
    near: Labels,
    k: int,
    steps: int,
    heat: float,
    state: NDArray[np.uint64],
    best: Labels,
    gain: Points,
) -> None:
    """``steps`` steps at one heat; ``gain`` holds the change of SSE so far and that of ``best``."""
    n = len(partition.label)
    torn, pool = np.empty(MOST_GROUPS + 1, np.int64), np.empty(MOST_GROUPS * (2 * k - 1), np.int64)
    queue, queued = np.empty(n, np.int64), np.zeros(n, np.bool_)
    log = np.empty((64 * len(pool), 2), np.int64)
    for _ in range(steps):
        groups = gather(partition, near, state, torn)
        size, before = tear(partition, torn, groups, pool, log)
        groups, logged = resize(partition, k, torn, groups, size, state), size
        if rebuild(partition, k, torn, groups, pool, size, state):
            change = -before
            for g in range(groups):
                change += group_error(partition, torn[g])
            queue[:size] = pool[:size]
            queued[pool[:size]] = True
            gained, logged = descend(partition, near, k, queue, queued, size, log, logged)
            change += gained
            rise = -heat * np.log((draw(state, 1 << 30) + 1) / (1 << 30))
            if change < rise - 1e-12:
                gain[0] += change
                if gain[0] < gain[1] - 1e-12:
                    gain[1] = gain[0]
                    best[:] = partition.label
                continue
        undo(partition, log, logged)


@compiled
def undo(partition: Partition, log: Labels, logged: int) -> None:
    """Put every logged record back: its first entry names the group it came from."""
    for entry in range(logged):
        transfer(partition, log[entry, 0], -1)
    for entry in range(logged):
        if partition.label[log[entry, 0]] < 0:
            transfer(partition, log[entry, 0], log[entry, 1])


@compiled
def gather(partition: Partition, near: Labels, state: NDArray[np.uint64], torn: Labels) -> int:
    """Up to a random number of distinct groups around a random record, by a walk over neighbours."""
    record = draw(state, len(partition.label))
    wanted, found = 2 + draw(state, MOST_GROUPS - 1), 1
    torn[0] = partition.label[record]
    for _ in range(4 * MOST_GROUPS):
        group = torn[draw(state, found)]
        member = partition.member[group, draw(state, partition.size[group])]
        candidate = partition.label[near[member, draw(state, near.shape[1])]]
        if candidate not in torn[:found]:
            torn[found] = candidate
            found += 1
            if found == wanted:
                break
    return found


@compiled
def tear(
    partition: Partition,
    torn: Labels,
    groups: int,
    pool: Labels,
    log: Labels,
) -> tuple[int, float]:
    """Empty the groups into ``pool`` and ``log``; gives the number of records and their SSE."""
    size, error = 0, 0.0
    for g in range(groups):
        group = torn[g]
        error += group_error(partition, group)
        while partition.size[group]:
            record = partition.member[group, partition.size[group] - 1]
            log[size, 0], log[size, 1] = record, group
            pool[size] = record
            size += 1
            transfer(partition, record, -1)
    return size, error


@compiled
def resize(partition: Partition, k: int, torn: Labels, groups: int, size: int, state: NDArray[np.uint64]) -> int:
    """How many groups to build: one more where the records allow it, now and then one fewer."""
    if size // k > groups:
        for group in range(len(partition.size)):
            if partition.size[group] == 0 and group not in torn[:groups]:
                torn[groups] = group
                return groups + 1
    if groups > 1 and size <= (groups - 1) * (2 * k - 1) and draw(state, 4) == 0:
        return groups - 1
    return groups


@vectorised
def rebuild(
    partition: Partition,
    k: int,
    torn: Labels,
    groups: int,
    pool: Labels,
    size: int,
    state: NDArray[np.uint64],
) -> bool:
    """Seed after seed takes its nearest free records; what is left joins the nearest group with room."""
    points, left = partition.points, size
    for g in range(groups):
        seed = draw(state, left)
        if draw(state, 2):
            seed = outermost(points, pool, left)
        for taken in range(k):
            pick = seed
            if taken:
                least = np.inf
                for i in range(left):
                    apart = 0.0
                    for c in range(points.shape[1]):
                        gap = points[pool[i], c] - partition.sums[torn[g], c] / taken
                        apart += gap * gap
                    if apart < least:
                        least, pick = apart, i
            transfer(partition, pool[pick], torn[g])
            left -= 1
            pool[pick], pool[left] = pool[left], pool[pick]
    return place_rest(partition, k, torn, groups, pool, left)


@vectorised
def outermost(points: Points, pool: Labels, left: int) -> int:
    """Position of the free record farthest from the mean of the free records."""
    centre = np.zeros(points.shape[1])
    for i in range(left):
        centre += points[pool[i]]
    centre /= left
    most, pick = -1.0, 0
    for i in range(left):
        apart = 0.0
        for c in range(len(centre)):
            gap = points[pool[i], c] - centre[c]
            apart += gap * gap
        if apart > most:
            most, pick = apart, i
    return pick


@vectorised
def place_rest(partition: Partition, k: int, torn: Labels, groups: int, pool: Labels, left: int) -> bool:
    """Each free record joins the nearest of the groups with room; whether all of them found one."""
    for i in range(left):
        least, target = np.inf, -1
        for g in range(groups):
            group = torn[g]
            count = partition.size[group]
            if count >= 2 * k - 1:
                continue
            apart = 0.0
            for c in range(partition.points.shape[1]):
                gap = partition.points[pool[i], c] - partition.sums[group, c] / count
                apart += gap * gap
            if apart * count / (count + 1) < least:
                least, target = apart * count / (count + 1), group
        if target < 0:
            return False
        transfer(partition, pool[i], target)
    return True
