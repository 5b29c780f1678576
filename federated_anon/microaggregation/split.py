"""Where a search starts, and large groups into groups of k to 2k-1."""

from __future__ import annotations

import numpy as np

from federated_anon.arrays import Labels, Points
from federated_anon.errors import DataRefused
from federated_anon.microaggregation.estimator import prepared, require_k
from federated_anon.microaggregation.loss import compact
from federated_anon.microaggregation.mdav import mdav_labels
from federated_anon.som.parallel import map_chunks
from federated_anon.som.points import require_labels


def starting_labels(points: Points, start: Labels | None, k: int) -> Labels:
    """``start``, which must give every group k records, or MDAV's groups where there is none."""
    if start is None:
        return mdav_labels(points, k)
    labels = compact(require_labels(start, len(points), "start"))
    if np.bincount(labels).min() < k:
        raise DataRefused(f"start must put at least k={k} records in every group")
    return labels


def split_large_groups(points: Points, labels: Labels, k: int) -> Labels:
    """MDAV inside every group of 2k or more records; smaller groups stay as they are. Labels are 0..g-1."""
    require_k(k, len(points))
    groups = compact(require_labels(labels, len(points)))
    sizes = np.bincount(groups)
    large = np.flatnonzero(sizes >= 2 * k)
    if len(large) == 0:
        return groups
    records = prepared(points, k)
    order = np.argsort(groups, kind="stable")
    ends = np.cumsum(sizes)
    rows = [order[ends[group] - sizes[group] : ends[group]] for group in large]
    parts = map_chunks(lambda members: mdav_labels(records[members], k), rows)
    offset = len(sizes)
    for members, part in zip(rows, parts, strict=True):
        groups[members] = offset + part
        offset += int(part.max()) + 1
    return compact(groups)
