"""Who a record is about, and which data a holder has: normalised ids and a digest of the content."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from federated_anon.errors import Code, DataRefused
from federated_anon.quantities import as_floats, as_integers, fractional, has_quantities, quantities
from federated_anon.tally import Values, is_present, plain

WHITE = r"[\x09-\x0d\x1c-\x20]+"
"""White space of ASCII, as ``str.split`` sees it."""

CHUNK = 1 << 14


def normalise_ids(array: Values) -> pa.Array:
    """Ids as strings that compare equal however a holder spells them; null or empty ids are refused.

    Unicode compatibility caseless form (NFKC of the case fold, Unicode 15 section 3.13, D147), no white space
    around, single spaces within. Integers become decimal digits, so that ``7``, ``"7"`` and ``7.0`` in a
    column of whole floats are one person; the text ``"7.0"`` is not, nor ``"007"``: its zeros may matter.
    """
    text = _as_text(plain(array))
    is_ascii = pc.string_is_ascii(text).fill_null(True)
    simple = pc.utf8_lower(pc.replace_substring_regex(text, WHITE, " "))
    simple = pc.utf8_trim(simple, " ")
    if not pc.all(is_ascii).as_py():
        folded = [fold(value) for value in text.filter(pc.invert(is_ascii)).to_pylist()]
        simple = pc.replace_with_mask(simple, pc.invert(is_ascii), pa.array(folded, pa.string()))
    if absent := int((~is_present(simple)).sum()) + int(pc.sum(pc.equal(simple, "")).as_py() or 0):
        raise DataRefused(f"{absent} of {len(simple)} ids are missing or empty")
    return simple


def fold(value: str) -> str:
    """One id in its normal form; ``normalise_ids`` does the same for whole columns."""
    once = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", value).casefold())
    twice = unicodedata.normalize("NFKC", once.casefold())
    return " ".join(twice.split())


def spelled(ids: pa.Array) -> Iterator[str]:
    """One id after another, of which few at a time are Python's."""
    for start in range(0, len(ids), CHUNK):
        yield from ids.slice(start, CHUNK).to_pylist()


def require_unique(ids: Values) -> None:
    """Raise ``DataRefused`` with counts, not values, if an id occurs more than once."""
    counts = pc.value_counts(plain(ids)).field("counts").to_numpy(zero_copy_only=False)
    if repeated := int((counts > 1).sum()):
        records = int(counts[counts > 1].sum())
        found = f"{repeated} of {len(counts)} ids occur more than once, in {records} of {len(ids)} records"
        raise DataRefused(f"every id must be unique after normalisation; {found}", Code.DUPLICATE_IDS)


def data_version(table: pa.Table, key: str | None) -> str:
    """SHA-256 of the content, in hex: the same data has the same version however it is stored.

    It does not depend on chunks, on the order of columns, on dictionaries or on the width of numbers; and
    with a ``key`` column not on the order of rows, which are sorted by normalised key. Without one, it does.
    """
    ids = None if key is None else normalise_ids(table.column(key))
    order = None if ids is None else pc.sort_indices(ids)
    digest = hashlib.sha256(str(table.num_rows).encode())
    for name in sorted(table.column_names):
        digest.update(hashlib.sha256(name.encode()).digest())
        column = plain(ids if name == key else table.column(name))
        for part in _content(column if order is None else column.take(order)):
            digest.update(part)
    return digest.hexdigest()


def _as_text(array: pa.Array) -> pa.Array:
    """Ids as text; floats and decimals must be whole."""
    if pt.is_floating(array.type):
        values = as_floats(array)
        if bad := int(fractional(values).sum()):
            raise DataRefused(f"{bad} of {len(values)} ids are numbers that are not exact integers")
        array = as_integers(values)
    if pt.is_nested(array.type) or pt.is_boolean(array.type) or pt.is_decimal(array.type):
        raise DataRefused(f"a key of {array.type} cannot name people; text or integers are needed")
    return array.cast(pa.string())


def _content(array: pa.Array) -> Iterator[bytes]:
    """Bytes that two arrays share if and only if they hold the same values of the same sort."""
    if pt.is_list(array.type) or pt.is_large_list(array.type):
        yield from (b"list", *_content(pc.list_value_length(array)), *_content(plain(pc.list_flatten(array))))
    elif has_quantities(array.type):
        found = quantities(array, "")
        yield from (_sort(array.type), len(array).to_bytes(8, "big"))
        yield from (np.packbits(found.present).tobytes(), (found.values + 0).tobytes())
    else:
        text = _spelled(array)
        yield from (b"text", *_content(pc.binary_length(text)), _letters(text))


def _sort(kind: pa.DataType) -> bytes:
    """What numbers mean: integers of any width are alike, timestamps of another unit or zone are not."""
    if pt.is_integer(kind) or pt.is_floating(kind):
        return b"integer" if pt.is_integer(kind) else b"number"
    return f"decimal {kind.scale}".encode() if pt.is_decimal(kind) else str(kind).encode()


def _spelled(array: pa.Array) -> pa.Array:
    """Anything else by its spelling."""
    try:
        return array.cast(pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise DataRefused(f"a column of {array.type} has no version; store numbers, text or dates") from None


def _letters(text: pa.Array) -> bytes:
    """All strings in a row; missing ones add nothing, and their lengths tell them from empty ones."""
    return "".join(text.drop_null().to_pylist()).encode()
