"""Columns that have a mean, as numpy arrays and back: numbers, integers, decimals, dates, timestamps.

Everything that a machine stores as an integer stays one (days, ticks of a timestamp, units of a decimal's
last place), so that nothing is rounded on the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from federated_anon.errors import DataRefused
from federated_anon.tally import is_present

DECIMAL_DIGITS = 18
"""Decimals are counted in units of their last place; more digits than this would not fit 64 bits."""

EXACT_FLOAT = 2**53
"""Beyond it a float no longer tells neighbouring integers apart."""


@dataclass(frozen=True, slots=True)
class Quantities:
    """``values`` (n,): int64, uint64 or float64, 0 where ``present`` (n,) is false; NaN is not present."""

    values: NDArray[Any]
    present: NDArray[np.bool_]

    @property
    def is_exact(self) -> bool:
        """Whether the values are integers."""
        return self.values.dtype.kind in "iu"


def has_quantities(kind: pa.DataType) -> bool:
    """Whether values of this Arrow type have a mean."""
    return any(test(kind) for test in (pt.is_integer, pt.is_floating, pt.is_decimal, pt.is_date, pt.is_timestamp))


def quantities(column: pa.Array | pa.ChunkedArray, name: str) -> Quantities:
    """The values of a column that has a mean; ``DataRefused`` for any other, by the column's name."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pt.is_null(array.type):
        array = array.cast(pa.float64())
    if not has_quantities(array.type):
        raise DataRefused(f"column '{name}' holds {array.type}, which has no mean")
    values, present = _stored(array), is_present(array)
    if values.dtype.kind == "f":
        present = present & ~np.isnan(values)
    return Quantities(np.where(present, values, values.dtype.type(0)), present)


def fractional(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(n,): which floats are not exact integers; NaN is none, and missing."""
    return ~np.isnan(values) & ((values != np.floor(values)) | (np.abs(values) > EXACT_FLOAT))


def as_integers(values: NDArray[np.float64]) -> pa.Array:
    """Floats without a fraction as integers: how tools that know no missing integers store them."""
    return pa.array(np.nan_to_num(values).astype(np.int64), mask=np.isnan(values))


def as_floats(array: pa.Array) -> NDArray[np.float64]:
    """A column of floats with NaN where missing."""
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.float64)


def restored(values: NDArray[Any], present: NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    """Numbers as ``quantities`` gives them, as an Arrow array of the given type again."""
    missing = ~present
    if pt.is_decimal(kind):
        return _decimals(values, missing, kind.scale).cast(kind)
    if pt.is_date64(kind):
        return restored(values, present, pa.date32()).cast(kind)
    if pt.is_date32(kind):
        return pa.array(values.astype(np.int32), mask=missing).cast(kind)
    if pt.is_timestamp(kind):
        return pa.array(values.astype(np.int64), mask=missing).cast(kind)
    return pa.array(values.astype(kind.to_pandas_dtype()), type=kind, mask=missing)


def _stored(array: pa.Array) -> NDArray[Any]:
    """The stored numbers, anything where missing."""
    if pt.is_decimal(array.type):
        return _last_places(array)
    if pt.is_date(array.type):
        array = array.cast(pa.date32()).cast(pa.int32())
    target = pa.float64() if pt.is_floating(array.type) else pa.int64()
    target = pa.uint64() if pt.is_uint64(array.type) else target
    if pt.is_float16(array.type):
        return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.float64)
    return np.asarray(array.cast(target).fill_null(0).to_numpy(zero_copy_only=False))


def _last_places(array: pa.Array) -> NDArray[np.int64]:
    """Decimals in units of their last place: the low words of their 128-bit integers."""
    narrow = array.cast(pa.decimal128(DECIMAL_DIGITS, array.type.scale))
    words = np.frombuffer(narrow.buffers()[1], dtype=np.int64)
    return words[2 * narrow.offset : 2 * (narrow.offset + len(narrow)) : 2]


def _decimals(places: NDArray[Any], missing: NDArray[np.bool_], scale: int) -> pa.Array:
    """Decimals from units of their last place: each 64-bit integer is extended by its sign to 128 bits."""
    low = places.astype(np.int64)
    words = np.column_stack([low, low >> 63])
    validity = pa.array(~missing).buffers()[1]
    return pa.Array.from_buffers(
        pa.decimal128(DECIMAL_DIGITS, scale), len(low), [validity, pa.py_buffer(words.tobytes())]
    )


def decimal(short: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers of 64 bits with the shortest decimals that name these of 32 bits."""
    return short.cast(pa.string()).cast(pa.float64())
