"""Structural utility: how far the distributions of a release are from those of the originals.

Nothing here needs to know which released row stands for which record. The papers print a share between two methods
(each pair sums to one), which says nothing of one method alone; these are distances of one release.
Wasserstein distances by POT: Flamary et al. (2021), JMLR 22(78), 1-8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from federated_anon.arrays import Points
from federated_anon.columns import NUMERIC, UNORDERED, Column, Kind, dictionary_levels, infer_kind
from federated_anon.encoding import Encoding, column_of
from federated_anon.errors import DataRefused
from federated_anon.quantities import quantities
from federated_anon.tally import Values, plain

PROJECTIONS = 64
"""Directions onto which two clouds of points are projected."""


@dataclass(frozen=True, slots=True)
class ColumnDistance:
    """``w1`` in the column's own unit; ``by_range`` and ``by_std`` as shares of the original's range and deviation.

    A column without order has one distance, the total variation, three times. ``missing`` is the change in the share
    of missing values.
    """

    w1: float
    by_range: float
    by_std: float
    missing: float


@dataclass(frozen=True, slots=True)
class CorrelationError:
    """Absolute error of the correlations of all pairs of dimensions, and the relative error of the covariances."""

    mean: float
    worst: float
    covariance: float


@dataclass(frozen=True, slots=True)
class Structure:
    """Distances of one release: each column's, their median and worst, and two of the joint distribution."""

    columns: Mapping[str, ColumnDistance]
    median_by_range: float
    worst_by_range: float
    median_by_std: float
    worst_by_std: float
    worst_column: str
    sliced: float
    correlation: CorrelationError

    @property
    def utility(self) -> float:
        """Median over columns of 1 - W1 / range: the structural part of the combined utility."""
        return 1.0 - self.median_by_range


def column_distance(before: Values, after: Values, column: Column | None = None) -> ColumnDistance:
    r"""How far the values of a column moved as a whole, by ``column``'s kind, else by the values' own.

    .. math:: \text{numbers, dates, ranks: } W_1 = \int | F(x) - G(x) | \, dx
              \qquad \text{categories: } \frac{1}{2} \sum_v | p_v - q_v |

    Numbers are compared over what is present, categories with missing as one more value. A constant original scores 0
    where the release is the same constant, else 1.
    """
    if len(before) == 0 or len(after) == 0:
        raise DataRefused(f"a distance needs values on both sides, got {len(before)} and {len(after)}")
    kind = column.kind if column else infer_kind(_chunked(before))
    if kind in UNORDERED or kind not in NUMERIC | {Kind.ORDERED}:
        return _unordered(before, after)
    levels = (column.levels if column else ()) or dictionary_levels(_chunked(before))
    return _ordered(*(_numbers(values, kind, levels) for values in (before, after)))


def sliced_distance(before: Points, after: Points, seed: int, projections: int = PROJECTIONS) -> float:
    r"""Mean :math:`W_1` of the two clouds seen from random directions, in units of the encoding (deviations).

    Bonneel, Rabin, Peyré & Pfister (2015), J. Math. Imaging Vis. 51, 22-45.
    """
    import ot

    _require_alike(before, after)
    if before.shape[1] == 0:
        return 0.0
    return float(ot.sliced_wasserstein_distance(before, after, n_projections=projections, p=1, seed=seed))


def correlation_error(before: Points, after: Points) -> CorrelationError:
    r"""Errors over all pairs of dimensions; a constant dimension correlates with nothing.

    ``covariance`` is :math:`\lVert C - C' \rVert_F / \lVert C \rVert_F`.
    """
    _require_alike(before, after)
    first, second = _covariance(before), _covariance(after)
    upper = np.triu_indices(len(first), k=1)
    errors = np.abs(_correlation(first) - _correlation(second))[upper]
    size = float(np.linalg.norm(first))
    apart = float(np.linalg.norm(first - second))
    return CorrelationError(
        mean=float(errors.mean()) if len(errors) else 0.0,
        worst=float(errors.max(initial=0.0)),
        covariance=apart / size if size else float(apart > 0),
    )


def structure(before: pa.Table, after: pa.Table, columns: Sequence[Column], seed: int = 0) -> Structure:
    """All distances of a release over the given columns; the joint ones in the encoding of the originals."""
    found = {c.name: column_distance(column_of(before, c.name), column_of(after, c.name), c) for c in columns}
    encoding = Encoding.fit(before, columns)
    clouds = encoding.encode(before), encoding.encode(after)
    return summed_up(found, sliced_distance(*clouds, seed), correlation_error(*clouds))


def summed_up(columns: Mapping[str, ColumnDistance], sliced: float, correlation: CorrelationError) -> Structure:
    """Median and worst over the columns beside what was measured jointly."""
    if not columns:
        raise DataRefused("structural utility needs at least one column")
    return Structure(
        dict(columns),
        median(one.by_range for one in columns.values()),
        worst(one.by_range for one in columns.values()),
        median(one.by_std for one in columns.values()),
        worst(one.by_std for one in columns.values()),
        max(columns, key=lambda name: columns[name].by_std),
        sliced,
        correlation,
    )


def median(values: Iterable[float]) -> float:
    """The middle one."""
    return float(np.median(np.fromiter(values, dtype=np.float64)))


def worst(values: Iterable[float]) -> float:
    """The largest one."""
    return float(np.fromiter(values, dtype=np.float64).max())


def _chunked(values: Values) -> pa.ChunkedArray:
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])


def _unordered(before: Values, after: Values) -> ColumnDistance:
    shares = [_shares(values) for values in (before, after)]
    levels = set(shares[0]) | set(shares[1])
    apart = 0.5 * sum(abs(shares[0].get(v, 0.0) - shares[1].get(v, 0.0)) for v in levels)
    return ColumnDistance(apart, apart, apart, abs(shares[0].get(None, 0.0) - shares[1].get(None, 0.0)))


def _shares(values: Values) -> dict[Any, float]:
    """Share of each value by its spelling, so that a dictionary and a string compare alike."""
    counted = pc.value_counts(plain(values).cast(pa.large_string()))
    names, counts = counted.field("values").to_pylist(), counted.field("counts").to_pylist()
    return {name: count / len(values) for name, count in zip(names, counts, strict=True)}


@dataclass(frozen=True, slots=True)
class _Numbers:
    """What is present, and the share of what is not."""

    present: NDArray[Any]
    missing: float


def _numbers(values: Values, kind: Kind, levels: Sequence[str]) -> _Numbers:
    if kind is Kind.ORDERED:
        spelled = plain(values).cast(pa.large_string())
        values = pc.index_in(spelled, value_set=pa.array(levels, pa.large_string()))
    found = quantities(values, "compared")
    return _Numbers(found.values[found.present], 1.0 - float(found.present.mean()))


def _ordered(before: _Numbers, after: _Numbers) -> ColumnDistance:
    import ot

    gone = abs(before.missing - after.missing)
    if len(before.present) == 0 or len(after.present) == 0:
        lost = float(len(before.present) != len(after.present))
        return ColumnDistance(lost, lost, lost, gone)
    origin = before.present.min()
    first, second = (np.subtract(one.present, origin, dtype=_exact(origin)).astype(float) for one in (before, after))
    moved = float(ot.wasserstein_1d(first, second, p=1))
    reach = float(first.max())
    if reach == 0:
        return ColumnDistance(moved, float(moved > 0), float(moved > 0), gone)
    share = moved / reach  # The deviation is taken as a share of the range: squares of tiny numbers are 0.
    return ColumnDistance(moved, share, share / float((first / reach).std()), gone)


def _exact(origin: Any) -> Any:
    """Integers are subtracted as integers: far timestamps keep their ticks."""
    return np.int64 if origin.dtype.kind == "i" else np.float64


def _require_alike(before: Points, after: Points) -> None:
    if len(before) < 2 or len(after) < 2 or before.shape[1] != after.shape[1]:
        raise DataRefused(f"two clouds of one dimension are needed, got {before.shape} and {after.shape}")


def _covariance(points: Points) -> NDArray[np.float64]:
    return np.atleast_2d(np.cov(points, rowvar=False, bias=True)) if points.shape[1] else np.zeros((0, 0))


def _correlation(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Correlations; 0 where a deviation is 0, or only rounding."""
    deviation = np.sqrt(np.diag(covariance))
    product = np.outer(deviation, deviation)
    return np.divide(covariance, product, out=np.zeros_like(covariance), where=product > 1e-12)
