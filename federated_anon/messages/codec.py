"""Messages to Arrow IPC bytes and back: one row, one column per field, the envelope in the schema's metadata.

``decode`` trusts nothing: size, version, study, step and schema are checked before the content is read, and the
content is validated in full. Whatever does not fit raises ``MessageRefused`` with a code.
"""

from __future__ import annotations

import functools
import re
import typing
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa

from federated_anon.errors import Code, MessageRefused
from federated_anon.messages import payloads
from federated_anon.messages.arrow import read_schema, read_stream, read_table, write_stream
from federated_anon.messages.compact import narrowed, widened
from federated_anon.messages.envelope import VERSION, Envelope, Message, Step

LARGEST = 256 * 2**20
MOST_TEXTS = 1 << 20
_DIGEST = re.compile("[0-9a-f]{64}")  # It names a file of the ledger, so it must not hold anything else.
_HEAD = ("version", "study", "step", "sender", "sequence", "kind")


@dataclass(frozen=True, slots=True)
class _Form:
    """How one kind of field looks in Arrow, and the way there and back."""

    type: pa.DataType
    pack: Callable[[Any], Any]
    unpack: Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


def _scalar(type_: pa.DataType) -> _Form:
    return _Form(type_, _same, lambda scalar: scalar.as_py())


def _items(scalar: Any) -> pa.Array:
    """The items of a list; a schema that forbids nulls does not keep a sender from writing them."""
    if scalar.values.null_count:
        raise MessageRefused("a list with a null in it")
    return scalar.values


def _texts(type_: pa.DataType) -> _Form:
    form = pa.list_(pa.field("item", type_, nullable=False))

    def unpack(scalar: Any) -> tuple[Any, ...]:
        items = _items(scalar)
        if len(items) > MOST_TEXTS:
            raise MessageRefused(f"a list of {len(items)} texts, at most {MOST_TEXTS} are accepted", Code.OVERSIZED)
        return tuple(items.to_pylist())

    return _Form(form, list, unpack)


def _array(dtype: Any) -> _Form:
    form = pa.large_list(pa.field("item", pa.from_numpy_dtype(dtype), nullable=False))
    return _Form(
        form,
        lambda value: np.ascontiguousarray(value, dtype).reshape(-1),
        lambda scalar: _items(scalar).to_numpy(zero_copy_only=False),
    )


def _matrix(dtype: Any) -> _Form:
    values = _array(dtype)
    type_ = pa.struct([pa.field("rows", pa.int64(), nullable=False), pa.field("values", values.type, nullable=False)])

    def pack(value: Any) -> dict[str, Any]:
        return {"rows": len(value), "values": values.pack(value)}

    def unpack(scalar: Any) -> Any:
        rows, flat = scalar["rows"].as_py(), values.unpack(scalar["values"])
        if rows < 0 or (rows == 0) != (len(flat) == 0) or (rows and len(flat) % rows):
            raise MessageRefused("a matrix whose shape does not fit its values")
        return flat.reshape(rows, -1) if rows else flat.reshape(0, 0)

    return _Form(type_, pack, unpack)


_FORMS: dict[Any, _Form] = {
    str: _scalar(pa.string()),
    int: _scalar(pa.int64()),
    float: _scalar(pa.float64()),
    bool: _scalar(pa.bool_()),
    bytes: _scalar(pa.large_binary()),
    tuple[str, ...]: _texts(pa.string()),
    tuple[bytes, ...]: _texts(pa.large_binary()),
    payloads.Ints: _array(np.int32),
    payloads.Octets: _array(np.uint8),
    payloads.Floats: _array(np.float64),
    payloads.Singles: _array(np.float32),
    payloads.Words: _array(np.uint64),
    payloads.Flags: _array(np.bool_),
    payloads.IntMatrix: _matrix(np.int32),
    payloads.Matrix: _matrix(np.float64),
    payloads.Table: _Form(
        pa.large_binary(),
        lambda table: write_stream(narrowed(table)),
        lambda scalar: widened(read_table(scalar.as_py())),
    ),
}


@functools.cache
def _forms(kind: Any) -> dict[str, _Form]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return {field.name: _FORMS[hints[field.name]] for field in fields(kind)}


@functools.cache
def _schema(kind: Any) -> pa.Schema:
    return pa.schema([pa.field(name, form.type, nullable=False) for name, form in _forms(kind).items()])


def encode_payload(payload: Any, head: dict[str, str] | None = None) -> bytes:
    """One frozen payload as an Arrow stream of one row."""
    kind: Any = type(payload)
    schema = _schema(kind).with_metadata(head)
    columns = [pa.array([form.pack(getattr(payload, name))], form.type) for name, form in _forms(kind).items()]
    if not columns:  # Arrow keeps no row count without columns; an empty payload is an empty table.
        return write_stream(schema.empty_table())
    return write_stream(pa.Table.from_arrays(columns, schema=schema))


def decode_payload(content: bytes, kind: Any) -> Any:
    """The payload of exactly this kind behind ``content``, or ``MessageRefused``."""
    if not read_schema(content).equals(_schema(kind)):
        raise MessageRefused(f"the fields are not those of {kind.__name__}")
    table = read_stream(content)
    if _forms(kind) and (table.num_rows != 1 or any(column.null_count for column in table.columns)):
        raise MessageRefused("a message has one row and no nulls")
    try:
        return kind(**{name: form.unpack(table[name][0]) for name, form in _forms(kind).items()})
    except (pa.ArrowException, ValueError, UnicodeDecodeError) as error:
        raise MessageRefused(f"a field cannot be read: {type(error).__name__}") from None


def encode(message: Message) -> bytes:
    """A message as bytes."""
    envelope = message.envelope
    kind = "refusal" if isinstance(message.payload, payloads.Refused) else type(message.payload).__name__
    values = (envelope.version, envelope.study, envelope.step.value, envelope.sender, envelope.sequence, kind)
    return encode_payload(message.payload, {key: str(value) for key, value in zip(_HEAD, values, strict=True)})


def decode(content: bytes, kinds: dict[Step, type[Any]], *, largest: int = LARGEST) -> Message:
    """The message behind ``content``: a request or a reply, as ``kinds`` says; replies may be refusals."""
    if len(content) > largest:
        raise MessageRefused(f"{len(content)} bytes, at most {largest} are accepted", Code.OVERSIZED)
    head = _head(read_schema(content))
    envelope = _envelope(head)
    is_refusal = head["kind"] == "refusal" and kinds is payloads.REPLIES
    kind = payloads.Refused if is_refusal else kinds[envelope.step]
    return Message(envelope, decode_payload(content, kind))


def _head(schema: pa.Schema) -> dict[str, str]:
    metadata = schema.metadata or {}
    if set(metadata) != {key.encode() for key in _HEAD}:
        raise MessageRefused("the envelope is incomplete")
    try:
        return {key: metadata[key.encode()].decode() for key in _HEAD}
    except UnicodeDecodeError:
        raise MessageRefused("the envelope is not text") from None


def _envelope(head: dict[str, str]) -> Envelope:
    if head["version"] != str(VERSION):
        raise MessageRefused(f"messages of version {VERSION} are understood", Code.VERSION)
    if head["step"] not in set(Step):
        raise MessageRefused("no such step", Code.WRONG_STEP)
    if not (head["sequence"].isascii() and head["sequence"].isdigit() and len(head["sequence"]) <= 18):
        raise MessageRefused("the sequence is not a number")
    if not _DIGEST.fullmatch(head["study"]) or len(head["sender"]) > 64:
        raise MessageRefused("the envelope is malformed")
    return Envelope(VERSION, head["study"], Step(head["step"]), head["sender"], int(head["sequence"]))
