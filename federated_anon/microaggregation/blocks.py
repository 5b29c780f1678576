"""Large tables: group inside cells of about a thousand records, then across cells that lie differently."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from federated_anon.arrays import Labels, Points
from federated_anon.errors import DataRefused
from federated_anon.microaggregation.estimator import Microaggregation
from federated_anon.microaggregation.loss import compact
from federated_anon.microaggregation.mdav import MDAV
from federated_anon.microaggregation.search import LocalSearch
from federated_anon.som.parallel import map_chunks
from federated_anon.som.validity import group_centres

Rows = NDArray[np.int64]

SAMPLE = 2048
POWER_STEPS = 6


@dataclass
class Blocked(Microaggregation):
    """Any grouping on a table of any size: near-linear time, memory for the table and one cell per thread.

    The table is halved along the widest direction until a cell holds at most ``cell`` records, and ``method``
    (MDAV unless given; its k is that of this estimator) groups each cell. Each of the ``sweeps`` then cuts
    the groups, whole, into new cells turned at random, and searches each cell for ``steps`` steps per group,
    so that records cross the old borders. Cells are independent: threads, or tasks elsewhere, give the same
    bytes.
    """

    method: Microaggregation | None = None
    cell: int = 1024
    sweeps: int = 4
    steps: float = 0.5
    seed: int = 0
    neighbours: int = 6

    def _group(self, points: Points) -> Labels:
        if self.cell < 2 * self.k or self.sweeps < 0 or self.steps < 0:
            raise DataRefused(f"cell must be at least 2k, sweeps and steps not negative, got {self.cell} records")
        rng = np.random.default_rng(self.seed)
        labels = self._first(points, cut(points, self.cell, rng, turn=0.0))
        for sweep in range(self.sweeps):
            labels = self._sweep(points, labels, rng, sweep)
        return labels

    def _first(self, points: Points, cells: list[Rows]) -> Labels:
        method = MDAV(self.k) if self.method is None else self.method
        if method.k != self.k:
            raise DataRefused(f"method must have the same k, got {method.k} in place of {self.k}")

        def group(rows: Rows) -> Labels:
            return method._group(points[rows])

        return gathered(cells, map_chunks(group, cells), len(points))

    def _sweep(self, points: Points, labels: Labels, rng: Generator, sweep: int) -> Labels:
        centres = group_centres(points, labels)
        blocks = cut(centres, max(2, self.cell // self.k), rng, turn=1.0)
        cells = members_of(blocks, labels)

        def improve(number: int) -> Labels:
            rows = cells[number]
            steps = int(self.steps * len(blocks[number]))
            seed = self.seed + (sweep << 32) + number
            search = LocalSearch(self.k, steps=steps, seed=seed, neighbours=self.neighbours)
            return search.improve(points[rows], compact(labels[rows]))

        return gathered(cells, map_chunks(improve, range(len(cells))), len(points))


def cut(points: Points, most: int, rng: Generator, turn: float) -> list[Rows]:
    """Row numbers of cells of at most ``most`` rows: halves along the widest direction, level by level.

    ``turn`` > 0 adds a random direction of that weight, and cuts away from the middle, so that no two calls
    draw the same borders.
    """
    level: list[Rows] = [np.arange(len(points), dtype=np.int64)]
    cells: list[Rows] = []
    while level:
        cells += [rows for rows in level if len(rows) <= most]
        level = [rows for rows in level if len(rows) > most]
        plans = [(rows, rng.standard_normal((points.shape[1],)), rng.uniform(-0.15, 0.15)) for rows in level]

        def halve(plan: tuple[Rows, Points, float]) -> tuple[Rows, Rows]:
            rows, tilt, shift = plan
            return _halves(points, rows, turn * tilt, 0.5 + (shift if turn else 0.0))

        level = [half for halves in map_chunks(halve, plans) for half in halves]
    return cells


def widest_direction(points: Points) -> Points:
    """First principal axis of a sample, by a few power steps from the widest column."""
    sample = points[:: max(1, len(points) // SAMPLE)]
    sample = sample - sample.mean(axis=0)
    axis = np.zeros(points.shape[1])
    axis[sample.var(axis=0).argmax()] = 1.0
    for _ in range(POWER_STEPS):
        axis = (sample @ axis) @ sample
        axis /= max(float(np.linalg.norm(axis)), 1e-300)
    return axis


def _halves(points: Points, rows: Rows, tilt: Points, share: float) -> tuple[Rows, Rows]:
    chosen = points[rows]
    axis = widest_direction(chosen) + tilt / max(1.0, float(np.linalg.norm(tilt)))
    middle = min(max(1, int(share * len(rows))), len(rows) - 1)
    order = np.argpartition(chosen @ axis, middle)
    return np.sort(rows[order[:middle]]), np.sort(rows[order[middle:]])


def members_of(blocks: list[Rows], labels: Labels) -> list[Rows]:
    """Rows of the records whose groups lie in each block of groups."""
    block = np.empty(int(labels.max()) + 1, dtype=np.int64)
    for number, groups in enumerate(blocks):
        block[groups] = number
    owner = block[labels]
    order = np.argsort(owner, kind="stable")
    return np.split(order, np.cumsum(np.bincount(owner, minlength=len(blocks)))[:-1])


def gathered(cells: list[Rows], parts: list[Labels], records: int) -> Labels:
    """One table of labels from the labels of each cell, numbered on from cell to cell."""
    labels, offset = np.empty(records, dtype=np.int64), 0
    for rows, part in zip(cells, parts, strict=True):
        labels[rows] = part + offset
        offset += int(part.max()) + 1
    return labels
