"""Microaggregation by k-means: n // k centres, then small clusters dissolve and large ones split."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from federated_anon.arrays import Labels, Points
from federated_anon.microaggregation.estimator import Microaggregation
from federated_anon.microaggregation.mdav import mdav_labels
from federated_anon.microaggregation.split import split_large_groups
from federated_anon.microaggregation.units import merge_small_units
from federated_anon.som.nearest import assign_units
from federated_anon.som.statistics import unit_statistics


@dataclass
class KMeansMicroaggregation(Microaggregation):
    """Lloyd's passes from the means of MDAV's groups, or from random records if ``seed`` is given.

    The clusters k-means leaves below k dissolve into the nearest others, those of 2k and more are split by
    MDAV.
    Laszlo & Mukherjee (2005), IEEE TKDE 17(7), 902-911, on the repair of clusterings to a minimum size.
    """

    passes: int = 20
    seed: int | None = None

    def _group(self, points: Points) -> Labels:
        centres = self._start(points)
        clusters = assign_units(points, centres)
        for _ in range(self.passes):
            centres = unit_statistics(points, clusters, len(centres)).means(otherwise=centres)
            before, clusters = clusters, assign_units(points, centres)
            if np.array_equal(before, clusters):
                break
        return split_large_groups(points, merge_small_units(points, clusters, centres, self.k), self.k)

    def _start(self, points: Points) -> Points:
        count = len(points) // self.k
        if self.seed is not None:
            return points[np.random.default_rng(self.seed).choice(len(points), count, replace=False)]
        return unit_statistics(points, mdav_labels(points, self.k), count).means(otherwise=points[:count])
