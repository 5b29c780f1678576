"""What a column is: its role in the study and the kind of its values.

Roles are always declared, never guessed: a wrong guess publishes somebody's identifier. Kinds may be
inferred by tools that look at data before a study exists (``init``, ``simulate``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

MOST_LEVELS = 1000
"""Most distinct values of a category that stands in a distance, where each takes one dimension."""

INTEGER = r"^\s*[+-]?[0-9]+\s*$"
NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"
"""How numbers are spelled in text."""


class Role(StrEnum):
    """What the study does with a column."""

    IDENTIFIER = "identifier"
    KEY = "key"
    QUASI = "quasi-identifier"
    SENSITIVE = "sensitive"
    SET = "set-valued"
    KEEP = "keep"
    WISH = "wish"


class Kind(StrEnum):
    """What the values of a column are."""

    NUMBER = "number"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    ORDERED = "ordered"
    CATEGORY = "category"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TEXT = "text"
    SET = "set"


NUMERIC = frozenset({Kind.NUMBER, Kind.INTEGER, Kind.DATE, Kind.TIMESTAMP})
"""Kinds whose values have a mean."""

UNORDERED = frozenset({Kind.BOOLEAN, Kind.CATEGORY, Kind.TEXT})
"""Kinds whose values have no order."""

BOUNDED = frozenset({Kind.NUMBER, Kind.INTEGER})
"""Kinds that may declare bounds, which noise needs."""

LEVELLED = frozenset({Kind.ORDERED, Kind.CATEGORY})
"""Kinds that may declare their levels."""


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column; ``levels`` are its allowed values, in order (needed for ``ordered``).

    ``bounds`` are known from what the column means, never from the data: noise is measured by them.
    """

    name: str
    role: Role
    kind: Kind
    weight: float = 1.0
    levels: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None


def column_faults(column: Column) -> list[str]:
    """All that is wrong with one declaration, as sentences; an empty list means it can be used."""
    faults = [*_role_faults(column), *_level_faults(column), *_bound_faults(column)]
    if not column.name.strip():
        faults.append("a column needs a name")
    if not (math.isfinite(column.weight) and column.weight > 0):
        faults.append(f"the weight must be a positive number, got {column.weight}")
    where = f"column '{column.name}': "
    return [where + fault for fault in faults]


def _role_faults(column: Column) -> list[str]:
    """A set-valued role and a set go together, wishes are whole numbers, free text can be neither generalised
    nor compared."""
    faults = []
    if (column.role is Role.SET) != (column.kind is Kind.SET) and column.role is not Role.IDENTIFIER:
        faults.append(f"role '{Role.SET}' and type '{Kind.SET}' go together, got '{column.role}', '{column.kind}'")
    if column.role is Role.WISH and column.kind is not Kind.INTEGER:
        faults.append(f"wishes for a personal k are of type '{Kind.INTEGER}', got '{column.kind}'")
    if column.role is Role.QUASI and column.kind is Kind.TEXT:
        faults.append("free text cannot be a quasi-identifier; declare a category, or drop it as an identifier")
    return faults


def _level_faults(column: Column) -> list[str]:
    """Levels are needed for an ordered column, allowed for a category, and never repeated."""
    faults = []
    if column.kind is Kind.ORDERED and len(column.levels) < 2:
        faults.append("an ordered column needs at least two levels, lowest first")
    if column.levels and column.kind not in LEVELLED:
        faults.append(f"levels are for ordered columns and categories, not for type '{column.kind}'")
    repeated = sorted({level for level in column.levels if column.levels.count(level) > 1})
    if repeated:
        faults.append(f"levels named more than once: {', '.join(repeated)}")
    return faults


def _bound_faults(column: Column) -> list[str]:
    """Bounds are two different numbers, of a column of numbers; between those of integers lies at least one."""
    if column.bounds is None:
        return []
    low, high = column.bounds
    if column.kind not in BOUNDED:
        return [f"bounds are for numbers and integers, not for type '{column.kind}'"]
    if not (math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(high - low)):
        return [f"bounds are a lower and a higher number, got {low} and {high}"]
    if column.kind is Kind.INTEGER and (math.ceil(low) > math.floor(high) or max(-low, high) > 2**52):
        return ["bounds of integers have an integer between them and stay within 2^52"]
    return []


def infer_kind(array: pa.ChunkedArray) -> Kind:
    """The kind that the values suggest, for tools that look at data; a study declares it instead.

    Strings are categories, except for names or remarks: more than ``MOST_LEVELS`` distinct values, or more than 50
    that on average occur less than ten times each; and for numbers with some stray text: more than ten distinct
    values, and nine in ten records a number but not all. That column then fails as a number, with the rows to
    mend, where a category would hide them. A column without any value is a category.
    """
    kind = _kind_of_type(array.type)
    if kind is not Kind.CATEGORY or pt.is_null(array.type):
        return kind
    counted = pc.value_counts(_plain(array).drop_null())
    if meant := _number_with_strays(counted.field("values"), counted.field("counts")):
        return meant
    many = len(counted) > MOST_LEVELS or (len(counted) > 50 and len(counted) * 10 > len(array))
    return Kind.TEXT if many else kind


def _number_with_strays(values: pa.Array, counts: pa.Array) -> Kind | None:
    """The kind of number that nine in ten records, but not all, spell out; ``None`` if they do not."""
    if not (pt.is_string(values.type) or pt.is_large_string(values.type)):
        return None
    text = values.cast(pa.string())
    is_number, records = pc.match_substring_regex(text, NUMBER), pc.sum(counts).as_py() or 0
    numbers = pc.sum(counts.filter(is_number)).as_py() or 0
    if len(values) <= 10 or not 0.9 * records <= numbers < records:
        return None
    whole = pc.all(pc.match_substring_regex(text.filter(is_number), INTEGER)).as_py()
    return Kind.INTEGER if whole else Kind.NUMBER


def infer_column(name: str, role: Role, array: pa.ChunkedArray) -> Column:
    """A declaration with the inferred kind, and the levels of an ordered dictionary in its own order."""
    kind = infer_kind(array)
    if kind is not Kind.ORDERED:
        return Column(name, role, kind)
    return Column(name, role, kind, levels=dictionary_levels(array))


def dictionary_levels(array: pa.ChunkedArray) -> tuple[str, ...]:
    """The values of a dictionary-encoded column in the dictionary's own order; empty for any other column."""
    if not pt.is_dictionary(array.type) or array.num_chunks == 0:
        return ()
    dictionary = array.unify_dictionaries().chunk(0).dictionary
    return tuple(value for value in dictionary.cast(pa.string()).to_pylist() if value is not None)


def _plain(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same values without dictionary encoding."""
    return array.cast(array.type.value_type) if pt.is_dictionary(array.type) else array


def _kind_of_type(kind: pa.DataType) -> Kind:
    """The kind that an Arrow type alone suggests."""
    for is_type, answer in (
        (pt.is_boolean, Kind.BOOLEAN),
        (pt.is_integer, Kind.INTEGER),
        (pt.is_floating, Kind.NUMBER),
        (pt.is_decimal, Kind.NUMBER),
        (pt.is_date, Kind.DATE),
        (pt.is_timestamp, Kind.TIMESTAMP),
        (pt.is_list, Kind.SET),
        (pt.is_large_list, Kind.SET),
        (pt.is_nested, Kind.TEXT),
    ):
        if is_type(kind):
            return answer
    return Kind.ORDERED if pt.is_dictionary(kind) and kind.ordered else Kind.CATEGORY
