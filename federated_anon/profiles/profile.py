"""A holder's profile: its columns before and after, its correlations, how far its columns link people, its map.

All of it is about at least k people at a time, and rounded. What is not told: minimum, maximum, range, deviation,
names of categories that the release does not show, correlations of few people, units below k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from federated_anon.arrays import Codebook, Counts, Labels, Points
from federated_anon.columns import NUMERIC, Column, Kind
from federated_anon.encoding import Encoding
from federated_anon.privacy import representative_linkage
from federated_anon.profiles.bins import PEOPLE_PER_COUNT, column_bins
from federated_anon.profiles.told import MOST_CORRELATED, MOST_UNITS, ColumnProfile, Correlations, Linked, Profile
from federated_anon.som import Grid
from federated_anon.utility.structure import column_distance

DIGITS = 3
ATTACKED = 2000
Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Before:
    """The records: their columns, and the quasi-identifiers as points."""

    encoding: Encoding
    table: pa.Table
    points: Points


@dataclass(frozen=True, slots=True)
class After:
    """What was released in their place: one row per group, and the group of each record."""

    representatives: pa.Table
    groups: Labels


def profile_of(
    before: Before, after: After, k: int, rng: np.random.Generator, heights: tuple[float | None, ...] = ()
) -> Profile:
    """The profile of the encoded columns, one column at a time."""
    encoding = before.encoding
    if not encoding.columns:
        return Profile(columns=(), heights=heights)
    released = encoding.encode(after.representatives)
    rate = representative_linkage(before.points, released, after.groups, rng, ATTACKED).linked
    return Profile(
        columns=tuple(_column(before.table, after, column, k) for column in encoding.columns),
        correlations=_correlations(before, released, np.bincount(after.groups)),
        linked=Linked(value=round(rate.value, DIGITS), low=round(rate.low, DIGITS), high=round(rate.high, DIGITS)),
        heights=heights,
    )


def _column(table: pa.Table, after: After, column: Column, k: int) -> ColumnProfile:
    sides = table[column.name], after.representatives[column.name].take(pa.array(after.groups))
    bins = column_bins(*sides, column, k)
    return ColumnProfile(
        name=column.name,
        labels=bins.labels,
        edges=bins.edges,
        before=bins.before,
        after=bins.after,
        distance=round(column_distance(*sides, column).by_std, DIGITS),
    )


def _correlations(before: Before, released: Points, sizes: Counts) -> Correlations | None:
    """Correlations of columns with an order, unless they would be too many figures about too few people."""
    columns = before.encoding.columns
    ordered = [column.name for column in columns if column.kind in NUMERIC or column.kind is Kind.ORDERED]
    pairs = len(ordered) * (len(ordered) - 1) // 2
    if not 0 < pairs * PEOPLE_PER_COUNT <= len(before.points) or len(ordered) > MOST_CORRELATED:
        return None
    places = [before.encoding.slices[name].start for name in ordered]
    return Correlations(
        names=tuple(ordered),
        before=correlation_rows(before.points, np.ones(len(before.points)), places),
        after=correlation_rows(released, sizes.astype(np.float64), places),
    )


def correlation_rows(points: Points, weights: NDArray[np.float64], places: list[int]) -> Rows:
    """Rounded correlations of some dimensions of weighted points; a constant one has none but with itself."""
    few = [points[:, place] for place in places]
    total = weights.sum()
    centred = [values - float(weights @ values) / total for values in few]
    covariance = np.array([[float((weights * one) @ other) for other in centred] for one in centred])
    deviation = np.sqrt(np.diag(covariance))
    product = np.outer(deviation, deviation)
    found = np.divide(covariance, product, out=np.zeros_like(covariance), where=product > 1e-12)
    np.fill_diagonal(found, 1.0)
    return tuple(tuple(round(float(value), DIGITS) + 0.0 for value in row) for row in np.clip(found, -1, 1))


def unit_heights(grid: Grid, codebook: Codebook, hits: Counts, k: int) -> tuple[float | None, ...]:
    r"""Mean distance of each unit's prototype to those of its neighbours on the grid (the U-matrix).

    Only units of at least ``k`` records are told, and only neighbours of at least ``k`` count; none where there are
    none. Ultsch & Siemon (1990), INNC Paris, 305-308.
    """
    if grid.units > MOST_UNITS:
        return ()
    full = (hits >= k).reshape(grid.rows, grid.cols)
    places = codebook.reshape(grid.rows, grid.cols, -1)
    total, count = np.zeros(full.shape), np.zeros(full.shape)
    for axis in (0, 1):
        gaps, both = _gaps(places, full, axis)
        for side in (slice(None, -1), slice(1, None)):
            place = (side, slice(None)) if axis == 0 else (slice(None), side)
            total[place] += np.where(both, gaps, 0.0)
            count[place] += both
    means = np.divide(total, count, out=np.full(full.shape, np.nan), where=count > 0)
    return tuple(None if np.isnan(mean) else round(float(mean), DIGITS) for mean in means.ravel())


def _gaps(
    places: NDArray[np.floating], full: NDArray[np.bool_], axis: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Distances of neighbours along one axis, and whether both are told."""
    gaps = np.linalg.norm(np.diff(places, axis=axis), axis=2)
    both = full[:-1] & full[1:] if axis == 0 else full[:, :-1] & full[:, 1:]
    return gaps, both
