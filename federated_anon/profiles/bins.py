"""A column before and after, as counts in bins that hold at least k people each and whose edges are nobody's value.

Numbers are cut at multiples of a round step, dates at the turn of years or months; the outermost bins are open, so
that neither the least nor the greatest value is told. A bin below k joins its smaller neighbour. Categories are
counted by name only where the release itself shows the name; all others are one bin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from federated_anon.columns import NUMERIC, Column, Kind
from federated_anon.quantities import quantities
from federated_anon.tally import Values, plain

MOST_BINS = 10
PEOPLE_PER_COUNT = 8
"""As many counts as people would be as many equations as unknowns; so there is one count for so many at most."""

ROUND = (1.0, 2.0, 5.0, 10.0)
MONTHS = (1, 3, 6, 12, 24, 60, 120, 240, 600, 1200)
MONTH_DAYS = 30.44
OTHERS, MISSING = "others", "missing"

Amounts = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Bins:
    """Counts per bin; ``edges`` stand between the bins of an ordered scale, none where bins are names."""

    labels: tuple[str, ...]
    edges: tuple[str, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]


def column_bins(before: Values, after: Values, column: Column, k: int) -> Bins:
    """Both sides of a column in common bins, each of at least ``k`` people before (or one bin of everybody)."""
    most = max(1, min(MOST_BINS, len(before) // max(2 * k, PEOPLE_PER_COUNT)))
    return (
        _of_amounts(before, after, column, k, most)
        if column.kind in NUMERIC
        else _of_names(before, after, column, k, most)
    )


def _of_amounts(before: Values, after: Values, column: Column, k: int, most: int) -> Bins:
    first, second = _amounts(before, column), _amounts(after, column)
    present = first[~np.isnan(first)]
    is_date = column.kind in (Kind.DATE, Kind.TIMESTAMP)
    edges = (_calendar if is_date else _round_edges)(present, column.kind is Kind.INTEGER)
    edges = _merged(edges, present, k, most)
    gone = len(first) - len(present)
    apart = gone >= k and len(present) >= k
    sides = [_counted(side, edges, apart) for side in (first, second)]
    texts = [_day(edge) for edge in edges] if is_date else _spelled(edges)
    labels = [*_between(texts, edges, column.kind is Kind.INTEGER), *([MISSING] if apart else [])]
    return Bins(tuple(labels), tuple(texts), *(tuple(int(n) for n in side) for side in sides))


def _amounts(values: Values, column: Column) -> Amounts:
    """The column as floats, NaN where missing; dates and timestamps in days."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if pt.is_decimal(array.type):
        array = array.cast(pa.float64())
    scale = 1.0
    if pt.is_timestamp(array.type):
        array, scale = array.cast(pa.timestamp("us", tz=array.type.tz), safe=False), 86_400e6
    found = quantities(array, column.name)
    return np.where(found.present, found.values.astype(np.float64) / scale, np.nan)


def _round_edges(present: Amounts, whole: bool) -> Amounts:
    """Multiples of a round step that cut the middle nine tenths into about eight."""
    low, high = _middle(present)
    if not low < high or not np.isfinite(high - low):
        return np.zeros(0)
    rough = (high - low) / 8
    power = 10.0 ** np.floor(np.log10(rough))
    step = power * next(factor for factor in ROUND if factor * power >= rough * (1 - 1e-9))
    step = max(step, 1.0) if whole else step
    first = np.floor(low / step) + 1
    return (first + np.arange(int((high - first * step) // step) + 2)) * step


def _calendar(present: Amounts, whole: bool) -> Amounts:
    """The first days of years or months, in days since 1970, that cut the middle nine tenths into about eight."""
    low, high = _middle(present)
    if not low < high:
        return np.zeros(0)
    wanted = (high - low) / 8 / MONTH_DAYS
    step = next((months for months in MONTHS if months >= wanted), MONTHS[-1])
    start, end = (int(np.datetime64(int(day), "D").astype("datetime64[M]").astype(int)) for day in (low, high))
    months = np.arange((start // step + 1) * step, end + step + 1, step)
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.float64)


def _middle(present: Amounts) -> tuple[float, float]:
    """Where the middle nine tenths lie; all of it where nine tenths are one value."""
    if len(present) == 0:
        return 0.0, 0.0
    low, high = np.quantile(present, [0.05, 0.95], method="nearest")
    return (float(low), float(high)) if low < high else (float(present.min()), float(present.max()))


def _merged(edges: Amounts, present: Amounts, k: int, most: int) -> Amounts:
    """Drop edges until every bin holds at least ``k`` and there are at most ``most`` bins."""
    kept = list(edges)
    counts = list(np.bincount(np.searchsorted(edges, present, side="right"), minlength=len(edges) + 1))
    while kept and (min(counts) < k or len(counts) > most):
        small = int(np.argmin(counts))
        beside = [place for place in (small - 1, small + 1) if 0 <= place < len(counts)]
        left = min(small, min(beside, key=lambda place: (counts[place], place)))
        counts[left : left + 2] = [counts[left] + counts[left + 1]]
        del kept[left]
    return np.array(kept, dtype=np.float64)


def _counted(side: Amounts, edges: Amounts, apart: bool) -> Counts:
    """People per bin; those without a value are a bin, or where they are few they count with the fullest one."""
    present = side[~np.isnan(side)]
    counts = np.bincount(np.searchsorted(edges, present, side="right"), minlength=len(edges) + 1)
    gone = len(side) - len(present)
    if apart:
        return np.append(counts, gone)
    counts[int(np.argmax(counts))] += gone
    return counts


def _of_names(before: Values, after: Values, column: Column, k: int, most: int) -> Bins:
    first, second = _by_name(before), _by_name(after)
    told = sorted((name for name in first if name in second), key=lambda name: (-first[name], name))
    told = [name for name in told if first[name] >= k][:most]
    while told and 0 < _rest(first, told) < k:
        told.pop()
    if column.kind is Kind.ORDERED:
        told.sort(key=lambda name: column.levels.index(name) if name in column.levels else len(column.levels))
    others = [OTHERS] if _rest(first, told) or _rest(second, told) else []
    sides = [(*(side[name] for name in told), *(_rest(side, told) for _ in others)) for side in (first, second)]
    return Bins((*told, *others), (), *sides)


def _rest(side: Mapping[str, int], told: Sequence[str]) -> int:
    """People whose value is not told by name."""
    return sum(side.values()) - sum(side[name] for name in told)


def _by_name(values: Values) -> dict[str, int]:
    """People per value by its spelling; missing is a value like any other."""
    counted = pc.value_counts(plain(values).cast(pa.large_string()))
    names = [MISSING if name is None else name for name in counted.field("values").to_pylist()]
    found: dict[str, int] = {}
    for name, count in zip(names, counted.field("counts").to_pylist(), strict=True):
        found[name] = found.get(name, 0) + count
    return found


def _between(texts: Sequence[str], edges: Amounts, whole: bool) -> list[str]:
    """Names of the bins between edges."""
    if not texts:
        return ["all"]
    inner = [
        low if whole and above - below == 1 else f"{low} to {high}"
        for low, high, below, above in zip(texts, texts[1:], edges, edges[1:], strict=False)
    ]
    return [f"under {texts[0]}", *inner, f"{texts[-1]} or more"]


def _spelled(edges: Amounts) -> list[str]:
    """Round numbers with as many digits as their step needs."""
    if len(edges) == 0:
        return []
    largest = float(np.abs(edges).max())
    if largest >= 1e9 or largest < 1e-4:
        return [f"{edge:.3g}" for edge in edges]
    digits = next((d for d in range(9) if np.allclose(np.round(edges, d), edges, rtol=0, atol=1e-9)), 9)
    return [f"{edge:,.{digits}f}" for edge in edges]


def _day(edge: float) -> str:
    """The first day of a year as that year, of a month as that month."""
    month = str(np.datetime64(int(edge), "D").astype("datetime64[M]"))
    return month.removesuffix("-01")
