"""Values from sums: differences of partitions, and bridges between the cells and groups of one holder.

Every mean of a group that leaves is one linear equation about the values of its members. A record is known when its
indicator lies in the span of all groups told.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from scipy.sparse.linalg import lsqr

from federated_anon.arrays import Labels
from federated_anon.attacks.attempt import Attempt, exactly
from federated_anon.attacks.scene import Scene
from federated_anon.bridges import bridges
from federated_anon.columns import Column, Kind, Role
from federated_anon.encoding import is_known
from federated_anon.side.code import rebuild_codes

EXACT = 1e-6
"""Standard deviations within which a value counts as found."""

Sums = Sequence[tuple[Labels, NDArray[np.float64]]]
"""Partitions, each with the sums of its groups."""


def known_from(sums: Sums) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Records that follow from sums over the groups of all partitions together, and the values that fit best.

    A random vector loses its projection on the span of the groups; what is left is 0 exactly at those records.
    """
    rows = vstack([indicators(labels) for labels, _ in sums]).tocsr()
    right = np.concatenate([values for _, values in sums])
    drawn = np.random.default_rng(rows.shape[1]).standard_normal(rows.shape[1])
    inside = lsqr(rows, rows @ drawn, atol=1e-15, btol=1e-15, iter_lim=20_000)[0]
    values = lsqr(rows, right, atol=1e-15, btol=1e-15, iter_lim=20_000)[0]
    return np.abs(drawn - inside) < 1e-7, values


def group_sums(labels: Labels, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(groups,): the sum of each group."""
    return np.asarray(np.bincount(labels, values), dtype=np.float64)


def indicators(labels: Labels) -> csr_array:
    """(groups, n): which records each group holds."""
    count = len(labels)
    return csr_array((np.ones(count), (np.asarray(labels, dtype=np.int64), np.arange(count))))


def differencing(scene: Scene) -> Attempt:
    """Sealed: had every partition shown told its sums, would a record follow? Open: from the sums that were told."""
    if scene.study.exposure == "sealed":
        shown = [scene.leaves, scene.groups]
        known, _ = known_from([(labels, np.zeros(int(labels.max()) + 1)) for labels in shown])
        share, knows = float(known.mean()), "every partition shown, with sums that never left"
    else:
        share, knows = solved(scene, only_bridges=False), "means of cells and groups of each holder"
    return Attempt("differencing", "coordinator", knows, "exact values", exactly(share), 0.0, 0.0)


def bridging(scene: Scene) -> Attempt:
    """Records that are bridges between cells and groups, and whose value comes out exactly."""
    open_ = scene.study.exposure == "open"
    share = solved(scene, only_bridges=True) if open_ else 0.0
    knows = "bridges of the graph of cells and groups" if open_ else "no cells: none leave"
    return Attempt("bridges", "coordinator", knows, "exact values", exactly(share), 0.0, 0.0)


def solved(scene: Scene, only_bridges: bool) -> float:
    """Share of people of whom one number comes out exactly from the sums of cells and groups, and not from the release.

    Where all of a group share a number, the release itself tells it.
    """
    found = np.zeros(scene.records, dtype=bool)
    for place, name in enumerate(scene.study.holders):
        cells = scene.codes[place].cells.astype(np.int64)
        for column in (c for c in scene.shares[name] if is_plain_number(c, scene.people)):
            cell_sums = group_sums(cells, _values_behind(scene, place, column))
            published, truth = _published(scene, column), scene.people[column.name].to_numpy()
            known, values = known_from([(cells, cell_sums), (scene.groups, group_sums(scene.groups, published))])
            near = EXACT * max(float(truth.std()), 1e-300)
            exact = (np.abs(values - truth) < near) & (np.abs(published - truth) > near)
            found |= exact & (bridges(cells, scene.groups) if only_bridges else known)
    return float(found.mean())


def is_plain_number(column: Column, people: pa.Table) -> bool:
    """Whether the means of a column are exact sums: a number, never missing, not rounded."""
    if column.role is not Role.QUASI or column.kind is not Kind.NUMBER:
        return False
    values = people[column.name]
    return bool(is_known(values).all()) and pa.types.is_float64(values.type)


def _published(scene: Scene, column: Column) -> NDArray[np.float64]:
    """(n,): the published mean at every record."""
    values: NDArray[np.float64] = scene.release[column.name].to_numpy()[scene.row_of]
    return values


def _values_behind(scene: Scene, place: int, column: Column) -> NDArray[np.float64]:
    """(n,): what one holder's code, not yet corrected, says of a column: over each cell it sums to the true sum."""
    name = scene.study.holders[place]
    at = scene.encodings[name].slices[column.name].start
    coded = rebuild_codes(scene.codes[: place + 1])[place][:, at]
    truth = scene.people[column.name].to_numpy()
    scale = float(truth.std()) / float(np.sqrt(column.weight))
    return np.asarray(coded * scale + truth.mean())
