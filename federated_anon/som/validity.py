"""How well a partition separates: the Davies-Bouldin index that gates collaboration."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Codebook, Labels, Points
from federated_anon.som.nearest import distances_to
from federated_anon.som.parallel import map_chunks, slices
from federated_anon.som.points import require_labels, require_points
from federated_anon.som.statistics import unit_statistics

CHUNK_GROUPS = 256


def davies_bouldin(points: Points, labels: Labels, codebook: Codebook | None = None) -> float:
    r"""Mean, over groups, of the worst similarity to another group; lower is better.

    .. math:: \frac{1}{g} \sum_i \max_{j \neq i} \frac{s_i + s_j}{\lVert c_i - c_j \rVert}

    ``points`` is (n, d), ``labels`` (n,). Centres are the prototypes of ``codebook`` (units, d) where given,
    else the group means; s is the mean distance of a group's records to its centre. Empty groups do not
    count.
    Coincident centres score infinity, and so does a single group: a collapsed map must never look good.
    Davies & Bouldin (1979), IEEE PAMI-1(2), 224-227.
    """
    records = require_points(points, "points")
    groups = require_labels(labels, len(records))
    present, members = np.unique(groups, return_inverse=True)
    if len(present) < 2:
        return float("inf")
    centres = group_centres(records, members) if codebook is None else np.asarray(codebook, dtype=float)[present]
    distances = distances_to(records, centres, members)
    spread = np.bincount(members, distances) / np.bincount(members)
    return float(worst_similarity(centres, spread).mean())


def group_centres(points: Points, labels: Labels) -> NDArray[np.float64]:
    """(g, d): mean of each group of labels 0..g-1, all of them present."""
    tally = unit_statistics(points, labels, int(labels.max()) + 1)
    return np.asarray(tally.sums / tally.counts[:, None])


def worst_similarity(centres: NDArray[np.float64], spread: NDArray[np.float64]) -> NDArray[np.float64]:
    """(g,): largest ratio of joint spread to distance between centres, by chunks of groups."""

    def worst(rows: slice) -> NDArray[np.float64]:
        gap = pairwise_distance(centres[rows], centres)
        ratio = np.full_like(gap, np.inf)
        np.divide(spread[rows, None] + spread, gap, out=ratio, where=gap > 0)
        ratio[np.arange(len(gap)), np.arange(rows.start, rows.stop)] = -np.inf
        return np.asarray(ratio.max(axis=1))

    return np.concatenate(map_chunks(worst, slices(len(centres), CHUNK_GROUPS)))


def pairwise_distance(left: Points, right: Points) -> NDArray[np.float64]:
    """Euclidean distances, column by column: equal rows are exactly 0 apart."""
    total = np.zeros((len(left), len(right)))
    for column in range(left.shape[1]):
        total += np.subtract.outer(left[:, column], right[:, column]) ** 2
    return np.sqrt(total)
