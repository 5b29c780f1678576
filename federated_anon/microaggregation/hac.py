"""HAC: the closest clusters merge until they hold k records; the four variants of the thesis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from federated_anon.arrays import Labels, Points
from federated_anon.errors import DataRefused
from federated_anon.microaggregation.compiled import compiled
from federated_anon.microaggregation.estimator import Microaggregation
from federated_anon.microaggregation.loss import compact
from federated_anon.microaggregation.refine import descent
from federated_anon.microaggregation.split import split_large_groups
from federated_anon.microaggregation.units import merge_small_units
from federated_anon.som.statistics import unit_statistics
from federated_anon.som.validity import pairwise_distance

LINKAGES = ("single", "complete", "centroid")
MOST_RECORDS = 20_000


@dataclass
class HAC(Microaggregation):
    r"""Hierarchical agglomerative clustering under a size limit.

    The pair of clusters at the least distance merges as long as both together hold no more than the limit: k
    with
    ``maximal`` partitions, else 2k-1. With ``priority`` the distance is divided by :math:`|A| + |B|`, which
    completes clusters before it opens new ones. Clusters still below k dissolve, smallest first, record by
    record into the nearest mean; groups of 2k and more are split. ``refine`` ends with the descent of
    ``Refine``; without it single linkage gives the losses printed by Moreno (thesis on HAC for
    microaggregation, tables 6.1 and 7.3).
    It keeps all distances: up to 20,000 records, beyond that inside ``Blocked``.
    """

    linkage: str = "single"
    maximal: bool = True
    priority: bool = True
    refine: bool = True

    def _group(self, points: Points) -> Labels:
        if self.linkage not in LINKAGES:
            raise DataRefused(f"linkage must be one of {', '.join(LINKAGES)}, got {self.linkage!r}")
        if len(points) > MOST_RECORDS:
            raise DataRefused(f"X has {len(points)} records; HAC takes up to {MOST_RECORDS}, or use Blocked")
        limit = self.k if self.maximal else 2 * self.k - 1
        apart = pairwise_distance(points, points)
        clusters = compact(agglomerate(apart, points, limit, LINKAGES.index(self.linkage), self.priority))
        means = unit_statistics(points, clusters, int(clusters.max()) + 1).means(otherwise=points[: clusters.max() + 1])
        groups = split_large_groups(points, merge_small_units(points, clusters, means, self.k), self.k)
        return descent(points, groups, self.k) if self.refine else groups


@compiled
def agglomerate(apart: Points, points: Points, limit: int, linkage: int, priority: bool) -> Labels:
    """Merge while a pair fits the limit; every cluster keeps its best partner until that changes."""
    n = len(apart)
    size, cluster, centre = np.ones(n, np.int64), np.arange(n), points.copy()
    partner, value = np.full(n, -1), np.full(n, np.inf)
    unfinished = np.arange(n)
    for i in range(n):
        seek(apart, size, unfinished, i, limit, priority, partner, value)
    while len(unfinished) > 1:
        kept = unfinished[np.argmin(value[unfinished])]
        gone = partner[kept]
        if value[kept] == np.inf:
            break
        join(apart, centre, size, unfinished, kept, gone, linkage)
        cluster[cluster == gone] = kept
        unfinished = unfinished[(unfinished != gone) & (size[unfinished] < limit)]
        for m in unfinished:
            if m == kept or partner[m] == kept or partner[m] == gone:
                seek(apart, size, unfinished, m, limit, priority, partner, value)
            elif size[kept] + size[m] <= limit:
                weight = size[kept] + size[m] if priority else 1
                if apart[m, kept] / weight < value[m]:
                    value[m], partner[m] = apart[m, kept] / weight, kept
    return cluster


@compiled
def seek(
    apart: Points,
    size: Labels,
    unfinished: Labels,
    cluster: int,
    limit: int,
    priority: bool,
    partner: Labels,
    value: Points,
) -> None:
    """The best partner of a cluster among the unfinished ones that fit the limit."""
    value[cluster], partner[cluster] = np.inf, -1
    for other in unfinished:
        both = size[cluster] + size[other]
        if other == cluster or both > limit:
            continue
        score = apart[cluster, other] / (both if priority else 1)
        if score < value[cluster]:
            value[cluster], partner[cluster] = score, other


@compiled
def join(
    apart: Points,
    centre: Points,
    size: Labels,
    unfinished: Labels,
    kept: int,
    gone: int,
    linkage: int,
) -> None:
    """Add cluster ``gone`` to ``kept`` and renew the distances to it by the linkage."""
    both = size[kept] + size[gone]
    centre[kept] = (centre[kept] * size[kept] + centre[gone] * size[gone]) / both
    size[kept] = both
    for other in unfinished:
        if linkage == 0:
            distance = min(apart[kept, other], apart[gone, other])
        elif linkage == 1:
            distance = max(apart[kept, other], apart[gone, other])
        else:
            distance = np.sqrt(((centre[kept] - centre[other]) ** 2).sum())
        apart[kept, other] = apart[other, kept] = distance
