"""Records as points: every quasi-identifier weighs the same in a squared distance, whatever its kind.

Between two records drawn at random, each column adds 2 to the expected squared distance (times its weight):

- numbers, integers, dates, timestamps: the z-score (population standard deviation);
- ordered categories: the position in the declared levels, as a z-score. Positions rather than mid-ranks,
  because they do not depend on the data: a released level is coded as the original was;
- categories and booleans: one indicator per level, scaled by
  :math:`1 / \\sqrt{\\sum_v p_v (1 - p_v)}`, so that the variances add up to 1 with 2 levels as with 30;
- missing is a state of its own: one more level of a category; for the others the z-score is 0 and one more
  dimension is 1, so that a missing value is as far from a present one as two present ones are on average.

A constant column is all zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from federated_anon.arrays import Labels, Points
from federated_anon.columns import MOST_LEVELS, NUMERIC, Column, Kind
from federated_anon.errors import DataRefused
from federated_anon.quantities import Quantities, quantities
from federated_anon.tally import is_present, plain, ranked

CHUNK_BYTES = 1 << 27
"""Bytes of points that are filled together: far more of each column than a system reads ahead of a page it needs."""


class _Part(Protocol):
    """How one column becomes dimensions."""

    @property
    def width(self) -> int: ...

    def encode(self, column: pa.ChunkedArray) -> Points: ...


@dataclass(frozen=True, slots=True)
class Encoding:
    """A fitted encoding of some columns: ``fit`` once on the originals, then encode anything alike."""

    columns: tuple[Column, ...]
    parts: tuple[_Part, ...]

    @classmethod
    def fit(cls, table: pa.Table, columns: Sequence[Column]) -> Self:
        """Learn means, spreads and levels of the given columns; ``DataRefused`` if there are no records."""
        if table.num_rows == 0:
            raise DataRefused("an encoding needs at least one record")
        return cls(tuple(columns), tuple(_fit_part(column_of(table, c.name), c) for c in columns))

    @property
    def width(self) -> int:
        """Number of dimensions."""
        return sum(part.width for part in self.parts)

    @property
    def slices(self) -> dict[str, slice]:
        """The dimensions of each column, by its name."""
        ends = np.cumsum([part.width for part in self.parts])
        return {c.name: slice(int(e) - p.width, int(e)) for c, p, e in zip(self.columns, self.parts, ends, strict=True)}

    def encode(self, table: pa.Table, empty: Callable[[tuple[int, int]], Points] = np.empty) -> Points:
        """(n, width) in float64. A level unseen in fitting is all zeros, so that any release can be coded.

        ``empty`` says where the points are kept; they are filled some rows at a time.
        """
        points, places = empty((table.num_rows, self.width)), self.slices
        size = max(1, CHUNK_BYTES // (8 * max(1, self.width)))
        for start in range(0, table.num_rows, size):
            part = table.slice(start, size)
            rows = np.empty((part.num_rows, self.width))
            for column, dimensions in zip(self.columns, self.parts, strict=True):
                rows[:, places[column.name]] = dimensions.encode(column_of(part, column.name))
            points[start : start + part.num_rows] = rows
        return points


@dataclass(frozen=True, slots=True)
class ColumnLoss:
    """Squared error of one column against its total variation, both in encoded (weighted) units."""

    name: str
    sse: float
    sst: float


def squared_loss(encoding: Encoding, original: pa.Table, released_rows: pa.Table) -> tuple[ColumnLoss, ...]:
    r"""Per column, what publishing ``released_rows[i]`` in place of ``original[i]`` loses.

    .. math:: SSE = \sum_i \lVert x_i - y_i \rVert^2, \qquad SST = \sum_i \lVert x_i - \bar x \rVert^2

    The information loss of a release is 100 times the sum of SSE over the sum of SST; a constant column
    has an SST of 0. Domingo-Ferrer & Mateo-Sanz (2002), IEEE TKDE 14(1), 189-201.
    """
    if original.num_rows != released_rows.num_rows:
        raise DataRefused(f"{original.num_rows} records need as many released rows, got {released_rows.num_rows}")
    return tuple(
        _column_loss(column.name, part.encode(original[column.name]), part.encode(released_rows[column.name]))
        for column, part in zip(encoding.columns, encoding.parts, strict=True)
    )


def group_loss(
    encoding: Encoding, original: pa.Table, representatives: pa.Table, groups: Labels
) -> tuple[ColumnLoss, ...]:
    """``squared_loss`` where each record is published as its group's representative, one column at a time."""
    found: list[ColumnLoss] = []
    for column, part in zip(encoding.columns, encoding.parts, strict=True):
        rows = representatives.select([column.name]).take(groups)
        found += squared_loss(Encoding((column,), (part,)), original, rows)
    return tuple(found)


def column_of(table: pa.Table, name: str) -> pa.ChunkedArray:
    """A column by name; ``DataRefused`` with the known names if there is none."""
    if name not in table.column_names:
        raise DataRefused(f"no column '{name}'; known columns: {', '.join(table.column_names)}")
    return table.column(name)


def _column_loss(name: str, original: Points, released: Points) -> ColumnLoss:
    return ColumnLoss(
        name,
        sse=_sum(np.square(original - released)),
        sst=_sum(np.square(original - np.sort(original, axis=0).mean(axis=0))),
    )


def _sum(values: Points) -> float:
    """A sum that does not depend on the order of the records: what leaves must not tell who is who."""
    return float(np.sort(values, axis=None).sum())


def _fit_part(values: pa.ChunkedArray, column: Column) -> _Part:
    """The part for the column's kind."""
    if column.kind in NUMERIC or column.kind is Kind.ORDERED:
        return _NumberPart.fit(values, column)
    if column.kind in {Kind.CATEGORY, Kind.BOOLEAN}:
        return _CategoryPart.fit(values, column)
    raise DataRefused(f"column '{column.name}' of type '{column.kind}' has no distance")


@dataclass(frozen=True, slots=True)
class _NumberPart:
    """z = (2^-exponent (x - origin) - mean) * factor; origin and exponent only keep it exact and finite."""

    column: Column
    origin: int
    exponent: int
    mean: float
    factor: float
    scale: float
    has_missing: bool

    @property
    def width(self) -> int:
        return 1 + self.has_missing

    @classmethod
    def fit(cls, values: pa.ChunkedArray, column: Column) -> Self:
        found = _measured(values, column)
        seen, scale = found.values[found.present], float(np.sqrt(column.weight))
        origin = int(seen.min()) if found.is_exact and len(seen) else 0
        away = _away(seen, origin)
        exponent = int(np.frexp(np.abs(away).max(initial=0.0))[1])
        small = np.sort(np.ldexp(away, -exponent))  # So that sums do not depend on the order of the records.
        varies = len(small) > 0 and small.min() < small.max()
        mean, factor = (float(small.mean()), scale / float(small.std())) if varies else (0.0, 0.0)
        return cls(column, origin, exponent, mean, factor, scale, not bool(is_known(values).all()))

    def encode(self, column: pa.ChunkedArray) -> Points:
        found = _measured(column, self.column)
        small = np.ldexp(_away(found.values, self.origin), -self.exponent)
        score = np.where(found.present, (small - self.mean) * self.factor, 0.0)
        if not self.has_missing:
            return score[:, None]
        return np.column_stack([score, np.where(is_known(column), 0.0, self.scale)])


@dataclass(frozen=True, slots=True)
class _CategoryPart:
    """One indicator per level seen in fitting; ``factor`` is the height of an indicator."""

    levels: pa.Array
    factor: float
    has_missing: bool

    @property
    def width(self) -> int:
        return len(self.levels) + self.has_missing

    @classmethod
    def fit(cls, values: pa.ChunkedArray, column: Column) -> Self:
        ranks = ranked(_spelled(values), column.levels)
        if len(ranks.distinct) > MOST_LEVELS:
            many = f"{len(ranks.distinct)} distinct values, at most {MOST_LEVELS} can stand in a distance"
            raise DataRefused(f"column '{column.name}' has {many}: coarsen it, or give it another role")
        share = np.bincount(ranks.positions) / len(ranks.positions)
        variance = float((share * (1.0 - share)).sum())
        factor = float(np.sqrt(column.weight / variance)) if variance > 0 else 0.0
        return cls(ranks.distinct, factor, bool(ranks.positions.max() == len(ranks.distinct)))

    def encode(self, column: pa.ChunkedArray) -> Points:
        spelled = _spelled(column)
        codes = pc.index_in(spelled, value_set=self.levels).fill_null(-1).to_numpy(zero_copy_only=False)
        if self.has_missing:
            codes = np.where(is_present(spelled), codes, len(self.levels))
        points = np.zeros((len(codes), self.width))
        known = np.flatnonzero(codes >= 0)
        points[known, codes[known]] = self.factor
        return points


def _spelled(values: pa.ChunkedArray) -> pa.Array:
    """Values of a category by their spelling, so that a dictionary, a string and a code compare alike."""
    return plain(values).cast(pa.large_string())


def is_known(values: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Whether a value is there; NaN is not."""
    return np.asarray(pc.invert(pc.is_null(values, nan_is_null=True)).to_numpy(zero_copy_only=False), dtype=bool)


def _measured(values: pa.ChunkedArray, column: Column) -> Quantities:
    """The column's values, or the positions of its levels; an undeclared level is not present."""
    if column.kind is not Kind.ORDERED:
        return quantities(values, column.name)
    positions = pc.index_in(_spelled(values), value_set=pa.array(column.levels, pa.large_string()))
    return quantities(positions, column.name)


def _away(values: NDArray[Any], origin: int) -> NDArray[np.float64]:
    """Distance from the origin, exact until it becomes a float: far timestamps keep their ticks."""
    if values.dtype.kind == "f" or not np.iinfo(values.dtype).min <= origin <= np.iinfo(values.dtype).max:
        return values.astype(np.float64) - origin
    start = values.dtype.type(origin)
    above = values.astype(np.uint64) - np.uint64(origin % 2**64)
    below = np.uint64(origin % 2**64) - values.astype(np.uint64)
    return np.where(values >= start, above.astype(np.float64), -below.astype(np.float64))
