"""The one value that stands for a group's values in a release, column by column.

number, date, timestamp: the mean; integer: the mean rounded half to even; ordered: the lower median;
category, boolean: the most frequent value, ties to the first in level order (sorted where undeclared).
A group is represented by missing if more than half of its numbers are missing, if at least half of its
ordered values are, and for a category if missing is more frequent than every level.

The bytes do not depend on the order of records: integers are summed exactly, and numbers are summed as
integers too (see ``_number_means``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from federated_anon.arrays import Counts, Labels
from federated_anon.columns import NUMERIC, Column, Kind
from federated_anon.encoding import column_of
from federated_anon.errors import DataRefused
from federated_anon.quantities import Quantities, decimal, quantities, restored
from federated_anon.tally import Ranks, first_pair, group_sizes, ranked, tally

ROUNDING = 1e-6
"""Most that a rounded representative moves, in standard deviations of its column."""


@dataclass(frozen=True, slots=True)
class _Groups:
    """Records in group order: where each group starts and how many it has."""

    labels: Labels
    order: Labels
    starts: Labels
    sizes: Counts

    @classmethod
    def of(cls, labels: Labels) -> _Groups:
        sizes = group_sizes(labels)
        return cls(labels, np.argsort(labels, kind="stable"), np.cumsum(sizes) - sizes, sizes)


def representatives(table: pa.Table, columns: Sequence[Column], labels: Labels) -> pa.Table:
    """One row per group 0..g-1, in order, with the given columns under their names and Arrow types.

    Raises ``DataRefused`` for a group without records, or a column whose kind has no representative.
    """
    if table.num_rows == 0 or table.num_rows != len(labels):
        raise DataRefused(f"each record needs a group, got {len(labels)} groups for {table.num_rows} records")
    groups = _Groups.of(labels)
    fields = [pa.field(column.name, column_of(table, column.name).type) for column in columns]
    arrays = [_represented(column_of(table, column.name), column, groups) for column in columns]
    return pa.table(arrays, schema=pa.schema(fields))


def rounded(table: pa.Table) -> pa.Table:
    """Numbers of 64 bits as the shortest decimals that name their 32 bits: half the bytes, seven digits.

    A column keeps all its digits where rounding would move one of its values by more than a millionth of the standard
    deviation of them all. This looks at representatives alone, so it tells nothing that they do not tell.
    """
    for place, field in enumerate(table.schema):
        if pt.is_float64(field.type):
            column = table.column(place)
            short = decimal(column.cast(pa.float32(), safe=False))
            if _moves_little(short.to_numpy(), column.to_numpy()):
                table = table.set_column(place, field, short)
    return table


def _moves_little(short: NDArray[np.float64], exact: NDArray[np.float64]) -> bool:
    present = np.isfinite(exact)
    if not present.any() or not np.isfinite(short[present]).all():
        return False
    most = ROUNDING * float(exact[present].std())
    return bool(np.abs(short[present] - exact[present]).max() <= most)


def _represented(values: pa.ChunkedArray, column: Column, groups: _Groups) -> pa.Array:
    """One column's representatives, by its kind."""
    if column.kind in NUMERIC:
        return _means(values, column, groups)
    if column.kind in {Kind.CATEGORY, Kind.BOOLEAN, Kind.ORDERED}:
        ranks = ranked(values, column.levels)
        pick = _medians if column.kind is Kind.ORDERED else _modes
        return _values_at(pick(ranks, groups), ranks.distinct, values.type)
    raise DataRefused(f"column '{column.name}' of type '{column.kind}' has no representative")


def _values_at(positions: Labels, distinct: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values by their rank, in the column's own type; the rank past the last is missing."""
    places = pa.array(positions, mask=positions == len(distinct))
    if not pt.is_dictionary(kind):
        return distinct.take(places).cast(kind)
    dictionary = distinct.cast(kind.value_type)
    return pa.DictionaryArray.from_arrays(places.cast(kind.index_type), dictionary, ordered=kind.ordered)


def _medians(ranks: Ranks, groups: _Groups) -> Labels:
    """(g,): the rank of the lower median of the values present; missing where at least half are missing."""
    missing = len(ranks.distinct)
    keys = np.sort(groups.labels.astype(np.int64) * (missing + 1) + ranks.positions)
    present = np.add.reduceat((ranks.positions < missing)[groups.order], groups.starts, dtype=np.int64)
    middle = keys[groups.starts + np.maximum(present - 1, 0) // 2] % (missing + 1)
    return np.where(2 * present > groups.sizes, middle, missing)


def _modes(ranks: Ranks, groups: _Groups) -> Labels:
    """(g,): the rank of the most frequent value, ties to the lowest rank; missing ranks last."""
    counted = tally(ranks.positions, groups.labels)
    width = len(counted.totals)
    best = np.maximum.reduceat(counted.count * width + (width - 1 - counted.level), first_pair(counted))
    return width - 1 - best % width


def _means(values: pa.ChunkedArray, column: Column, groups: _Groups) -> pa.Array:
    """Means over the values present; missing where more than half are missing."""
    found = quantities(values, column.name)
    ordered = Quantities(found.values[groups.order], found.present[groups.order])
    present = np.add.reduceat(ordered.present, groups.starts, dtype=np.int64)
    known = 2 * present >= groups.sizes
    divisor = np.maximum(present, 1)
    means = _integer_means if found.is_exact else _number_means
    return restored(means(ordered, groups, divisor), known, values.type)


def _integer_means(found: Quantities, groups: _Groups, divisor: Counts) -> NDArray[Any]:
    """Exact means, rounded half to even.

    Halves of 32 bits are summed apart, as no 64-bit integer could hold the sum of 64-bit integers. With
    sum = 2^32 h + l and n values, the quotient is 2^32 (h // n) + (2^32 (h mod n) + l) // n, where the last
    dividend stays below 2^63 for groups of less than 2^30 records.
    """
    high = np.add.reduceat((found.values >> 32).astype(np.int64), groups.starts)
    low = np.add.reduceat((found.values & 0xFFFFFFFF).astype(np.int64), groups.starts)
    upper, rest = np.divmod(high, divisor)
    lower, rest = np.divmod((rest << 32) + low, divisor)
    odd = lower & 1
    lower += (2 * rest > divisor) | ((2 * rest == divisor) & (odd == 1))
    return ((upper << 32) + lower).astype(np.int64).view(found.values.dtype)


def _number_means(found: Quantities, groups: _Groups, divisor: Counts) -> NDArray[np.float64]:
    """Means of floats that do not depend on the order of records.

    Each group's values are counted in units of a power of two, chosen from the largest of them so that their
    sum fits 64 bits; what is left below the unit is counted the same way in a second, finer unit. Sums of
    integers are exact in any order, and the two together hold more than the 53 bits of a float. The mean is
    kept between the least and the greatest value, so that equal values represent themselves exactly.
    """
    values = found.values + 0.0  # Negative zero becomes zero, or the sign would depend on the order.
    largest = np.maximum.reduceat(np.abs(values), groups.starts)
    bits = 62 - np.frexp(groups.sizes.astype(np.float64))[1]
    shift = bits - np.frexp(largest)[1]
    coarse = np.ldexp(values, np.repeat(shift, groups.sizes))
    units = np.rint(coarse)
    fine = np.rint(np.ldexp(coarse - units, np.repeat(bits, groups.sizes)))
    total = np.add.reduceat(units.astype(np.int64), groups.starts).astype(np.float64)
    rest = np.add.reduceat(fine.astype(np.int64), groups.starts).astype(np.float64)
    means = np.ldexp((total + np.ldexp(rest, -bits)) / divisor, -shift)
    return np.clip(means, *_extremes(values, found.present, groups))


def _extremes(values: NDArray[np.float64], present: NDArray[np.bool_], groups: _Groups) -> tuple[Any, Any]:
    """(g,) and (g,): least and greatest value present; infinite where none is."""
    least = np.minimum.reduceat(np.where(present, values, np.inf), groups.starts)
    greatest = np.maximum.reduceat(np.where(present, values, -np.inf), groups.starts)
    return least, np.maximum(greatest, least)
