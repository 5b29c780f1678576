"""Units of a map as groups: small ones dissolve, large ones split."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from federated_anon.arrays import Codebook, Labels, Points
from federated_anon.errors import DataRefused
from federated_anon.microaggregation.compiled import compiled
from federated_anon.microaggregation.estimator import Microaggregation, require_k
from federated_anon.microaggregation.loss import compact
from federated_anon.microaggregation.split import split_large_groups
from federated_anon.som.batch import BatchSOM
from federated_anon.som.grid import Grid
from federated_anon.som.points import require_labels, require_points


@dataclass
class UnitGroups(Microaggregation):
    """C-TCA's grouping: the units of a map, those below k dissolved, those of 2k and more split by MDAV.

    ``grid`` is chosen from the number of records unless given; ``split=False`` leaves the units whole, as
    printed.
    """

    grid: Grid | None = None
    seed: int = 0
    split: bool = True

    def _group(self, points: Points) -> Labels:
        grid = Grid.for_records(len(points)) if self.grid is None else self.grid
        som = BatchSOM(grid.rows, grid.cols).fit(points, np.random.default_rng(self.seed))
        groups = merge_small_units(points, som.assign(points), som.codebook_, self.k)
        return split_large_groups(points, groups, self.k) if self.split else groups


def merge_small_units(points: Points, units: Labels, codebook: Codebook, k: int) -> Labels:
    """Dissolve units of fewer than k records, smallest first; each record goes to the nearest surviving
    prototype.

    Surviving are the units that hold records and are not dissolved; ties go to the lowest unit. Labels are
    0..g-1.
    A unit below k holds few records, so the work is O(units^2 k d) at worst, whatever the number of records.
    """
    records = require_points(points, "points").astype(float, copy=False)
    require_k(k, len(records))
    owners = require_labels(units, len(records), "units").copy()
    prototypes = np.ascontiguousarray(codebook, dtype=float)
    if prototypes.ndim != 2 or prototypes.shape[1] != records.shape[1] or owners.max() >= len(prototypes):
        raise DataRefused(f"codebook must give one prototype of {records.shape[1]} columns to every unit")
    dissolve(records, owners, prototypes, k)
    return compact(owners)


@compiled
def dissolve(points: Points, owner: Labels, codebook: Points, k: int) -> None:
    """Edit ``owner`` in place; the members of small units are chained from ``head`` through ``after``."""
    count = np.bincount(owner, minlength=len(codebook))
    head, after = np.full(len(codebook), -1), np.full(len(owner), -1)
    for record in range(len(owner)):
        if count[owner[record]] < k:
            after[record], head[owner[record]] = head[owner[record]], record
    alive = np.flatnonzero(count)
    while len(alive) > 1:
        at = np.argmin(count[alive])
        unit = alive[at]
        if count[unit] >= k:
            break
        alive = np.delete(alive, at)
        record = head[unit]
        while record >= 0:
            following = after[record]
            target = nearest_unit(points[record], codebook, alive)
            owner[record] = target
            after[record], head[target] = head[target], record
            count[target] += 1
            record = following


@compiled
def nearest_unit(record: Points, codebook: Points, alive: Labels) -> int:
    """The first of the surviving units whose prototype is nearest."""
    least, target = np.inf, alive[0]
    for unit in alive:
        apart = 0.0
        for column in range(len(record)):
            gap = record[column] - codebook[unit, column]
            apart += gap * gap
        if apart < least:
            least, target = apart, unit
    return target
