"""Sets that a file does not hold as a list column: a long table of people and items, or one set per line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pyarrow.types as pt

from federated_anon.columns import Column, Role
from federated_anon.setvalued.formats import read_people
from nodes.source import ARROW, KNOWN, PARQUET, format_of


def long_sets(place: object, columns: Sequence[Column]) -> pa.Table | None:
    """People with their sets, under the names of the key and of the one set-valued column; None for other files.

    A text table with a set-valued column has one row per person and item; a Parquet file too, unless that column holds
    lists. A file of an unknown suffix has one set per line, and the line's number is the key.
    """
    sets = [column.name for column in columns if column.role is Role.SET]
    keys = [column.name for column in columns if column.role is Role.KEY]
    if len(sets) != 1 or len(keys) != 1 or not isinstance(place, Path) or not place.is_file():
        return None
    suffix = format_of(place)
    if suffix in ARROW or (suffix in PARQUET and _has_lists(place, sets[0])):
        return None
    if suffix in KNOWN and len(columns) > 2:
        return None
    return read_people(place, keys[0], sets[0])


def _has_lists(place: Path, column: str) -> bool:
    try:
        schema = parquet.read_schema(place)
    except (pa.ArrowException, OSError):
        return True  # The reader of tables says what is wrong with it.
    kind = schema.field(column).type if column in schema.names else pa.list_(pa.int8())
    return bool(pt.is_list(kind) or pt.is_large_list(kind))
