"""Cells of a recoding as groups: records that are alike everywhere; small cells dissolve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from federated_anon.arrays import Labels, Points
from federated_anon.microaggregation.blocks import Blocked
from federated_anon.microaggregation.estimator import Microaggregation
from federated_anon.microaggregation.units import merge_small_units

LARGE = 4_000
"""Records from which cells are merged inside blocks: merging looks at all pairs of cells."""


@dataclass
class JointCells(Microaggregation):
    """Records with equal points are a cell; cells below k dissolve, smallest first, into the nearest ones.

    From 4,000 records on, cells are merged inside blocks of about a thousand neighbouring records.
    """

    seed: int = 0

    def _group(self, points: Points) -> Labels:
        if len(points) >= LARGE:
            cell = max(1024, 2 * self.k)
            return Blocked(self.k, method=JointCells(self.k), cell=cell, sweeps=0, seed=self.seed)._group(points)
        spots, cells = np.unique(points, axis=0, return_inverse=True)
        return merge_small_units(points, cells.ravel(), spots, self.k)
