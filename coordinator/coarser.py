r"""What larger groups would lose, from the release alone: no holder is asked for another partition.

Released groups are joined, :math:`m` at a time, into groups of at least :math:`m k` people. For a column published as
means the loss of the union is exact, since squares within and between groups add up:

.. math:: L_{mk} = L_k + (1 - L_k) \frac{\sum_g n_g (y_g - \bar y_{u(g)})^2}{\sum_g n_g (y_g - \bar y)^2}

For categories and levels it is an estimate. A study run at that k finds better groups, so it loses less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from coordinator.assembly import Release
from federated_anon.arrays import Counts, Labels, Points
from federated_anon.columns import Column, Kind, Role
from federated_anon.encoding import Encoding
from federated_anon.messages.payloads import Evaluated
from federated_anon.microaggregation import MDAV, Blocked
from federated_anon.privacy import equivalence_classes

JOINED = (2, 3, 5, 10)
LARGE = 4000
"""Classes from which blocks replace the search for neighbours over all of them."""

MODES = frozenset({Kind.CATEGORY, Kind.BOOLEAN})


@dataclass(frozen=True, slots=True)
class Classes:
    """The distinct rows of a release as points, and how many records stand on each."""

    encoding: Encoding
    points: Points
    sizes: Counts


def classes_of(release: Release) -> Classes:
    """The equivalence classes of a release."""
    columns = [Column(c.name, c.role, c.kind, 1.0, c.levels) for c in release.columns if c.role is Role.QUASI]
    labels = equivalence_classes(release.table, [column.name for column in columns])
    _, first, sizes = np.unique(labels, return_index=True, return_counts=True)
    encoding = Encoding.fit(release.table, columns)
    return Classes(encoding, encoding.encode(release.table.take(pa.array(first))), sizes)


def loss_by_k(classes: Classes, loss: float, losses: Mapping[str, Evaluated]) -> list[dict[str, float]]:
    """``k`` and ``loss_percent`` of the release itself, then of unions of its groups."""
    found = [{"k": int(classes.sizes.min()), "loss_percent": loss}]
    for together in JOINED:
        if len(classes.sizes) < 2 * together:
            break
        unions = _unions(classes.points, together)
        size = int(np.bincount(unions, classes.sizes).min())
        found.append({"k": size, "loss_percent": _joined_loss(classes, unions, loss, losses)})
    return found


def _unions(points: Points, together: int) -> Labels:
    method = MDAV(together) if len(points) < LARGE else Blocked(together, sweeps=0)
    return method.fit(points).labels_


def _joined_loss(classes: Classes, unions: Labels, loss: float, losses: Mapping[str, Evaluated]) -> float:
    """The loss of all columns, each weighed by its total squares; by equal parts where only the total was told."""
    added = {column.name: _added_share(classes, column, unions) for column in classes.encoding.columns}
    told = [
        (float(squares), float(error) / float(squares), added[name])
        for one in losses.values()
        for name, error, squares in zip(one.names, one.squared_error, one.total_squares, strict=True)
        if squares > 0
    ]
    if not told:
        return loss + max(100.0 - loss, 0.0) * float(np.mean(list(added.values()) or [0.0]))
    whole = sum(squares for squares, _, _ in told)
    return 100.0 * sum(squares * (own + max(1.0 - own, 0.0) * more) for squares, own, more in told) / whole


def _added_share(classes: Classes, column: Column, unions: Labels) -> float:
    """Squares that joining adds within groups, as a share of the squares between the released rows."""
    points = classes.points[:, classes.encoding.slices[column.name]]
    sizes = classes.sizes.astype(np.float64)
    middle = np.average(points, axis=0, weights=sizes)
    total = float(sizes @ np.square(points - middle).sum(axis=1))
    count = np.bincount(unions, sizes)
    sums = np.stack([np.bincount(unions, sizes * one) for one in points.T], axis=1)
    if column.kind in MODES:
        height = points.max(initial=0.0)
        centres = np.eye(points.shape[1])[sums.argmax(axis=1)] * height
    else:
        centres = sums / count[:, None]
    return float(sizes @ np.square(points - centres[unions]).sum(axis=1)) / total if total else 0.0
