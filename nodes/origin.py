"""Where a holder's table comes from: one file, many files of one format, or a query; read one column at a time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet

from federated_anon.columns import Column, Kind, Role
from federated_anon.errors import DataRefused
from nodes.conformity import Columns, conform
from nodes.database import Query
from nodes.scratch import Scratch
from nodes.set_source import long_sets
from nodes.source import KNOWN, MISSING, PARQUET, format_of, read_table, require_columns

WILD = frozenset("*?[")
SPELLED = frozenset({Kind.CATEGORY, Kind.ORDERED, Kind.TEXT})
"""Kinds whose spelling counts: a postal code 01234 must not be read as the number 1234."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A file, folder or pattern of files, or a query; how missing is spelled; and where arrays are kept."""

    place: Path | Query
    missing: tuple[str, ...] = MISSING
    scratch: Scratch = field(default_factory=Scratch)

    def declared(self, columns: Sequence[Column]) -> pa.Table:
        """The declared columns, as declared; keys and categories keep their leading zeros."""
        text = {column.name for column in columns if column.kind in SPELLED or column.role is Role.KEY}
        table = long_sets(self.place, columns) or self._opened(text)
        undeclared = [name for name in table.column_names if name not in {column.name for column in columns}]
        if undeclared:
            raise DataRefused(
                f"'{self.place}': columns without a role: {', '.join(undeclared)}; declare each, if only to drop it"
            )
        return conform(table, columns, self.scratch.keep)

    def _opened(self, text: Collection[str]) -> Columns:
        if isinstance(self.place, Query):
            table = self.place.fetched(self.scratch)
            require_columns(table)
            return table
        files = files_of(self.place)
        if format_of(files[0]) in PARQUET and (len(files) > 1 or self.scratch.folder):
            return _Parts(files)
        return joined([read_table(file, self.missing, text=text) for file in files], files)


def files_of(place: Path) -> list[Path]:
    """The file itself, the files of a folder and its folders, or those that a pattern matches; by name."""
    if place.is_dir():
        found = [file for file in place.rglob("*") if file.is_file() and format_of(file) in KNOWN]
    elif WILD & set(place.name) and not place.exists():
        found = [file for file in place.parent.glob(place.name) if file.is_file()]
    else:
        return [place]
    if not found:
        raise DataRefused(f"'{place}' has no file of a known format ({', '.join(sorted(KNOWN))})")
    if len(formats := {format_of(file) for file in found}) > 1:
        raise DataRefused(f"'{place}' has files of several formats: {', '.join(sorted(formats))}")
    return sorted(found)


def joined(tables: Sequence[pa.Table], files: Sequence[Path]) -> pa.Table:
    """All rows; every file has the same columns, in any order, of types that go together."""
    if len(tables) == 1:
        return tables[0]
    require_alike(files, [table.schema for table in tables])
    names = tables[0].column_names
    return pa.concat_tables([table.select(names) for table in tables], promote_options="permissive")


def require_alike(files: Sequence[Path], schemas: Sequence[pa.Schema]) -> pa.Schema:
    """The schema that all files fit in, or ``DataRefused`` that lists those which do not."""
    faults = []
    whole = schemas[0].remove_metadata()
    for file, schema in zip(files[1:], schemas[1:], strict=True):
        if other := set(schema.names) ^ set(whole.names):
            faults.append(f"'{file.name}' and '{files[0].name}' differ in: {', '.join(sorted(other))}")
            continue
        try:
            whole = pa.unify_schemas([whole, schema.remove_metadata()], promote_options="permissive")
        except pa.ArrowException:
            faults.append(f"'{file.name}' has columns of types that do not go together with the files before it")
    if faults:
        raise DataRefused("the files are not parts of one table:\n" + "\n".join(f"  {fault}" for fault in faults))
    return whole


class _Parts:
    """Parquet files as one table, read column by column."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = [_opened_parquet(file) for file in files]
        self._schema = require_alike(files, [file.schema_arrow for file in self._files])
        self.num_rows = sum(file.metadata.num_rows for file in self._files)
        require_columns(self._schema.empty_table(), self.num_rows)

    @property
    def column_names(self) -> list[str]:
        return list(self._schema.names)

    def column(self, name: str) -> pa.ChunkedArray:
        kind = self._schema.field(name).type
        try:
            parts = [file.read(columns=[name]).column(name).cast(kind) for file in self._files]
        except (pa.ArrowException, OSError):
            raise DataRefused("a Parquet file is broken or cut short") from None
        return pa.chunked_array([chunk for part in parts for chunk in part.chunks], kind)


def _opened_parquet(file: Path) -> parquet.ParquetFile:
    try:
        return parquet.ParquetFile(file, memory_map=True)
    except FileNotFoundError:
        raise DataRefused(f"'{file}' does not exist") from None
    except (pa.ArrowException, OSError):
        raise DataRefused(f"'{file}' is no readable Parquet file: broken, cut short or of another format") from None
