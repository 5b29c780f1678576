"""A data file as a table, told by its suffix; every fault of it is a ``DataRefused`` that quotes no value."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.ipc as ipc
import pyarrow.parquet as parquet
import pyarrow.types as pt

from federated_anon.errors import DataRefused

MISSING = ("", "NA", "NaN", "null", "?")
"""Spellings of a missing value in a text file; typed files say themselves what is missing."""

SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = frozenset({".parquet", ".pq"})
ARROW = frozenset({".arrow", ".feather", ".ipc"})

KNOWN = frozenset({*SEPARATORS, *PARQUET, *ARROW})

BLOCK = 1 << 24
"""Bytes looked at together when a text file is checked."""


def read_table(path: str | Path, missing: Sequence[str] = MISSING, *, text: Collection[str] = ()) -> pa.Table:
    """The whole of a CSV (also ``.csv.gz``, ``.tsv``), Parquet or Arrow IPC/Feather file, told by its suffix.

    The types of a text file are inferred, except for the columns named in ``text``, which stay as spelled.
    Every fault of the file is a ``DataRefused`` that names the path as it was given and quotes no value.
    """
    try:
        _require_file(Path(path))
        table = _read(Path(path), missing, text)
        require_columns(table)
    except DataRefused as error:
        raise DataRefused(f"'{path}' {error}") from None
    return table.replace_schema_metadata(None)


def _require_file(path: Path) -> None:
    try:
        if path.is_dir():
            raise DataRefused("is a folder, a file is needed")
        if path.stat().st_size == 0:
            raise DataRefused("is empty")
    except FileNotFoundError:
        raise DataRefused("does not exist") from None
    except OSError as error:
        raise DataRefused(f"cannot be read: {error.strerror}") from None


def _read(path: Path, missing: Sequence[str], text: Collection[str]) -> pa.Table:
    """The table by the file's suffix; what pyarrow says is not passed on, since it quotes values."""
    suffix = format_of(path)
    try:
        if suffix in SEPARATORS:
            return _read_text(path, SEPARATORS[suffix], missing, text)
        if suffix in PARQUET:
            return parquet.ParquetFile(path).read()
        if suffix in ARROW:
            return _read_arrow(path)
    except PermissionError as error:
        raise DataRefused(f"cannot be read: {error.strerror}") from None
    except (pa.ArrowException, OSError, EOFError):
        raise DataRefused(f"is no readable {suffix} file: broken, cut short or of another format") from None
    known = ", ".join(sorted(KNOWN))
    raise DataRefused(f"has a suffix that names no known format; known: {known}, and text also with .gz")


def format_of(path: Path) -> str:
    """The suffix that tells a file's format."""
    return next((s.lower() for s in reversed(path.suffixes) if s.lower() != ".gz"), "")


def _read_arrow(path: Path) -> pa.Table:
    """An IPC file (which Feather is), or else an IPC stream."""
    with pa.memory_map(str(path)) as source:
        if source.read(6) == b"ARROW1":
            return ipc.open_file(source).read_all()
        source.seek(0)
        return ipc.open_stream(source).read_all()


def _read_text(path: Path, separator: str, missing: Sequence[str], text: Collection[str]) -> pa.Table:
    """A text file whose every row has all its fields."""
    quotes = _require_utf8(path)
    ragged: list[csv.InvalidRow] = []
    table = _parse_text(path, separator, missing, text, ragged)
    if ragged:
        few = f"does not have {ragged[0].expected_columns} fields in every row: {len(ragged)} have more or less"
        raise DataRefused(f"{few}, the first is row {min(row.number for row in ragged) - 1}")
    if quotes % 2 and _ends_in_line_break(table):
        raise DataRefused("has a quoted value that is never closed")
    _require_separator(table, separator)
    return table


def _parse_text(
    path: Path, separator: str, missing: Sequence[str], text: Collection[str], ragged: list[csv.InvalidRow]
) -> pa.Table:
    """Parse without stopping at ragged rows, which are collected; rows are numbered on one thread only."""

    def collect(row: csv.InvalidRow) -> str:
        ragged.append(row)
        return "skip"

    return csv.read_csv(
        path,
        csv.ReadOptions(use_threads=False),
        csv.ParseOptions(delimiter=separator, newlines_in_values=True, invalid_row_handler=collect),
        csv.ConvertOptions(
            null_values=list(missing), strings_can_be_null=True, column_types=dict.fromkeys(text, pa.string())
        ),
    )


def _require_utf8(path: Path) -> int:
    """Raise unless the file is UTF-8 text; returns how many quotation marks it has."""
    decoder, lines, quotes = getincrementaldecoder("utf-8")(), 1, 0
    with pa.input_stream(str(path), compression="detect") as stream:
        while block := stream.read(BLOCK):
            try:
                decoder.decode(block)
            except UnicodeDecodeError as error:
                line = lines + block.count(b"\n", 0, error.start)
                raise DataRefused(f"is not UTF-8 text, see line {line}; save it as UTF-8") from None
            if b"\0" in block:
                raise DataRefused("is not a text file: it has zero bytes; save it as UTF-8")
            lines, quotes = lines + block.count(b"\n"), quotes + block.count(b'"')
    return quotes


def _ends_in_line_break(table: pa.Table) -> bool:
    """Whether a value of the last row holds a line break: what an unclosed quotation mark leaves behind."""
    last = table.slice(max(table.num_rows - 1, 0)).to_pylist()
    return any("\n" in value for row in last for value in row.values() if isinstance(value, str))


def _require_separator(table: pa.Table, separator: str) -> None:
    """A header in one piece that holds another separator was meant otherwise."""
    name = table.column_names[0]
    if len(table.column_names) == 1 and (others := [s for s in ",;\t" if s != separator and s in name]):
        raise DataRefused(f"seems to be separated by {others[0]!r}; .csv needs ',' and .tsv a tab")


def require_columns(table: pa.Table, rows: int | None = None) -> None:
    """Every column has a name of its own, and there are rows (``rows``, if the table is only a schema)."""
    names = Counter(table.column_names)
    if repeated := sorted(name for name, count in names.items() if count > 1):
        raise DataRefused(f"has columns of the same name: {', '.join(repeated)}")
    if nameless := [str(i + 1) for i, name in enumerate(table.column_names) if not name.strip()]:
        raise DataRefused(f"has columns without a name: number {', '.join(nameless)}")
    if (table.num_rows if rows is None else rows) == 0:
        raise DataRefused("has a header but no rows")
    if not_text := [f.name for f in table.schema if pt.is_union(f.type) or pt.is_map(f.type)]:
        raise DataRefused(f"has columns of a type without use here: {', '.join(not_text)}")
