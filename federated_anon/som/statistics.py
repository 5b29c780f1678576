"""What a chunk of records tells a map: counts and sums per unit, values that add up over chunks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from federated_anon.arrays import Codebook, Labels, Points
from federated_anon.som.grid import Grid
from federated_anon.som.parallel import map_chunks, slices

CHUNK_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class UnitStatistics:
    """(units,) counts and (units, d) sums of the records of each unit; ``+`` joins two chunks."""

    counts: NDArray[np.float64]
    sums: NDArray[np.float64]

    def __add__(self, other: UnitStatistics) -> UnitStatistics:
        return UnitStatistics(self.counts + other.counts, self.sums + other.sums)

    def smoothed(self, grid: Grid, radius: float) -> UnitStatistics:
        """Share every unit's records with its neighbours, weighted by the kernel."""
        joint = grid.smooth(np.column_stack([self.counts, self.sums]), radius)
        return UnitStatistics(joint[:, 0], joint[:, 1:])

    def means(self, otherwise: Codebook) -> Codebook:
        """Mean record of each unit; a unit that nothing reaches keeps its row of ``otherwise``."""
        reached = self.counts > 1e-12
        centres = np.array(otherwise, dtype=float)
        centres[reached] = self.sums[reached] / self.counts[reached, None]
        return centres


def unit_statistics(points: Points, units: Labels, count: int) -> UnitStatistics:
    """Counts and sums of ``points`` per unit, chunk after chunk in fixed order."""

    def tally(rows: slice) -> UnitStatistics:
        return _tally(points[rows], units[rows], count)

    parts = map_chunks(tally, slices(len(points), CHUNK_ROWS))
    empty = UnitStatistics(np.zeros(count), np.zeros((count, points.shape[1])))
    return sum(parts[1:], start=parts[0]) if parts else empty


def _tally(points: Points, units: Labels, count: int) -> UnitStatistics:
    rows = len(points)
    member = csc_array((np.ones(rows), np.asarray(units), np.arange(rows + 1)), shape=(count, rows))
    return UnitStatistics(np.bincount(units, minlength=count).astype(float), np.asarray(member @ points))
