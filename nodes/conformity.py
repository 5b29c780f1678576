"""A table made to agree with its declared columns, or refused with every reason at once.

Faults state counts and row numbers (from 1, without the header), never a value: they may end in a log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from federated_anon.columns import LEVELLED, Column, Kind, Role
from federated_anon.errors import DataRefused
from federated_anon.quantities import DECIMAL_DIGITS, as_floats, as_integers, fractional
from federated_anon.tally import plain

BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
"""Spellings of a boolean, in any case."""


class _Fault(Exception):
    """Why one column cannot be used."""


class Columns(Protocol):
    """A table of which one column at a time is wanted; a ``pyarrow.Table`` is one."""

    @property
    def column_names(self) -> list[str]:
        """Their names."""

    @property
    def num_rows(self) -> int:
        """How long they are."""

    def column(self, name: str) -> pa.ChunkedArray:
        """One of them."""


def conform(
    table: Columns, columns: Sequence[Column], keep: Callable[[pa.Array], pa.Array] = lambda array: array
) -> pa.Table:
    """The declared columns, in declared order, cast to their kinds; ``DataRefused`` lists all faults.

    One column at a time is read, and handed to ``keep``, which says where it is kept.

    Narrow types stay as the file has them (int8, float32, a timestamp's unit and zone, dictionaries). NaN
    becomes missing. Identifiers are never used, so they pass unchecked.
    """
    arrays, faults = [], _name_faults(table, columns)
    for column in columns:
        if column.name in table.column_names:
            try:
                arrays.append(keep(_conformed(table.column(column.name), column)))
            except _Fault as fault:
                faults.append(f"column '{column.name}': {fault}")
    if faults:
        count = f"{len(faults)} fault" + ("s" if len(faults) > 1 else "")
        raise DataRefused(f"table refused, {count}:\n" + "\n".join(f"  {fault}" for fault in faults))
    return pa.table(arrays, names=[column.name for column in columns])


def _name_faults(table: Columns, columns: Sequence[Column]) -> list[str]:
    """Columns that the table does not have, with those it has; and a table without rows."""
    unknown = [column.name for column in columns if column.name not in table.column_names]
    known = ", ".join(sorted(table.column_names))
    faults = [f"no column '{name}'; known columns: {known}" for name in unknown]
    return faults if table.num_rows else [*faults, "the table has no rows"]


def _conformed(values: pa.ChunkedArray, column: Column) -> pa.Array:
    """One column cast to its kind and checked."""
    array = values.combine_chunks()
    if column.role is Role.IDENTIFIER:
        return array
    array = _CASTS[column.kind](_readable(array), column.kind)
    if array.null_count == len(array):
        raise _Fault("every value is missing; drop it (role identifier)")
    if column.levels and column.kind in LEVELLED:
        _require_levels(array, column.levels)
    return array


def _readable(array: pa.Array) -> pa.Array:
    """Bytes as text, NaN and nulls hidden in a dictionary as missing."""
    if pt.is_binary(array.type) or pt.is_large_binary(array.type):
        return _attempt(lambda: array.cast(pa.string()), "bytes that are not UTF-8 text")
    if pt.is_dictionary(array.type) and array.dictionary.null_count:
        return plain(array).dictionary_encode().cast(array.type)
    if not pt.is_floating(array.type):
        return array
    values = array.to_numpy(zero_copy_only=False)
    if (infinite := np.isinf(values)).any():
        raise _Fault(_counted(infinite, "infinite values") + "; mend them, or leave them empty")
    return pa.array(values, type=array.type, mask=np.isnan(values))


def _counted(bad: NDArray[np.bool_], what: str) -> str:
    """How many values are bad and where the first is."""
    return f"{what}: {int(bad.sum())}, the first in row {int(bad.argmax()) + 1}"


def _attempt(cast: Callable[[], pa.Array], fault: str) -> pa.Array:
    """A cast that keeps every value, or the fault."""
    try:
        return cast()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise _Fault(fault) from None


def _wrong_type(array: pa.Array, kind: Kind) -> _Fault:
    return _Fault(f"the file holds {array.type}, which cannot be read as type '{kind}'")


def _is_text(array: pa.Array) -> bool:
    kind = array.type.value_type if pt.is_dictionary(array.type) else array.type
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))


def _trimmed(array: pa.Array) -> pa.Array:
    """Text without the white space around it; nothing but white space is missing."""
    text = pc.utf8_trim_whitespace(plain(array))
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, text.type), text)


def _parsed(array: pa.Array, targets: Sequence[pa.DataType], kind: Kind) -> pa.Array:
    """Text as the first of the target types that reads all of it."""
    text = pc.replace_substring_regex(_trimmed(array), r"^\+([0-9.])", r"\1")
    for target in targets:
        try:
            return text.cast(target)
        except pa.ArrowInvalid:
            continue
    bad = _unreadable(text, targets)
    if not bad.any():
        raise _Fault(f"values that are each a {kind}, but not of one type: {' or '.join(map(str, targets))}")
    raise _Fault(_counted(bad, f"values that are not of type '{kind}'") + "; mend them, or leave them empty")


def _unreadable(text: pa.Array, targets: Sequence[pa.DataType]) -> NDArray[np.bool_]:
    """(n,): which values no type reads; one by one, as this is only asked on the way to a refusal."""
    distinct = pc.unique(text).drop_null()
    bad = [value for value in distinct if not any(_can_cast(value, target) for target in targets)]
    return np.asarray(pc.is_in(text, value_set=pa.array(bad, text.type)).to_numpy(zero_copy_only=False))


def _can_cast(value: pa.Scalar, target: pa.DataType) -> bool:
    try:
        value.cast(target)
    except pa.ArrowInvalid:
        return False
    return True


def _number(array: pa.Array, kind: Kind) -> pa.Array:
    if pt.is_floating(array.type):
        return array
    if pt.is_integer(array.type) or pt.is_null(array.type):
        return array.cast(pa.float64(), safe=False)
    if pt.is_decimal(array.type):
        limit = pa.decimal128(DECIMAL_DIGITS, array.type.scale)
        _attempt(lambda: array.cast(limit), f"decimals of more than {DECIMAL_DIGITS} digits")
        return array
    if _is_text(array):
        return _readable(_parsed(array, [pa.float64()], kind))
    raise _wrong_type(array, kind)


def _integer(array: pa.Array, kind: Kind) -> pa.Array:
    if pt.is_integer(array.type):
        return array
    if pt.is_floating(array.type):
        return _whole(array)
    if pt.is_decimal(array.type):
        return _attempt(lambda: array.cast(pa.int64()), "decimals that are not 64-bit integers")
    if _is_text(array) or pt.is_null(array.type):
        return _parsed(array.cast(pa.string()), [pa.int64(), pa.uint64()], kind)
    raise _wrong_type(array, kind)


def _whole(array: pa.Array) -> pa.Array:
    """Floats without a fraction, as integers."""
    values = as_floats(array)
    if (bad := fractional(values)).any():
        raise _Fault(_counted(bad, "values that are not exact integers"))
    return as_integers(values)


def _boolean(array: pa.Array, kind: Kind) -> pa.Array:
    if pt.is_boolean(array.type):
        return array
    if pt.is_integer(array.type) or pt.is_floating(array.type) or _is_text(array):
        whole = array if _is_text(array) else _integer(array, kind)
        spelled = pc.utf8_lower(_trimmed(whole.cast(pa.string())))
        place = pc.index_in(spelled, value_set=pa.array(BOOLEANS))
        if (bad := pc.and_(pc.is_null(place), pc.is_valid(spelled)).to_numpy(zero_copy_only=False)).any():
            raise _Fault(_counted(bad, "values that are not boolean") + f"; allowed: {', '.join(BOOLEANS)}")
        return pa.array(BOOLEANS.values()).take(place)
    raise _wrong_type(array, kind)


def _category(array: pa.Array, kind: Kind) -> pa.Array:
    """Text, dictionaries and codes as they are; floats must be codes stored as floats."""
    if pt.is_floating(array.type):
        return _whole(array)
    if pt.is_nested(array.type):
        raise _wrong_type(array, kind)
    return array.cast(pa.string()) if pt.is_null(array.type) else array


def _require_levels(array: pa.Array, levels: Sequence[str]) -> None:
    spelled = plain(array).cast(pa.string())
    known = pc.is_in(spelled, value_set=pa.array(levels, pa.string()))
    bad = pc.and_not(pc.is_valid(spelled), known).to_numpy(zero_copy_only=False)
    if bad.any():
        raise _Fault(_counted(bad, "values outside its levels"))


def _date(array: pa.Array, kind: Kind) -> pa.Array:
    if pt.is_date(array.type):
        return array
    if pt.is_timestamp(array.type):
        return _day(array)
    if _is_text(array) or pt.is_null(array.type):
        return _parsed(array.cast(pa.string()), [pa.date32()], kind)
    raise _wrong_type(array, kind)


def _day(array: pa.Array) -> pa.Array:
    """Timestamps at midnight of their own zone, as dates."""
    local = pc.local_timestamp(array) if array.type.tz else array
    days = local.cast(pa.date32())
    late = pc.not_equal(days.cast(local.type), local).fill_null(False).to_numpy(zero_copy_only=False)
    if late.any():
        raise _Fault(_counted(late, "dates with a time of day"))
    return days


def _timestamp(array: pa.Array, kind: Kind) -> pa.Array:
    if pt.is_timestamp(array.type):
        return array
    if pt.is_date(array.type):
        return array.cast(pa.timestamp("s" if pt.is_date32(array.type) else "ms"))
    if _is_text(array) or pt.is_null(array.type):
        targets = [pa.timestamp(unit, zone) for unit in ("s", "us", "ns") for zone in (None, "UTC")]
        return _parsed(array.cast(pa.string()), targets, kind)
    raise _wrong_type(array, kind)


def _text(array: pa.Array, kind: Kind) -> pa.Array:
    if _is_text(array):
        return array
    if pt.is_nested(array.type):
        raise _wrong_type(array, kind)
    return (_whole(array) if pt.is_floating(array.type) else array).cast(pa.string())


def _set(array: pa.Array, kind: Kind) -> pa.Array:
    if pt.is_list(array.type) or pt.is_large_list(array.type):
        return array
    raise _wrong_type(array, kind)


_CASTS: dict[Kind, Callable[[pa.Array, Kind], Any]] = {
    Kind.NUMBER: _number,
    Kind.INTEGER: _integer,
    Kind.BOOLEAN: _boolean,
    Kind.ORDERED: _category,
    Kind.CATEGORY: _category,
    Kind.DATE: _date,
    Kind.TIMESTAMP: _timestamp,
    Kind.TEXT: _text,
    Kind.SET: _set,
}
