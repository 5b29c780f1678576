"""Maps of a sealed study learn from each other by activations averaged over groups, and by nothing else.

Of each group a holder tells one unit: where the mean of its records' units lies on its grid. To the partners every
record of the group lies there. A group has at least k records and ends as a union of final groups, so nothing
that is told depends on who is who inside a final group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Codebook, Labels, Points
from federated_anon.sealed.partition import NestedPartition
from federated_anon.sealed.rules import SplitRules
from federated_anon.som import Grid, collaborative_update, davies_bouldin, link_strength
from federated_anon.som.nearest import assign_units
from federated_anon.som.parallel import slices

UNITS = 5.0
"""Units per square root of records: Vesanto & Alhoniemi (2000), IEEE Transactions on Neural Networks 11(3), 586-600."""

RECORDS = 16
"""Times k: maps agree at the latest when groups have so many records on average; much smaller ones need no map."""


@dataclass(frozen=True, slots=True)
class SealedMap:
    """A holder's map: its prototypes, and the unit of each of its rows in canonical order. It never leaves."""

    grid: Grid
    codebook: Codebook
    units: Labels

    def validity(self, points: Points) -> float:
        """Davies-Bouldin of the units; ``points`` in canonical order."""
        return davies_bouldin(points, self.units, self.codebook)

    def spread(self, points: Points) -> float:
        """The sum of squared distances of the records to their prototypes."""
        total = 0.0
        for part in slices(len(points), 1 << 13):
            gaps = points[part] - self.codebook[self.units[part]]
            total += float(np.einsum("ij,ij->", gaps, gaps))
        return total


@dataclass(frozen=True, slots=True)
class Link:
    """How strongly maps pull at each other, and how far a unit reaches."""

    strength: float
    radius: float


def grid_of(records: int) -> Grid:
    """A square map of about ``UNITS`` times the root of the records, at least 2 x 2."""
    side = max(2, round(np.sqrt(UNITS * np.sqrt(records))))
    return Grid(side, side)


def is_due(partition: NestedPartition, rules: SplitRules) -> bool:
    """Whether groups are as many as the units of a map, or so many that few larger ones are left to split."""
    records, groups = len(partition.labels), len(partition.parents) + 1
    return groups >= max(2, min(grid_of(records).units, records // (RECORDS * rules.k)))


def mean_units(units: Labels, groups: Labels, grid: Grid) -> Labels:
    """(g,): the unit nearest to the mean place of each group's units; in whole numbers, so no order of rows shows."""
    sizes = np.bincount(groups)
    rows, cols = (_sums(places, groups, len(sizes)) for places in np.divmod(units, grid.cols))
    row, col = ((2 * total + sizes) // (2 * sizes) for total in (rows, cols))
    return np.asarray(row * grid.cols + col, dtype=np.int64)


def tried(points: Points, own: SealedMap, groups: Labels, partners: Sequence[Labels], link: Link) -> SealedMap:
    """The map that partners' group averages would make of the own one; points and groups in canonical order."""
    shown = [facing(own.units, told[groups], own.grid) for told in partners]
    strengths = [min(link_strength(own.units, units, own.grid, link.radius), link.strength) for units in shown]
    codebook = collaborative_update(points, own.units, shown, strengths, own.grid, link.radius, own.codebook)
    return replace(own, codebook=codebook, units=assign_units(points, codebook))


def facing(own: Labels, partner: Labels, grid: Grid) -> Labels:
    """A partner's units under the turn or reflection of its square grid that brings them nearest to the own ones.

    Maps are trained apart, so which corner comes first says nothing.
    """
    row, col = np.divmod(own, grid.cols)
    turned = [np.asarray(turn[partner]) for turn in _turns(grid)]
    apart = [int(((one // grid.cols - row) ** 2 + (one % grid.cols - col) ** 2).sum()) for one in turned]
    return turned[int(np.argmin(apart))]


def _turns(grid: Grid) -> list[Labels]:
    """The eight symmetries of a square grid: the unit that each unit becomes."""
    board = np.arange(grid.units).reshape(grid.rows, grid.cols)
    return [np.rot90(side, times).reshape(-1) for side in (board, board.T) for times in range(4)]


def _sums(values: Labels, groups: Labels, count: int) -> NDArray[np.int64]:
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, groups, values)
    return sums
