"""Transactions in files: one per line, a long table (person, item), or a list column of a Parquet file.

What a file means, in every format:

- An item is named by its spelling: ``7`` and ``07`` are two items, and names need not be numbers.
- An item that occurs twice in a set counts once.
- An empty set (a blank line, an empty or missing list) is a person with nothing in it: it is kept as an empty record.
- A long table has no rows for people without items, so it has no empty sets. Its people stand in the order of their
  first row; who they are is not kept.

Every fault of a file comes in one ``DataRefused`` with line or row numbers (from 1, without a header), never values.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pyarrow.types as pt

from federated_anon.errors import DataRefused
from federated_anon.setvalued.transactions import Transactions, in_order

Form = Literal["lines", "long", "lists"]
SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = frozenset({".parquet", ".pq"})
SHOWN = 5
"""Line numbers that a fault names."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a file holds transactions: its form, the separator of a text table, the columns, the type of items."""

    form: Form
    suffix: str
    person: str = ""
    item: str = ""
    column: str = ""
    items: pa.DataType | None = None


_Found = tuple[pa.ListArray, Layout, pa.Array | None]
"""Sets, how the file holds them, and whose they are where it says so."""


def read_transactions(
    path: Path | str, person: str | None = None, item: str | None = None, column: str | None = None
) -> Transactions:
    """The transactions of a file; which form it has is told by its suffix and the columns named."""
    return read_with_layout(path, person, item, column)[0]


def read_with_layout(
    path: Path | str, person: str | None = None, item: str | None = None, column: str | None = None
) -> tuple[Transactions, Layout]:
    """The transactions of a file and how it holds them, so that others can be written alike."""
    try:
        _require_file(Path(path))
        sets, layout, _ = _read(Path(path), person, item, column)
        if not len(sets.values):
            raise DataRefused("holds no item in any set")
    except DataRefused as error:
        raise DataRefused(f"'{path}' {error}") from None
    return from_lists(sets), layout


def read_people(path: Path | str, person: str, item: str) -> pa.Table:
    """Sets with their people, one row each: of a long table, or of lines, whose numbers then name the people."""
    try:
        _require_file(Path(path))
        suffix = suffix_of(Path(path))
        named = (person, item, None) if suffix in SEPARATORS or suffix in PARQUET else (None, None, None)
        sets, _, people = _read(Path(path), *named)
    except DataRefused as error:
        raise DataRefused(f"'{path}' {error}") from None
    return pa.table({person: pa.array(range(1, len(sets) + 1)) if people is None else people, item: sets})


def from_lists(sets: pa.ListArray) -> Transactions:
    """Transactions of lists of texts without nulls; items stand in the order of ``in_order``."""
    found = sets.values.dictionary_encode()
    names = in_order(found.dictionary.to_pylist())
    code = {name: place for place, name in enumerate(names)}
    rank = np.array([code[name] for name in found.dictionary.to_pylist()], dtype=np.int64)
    rows = np.repeat(np.arange(len(sets)), np.diff(sets.offsets.to_numpy()))
    pairs = np.unique(rows * max(len(names), 1) + rank[found.indices.to_numpy()])
    rows, codes = np.divmod(pairs, max(len(names), 1))
    offsets = np.zeros(len(sets) + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=len(sets)), out=offsets[1:])
    return Transactions(offsets, codes.astype(np.int32), names)


def to_lists(transactions: Transactions, kind: pa.DataType | None = None) -> pa.Array:
    """The sets as lists of names, or of what the names spell in another type."""
    names = pa.array(transactions.names, pa.string()).cast(kind or pa.string())
    values = names.take(pa.array(transactions.items))
    return pa.LargeListArray.from_arrays(pa.array(transactions.offsets, pa.int64()), values)


def write_transactions(transactions: Transactions, path: Path | str, layout: Layout) -> None:
    """The transactions in the form of ``layout``; people of a long table are numbered from 1."""
    if layout.form == "lines":
        _write_lines(transactions, Path(path))
        return
    if layout.form == "lists":
        table = pa.table({layout.column: to_lists(transactions, layout.items)})
    else:
        sizes = np.diff(transactions.offsets)
        people = pa.array(np.repeat(np.arange(1, len(sizes) + 1), sizes))
        table = pa.table({layout.person: people, layout.item: to_lists(transactions, layout.items).flatten()})
    if layout.suffix in PARQUET:
        pyarrow.parquet.write_table(table, path)
        return
    with pa.output_stream(str(path), compression="gzip" if str(path).endswith(".gz") else None) as sink:
        pa.csv.write_csv(table, sink, pa.csv.WriteOptions(delimiter=SEPARATORS[layout.suffix]))


def _write_lines(transactions: Transactions, path: Path) -> None:
    joined = pc.binary_join(to_lists(transactions), " ")
    content = "".join(f"{line}\n" for line in joined.to_pylist()).encode()
    # A fixed time in the header: the same transactions give the same bytes.
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


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


def suffix_of(path: Path) -> str:
    """The suffix that tells a file's form."""
    return next((s.lower() for s in reversed(path.suffixes) if s.lower() != ".gz"), "")


def _read(path: Path, person: str | None, item: str | None, column: str | None) -> _Found:
    suffix = suffix_of(path)
    _require_options(suffix, person, item, column)
    try:
        if suffix in PARQUET:
            table = pyarrow.parquet.ParquetFile(path).read()
            return _long(table, person, item, suffix) if person and item else _lists(table, column, suffix)
        if suffix in SEPARATORS:
            return _long(_text_table(path, suffix, person or "", item or ""), person or "", item or "", suffix)
        return _lines(path), Layout("lines", suffix), None
    except PermissionError as error:
        raise DataRefused(f"cannot be read: {error.strerror}") from None
    except (pa.ArrowException, OSError, EOFError):
        kind = suffix if suffix in PARQUET or suffix in SEPARATORS else "text"
        raise DataRefused(f"is no readable {kind} file: broken, cut short or of another format") from None


def _require_options(suffix: str, person: str | None, item: str | None, column: str | None) -> None:
    """Which columns are named must fit the suffix."""
    faults = []
    if bool(person) != bool(item):
        faults.append("person and item are columns of a long table: both are named, or none")
    if column and (person or item):
        faults.append("a file is a list column or a long table (person, item), not both")
    if suffix in SEPARATORS and not (person or item):
        faults.append(f"a {suffix} file is a long table: name its columns of people and of items")
    if column and suffix not in PARQUET:
        faults.append("a list column is of a Parquet file")
    if (person or item) and suffix not in {*PARQUET, *SEPARATORS}:
        faults.append("columns are of a table (.csv, .tsv, .parquet); this file is read as one set per line")
    _refuse(faults)


def _refuse(faults: Sequence[str]) -> None:
    if faults:
        count = f"{len(faults)} fault" + ("s" if len(faults) > 1 else "")
        raise DataRefused(f"is refused, {count}:\n" + "\n".join(f"  {fault}" for fault in faults))


def _lines(path: Path) -> pa.ListArray:
    with pa.input_stream(str(path), compression="detect") as stream:
        content = stream.read()
    lines = content.removesuffix(b"\n").split(b"\n")
    if faults := _line_faults(content, lines):
        _refuse(faults)
    texts = pc.utf8_trim_whitespace(pa.array(content.decode().removesuffix("\n").split("\n"), pa.large_string()))
    texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.large_string()), texts)
    return _plain_lists(pc.utf8_split_whitespace(texts))


def _line_faults(content: bytes, lines: Sequence[bytes]) -> list[str]:
    faults = []
    try:
        content.decode()
    except UnicodeDecodeError:
        faults.append(_named("line", [n for n, line in enumerate(lines) if not _is_text(line)], "not UTF-8 text"))
    if b"\0" in content:
        faults.append(_named("line", [n for n, line in enumerate(lines) if b"\0" in line], "zero bytes"))
    return faults


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _named(what: str, places: Sequence[int], fault: str) -> str:
    """A fault with how many places have it, and the first ones, counted from 1."""
    first = ", ".join(str(place + 1) for place in places[:SHOWN])
    more = ", ..." if len(places) > SHOWN else ""
    return f"{fault}: {len(places)} {what}{'s' if len(places) > 1 else ''} ({first}{more})"


def _text_table(path: Path, suffix: str, *columns: str) -> pa.Table:
    return pa.csv.read_csv(
        path,
        pa.csv.ReadOptions(),
        pa.csv.ParseOptions(delimiter=SEPARATORS[suffix], newlines_in_values=True),
        pa.csv.ConvertOptions(
            null_values=[""], strings_can_be_null=True, column_types=dict.fromkeys(columns, pa.string())
        ),
    )


def _long(table: pa.Table, person: str, item: str, suffix: str) -> _Found:
    known = ", ".join(table.column_names)
    unknown = [name for name in (person, item) if name not in table.column_names]
    _refuse([f"has no column '{name}'; it has: {known}" for name in unknown])
    _refuse(_missing_faults(table, person, item))
    people, items = _texts(table[person], person), _texts(table[item], item)
    named = people.dictionary_encode()
    ranks = named.indices.to_numpy()
    order = np.argsort(ranks, kind="stable")
    offsets = np.zeros(int(ranks.max(initial=-1)) + 2, dtype=np.int32)
    np.cumsum(np.bincount(ranks), out=offsets[1:])
    sets = pa.ListArray.from_arrays(pa.array(offsets), items.take(pa.array(order)))
    return sets, Layout("long", suffix, person, item, items=_item_type(table[item].type)), named.dictionary


def _missing_faults(table: pa.Table, person: str, item: str) -> list[str]:
    faults = []
    for name in (person, item):
        if places := np.flatnonzero(table[name].is_null().to_numpy()).tolist():
            faults.append(_named("row", places, f"missing values in '{name}'"))
    return faults


def _texts(values: pa.ChunkedArray, name: str) -> pa.Array:
    kind = values.type
    if pt.is_dictionary(kind):
        values, kind = values.cast(kind.value_type), kind.value_type
    if not (pt.is_string(kind) or pt.is_large_string(kind) or pt.is_integer(kind)):
        raise DataRefused(f"has items or people of type {kind} in '{name}'; text or integers are needed")
    return _joined(values).cast(pa.string())


def _item_type(kind: pa.DataType) -> pa.DataType:
    plain = kind.value_type if pt.is_dictionary(kind) else kind
    return plain if pt.is_integer(plain) else pa.string()


def _lists(table: pa.Table, column: str | None, suffix: str) -> _Found:
    lists = [field.name for field in table.schema if pt.is_list(field.type) or pt.is_large_list(field.type)]
    if column is None and len(lists) != 1:
        raise DataRefused(f"has {len(lists)} list columns ({', '.join(lists)}); name one, or person and item")
    name = column or lists[0]
    if name not in lists:
        raise DataRefused(f"has no list column '{name}'; it has: {', '.join(lists) or 'none'}")
    array = _joined(table[name])
    inner = array.type.value_type
    lengths = pc.list_value_length(array).fill_null(0).to_numpy()
    values = _texts(pa.chunked_array([array.flatten()]), name)
    if values.null_count:
        rows = np.repeat(np.arange(len(array)), lengths)[values.is_null().to_numpy(zero_copy_only=False)]
        _refuse([_named("row", np.unique(rows).tolist(), f"missing items in lists of '{name}'")])
    return _cut(values, lengths), Layout("lists", suffix, column=name, items=_item_type(inner)), None


def _plain_lists(lists: Any) -> pa.ListArray:
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy()
    return _cut(pc.list_flatten(lists).cast(pa.string()), lengths)


def _cut(values: pa.Array, lengths: np.ndarray) -> pa.ListArray:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def _joined(values: pa.ChunkedArray) -> pa.Array:
    joined = values.combine_chunks()
    return joined if isinstance(joined, pa.Array) else pa.concat_arrays(values.chunks)
