"""Tables in as few bytes as hold them exactly: narrow columns, the type that they had beside them.

Integers, dates and timestamps travel as the smallest integers that hold them. A number travels as 32 bits if the
shortest decimal that names those 32 bits is the number itself, as it is for all that ``representatives.rounded`` made.
Nothing is compressed: a column grows at most eightfold when it is read, whatever a sender writes.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from federated_anon.errors import MessageRefused
from federated_anon.quantities import decimal

MEANT = b"meant"
"""Metadata of a field: the type that its column has when it is not narrow."""

_INTEGERS = (pa.int8(), pa.int16(), pa.int32())
_STAMPS = tuple(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns"))
_WIDE = {str(one): one for one in (pa.int16(), pa.int32(), pa.int64(), pa.date32(), pa.date64(), *_STAMPS)}
_NUMBER = str(pa.float64())


def narrowed(table: pa.Table) -> pa.Table:
    """``table`` with every column as narrow as it can be without loss."""
    columns = [_narrow(column) for column in table.columns]
    fields = [
        pa.field(field.name, column.type, field.nullable, {MEANT: str(field.type)})
        if column.type != field.type
        else field.with_metadata(None)
        for field, column in zip(table.schema, columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def widened(table: pa.Table) -> pa.Table:
    """The table that ``narrowed`` was given; ``MessageRefused`` for a type that no column is narrowed from."""
    columns = [_wide(field, column) for field, column in zip(table.schema, table.columns, strict=True)]
    fields = [pa.field(f.name, c.type, f.nullable) for f, c in zip(table.schema, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _narrow(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pt.is_float64(column.type):
        short = column.cast(pa.float32(), safe=False)
        return short if _is_same(decimal(short), column) else column
    if str(column.type) not in _WIDE or len(column) == column.null_count:
        return column
    whole = column if pt.is_integer(column.type) else column.cast(_whole(column.type))
    ends = pc.min_max(whole).as_py()
    for kind in _INTEGERS:
        half = 1 << (kind.bit_width - 1)
        if kind.bit_width < whole.type.bit_width and -half <= ends["min"] and ends["max"] < half:
            return whole.cast(kind)
    return column


def _is_same(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    """Whether all values are equal, and no zero has lost its sign."""
    is_equal = pc.and_(pc.equal(one, other), pc.equal(pc.divide(1.0, one), pc.divide(1.0, other)))
    return pc.all(is_equal).as_py() is not False


def _whole(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if pt.is_date32(kind) else pa.int64()


def _wide(field: pa.Field, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column as it was meant; only steps that ``_narrow`` takes are taken back."""
    meant = (field.metadata or {}).get(MEANT, b"").decode(errors="replace")
    if not meant:
        return column
    if meant == _NUMBER and pt.is_float32(field.type):
        return decimal(column)
    kind = _WIDE.get(meant)
    if kind is None or field.type not in _INTEGERS or field.type.bit_width >= kind.bit_width:
        raise MessageRefused("a column that no type was narrowed to")
    return column.cast(kind if pt.is_integer(kind) else _whole(kind)).cast(kind)
