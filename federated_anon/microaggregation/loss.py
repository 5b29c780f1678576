"""What a grouping costs: the share of the table's variance that publishing means removes."""

from __future__ import annotations

import numpy as np

from federated_anon.arrays import Labels, Points
from federated_anon.som.points import require_labels, require_points
from federated_anon.som.validity import group_centres


def compact(labels: Labels) -> Labels:
    """The same partition with labels 0..g-1, in the order of the old labels."""
    return np.asarray(np.unique(labels, return_inverse=True)[1], dtype=np.int64)


def group_means(points: Points, labels: Labels) -> Points:
    """(n, d): each record replaced by the mean of its group."""
    records = require_points(points, "points")
    groups = compact(require_labels(labels, len(records)))
    return group_centres(records, groups)[groups]


def sum_of_squares(points: Points, labels: Labels) -> float:
    r"""SSE, :math:`\sum_i \lVert x_i - \bar{x}_{g(i)} \rVert^2`."""
    gap = np.asarray(points, dtype=float) - group_means(points, labels)
    return float(np.einsum("ij,ij->", gap, gap))


def information_loss(points: Points, labels: Labels) -> float:
    r"""Percentage of variance lost, :math:`100 \, SSE / SST`; 0 for a table whose records are all alike.

    Domingo-Ferrer & Mateo-Sanz (2002), IEEE TKDE 14(1), 189-201.
    """
    total = sum_of_squares(points, np.zeros(len(points), dtype=np.int64))
    return 100 * sum_of_squares(points, labels) / total if total > 0 else 0.0
