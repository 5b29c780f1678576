"""Arrow IPC streams, read with suspicion: schema and record batches only, nothing compressed, nothing pickled."""

from __future__ import annotations

import struct

import pyarrow as pa

from federated_anon.errors import MessageRefused

_COMPRESSION = 3  # Field number of RecordBatch.compression in Arrow's Message.fbs.
_HEADER = 2  # Field number of Message.header.

SCALARS = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_null,
)


def write_stream(table: pa.Table) -> bytes:
    """``table`` as an uncompressed IPC stream of one batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue().to_pybytes()


def read_schema(content: bytes) -> pa.Schema:
    """The schema of a stream, before anything else of it is touched."""
    try:
        return pa.ipc.read_schema(pa.BufferReader(content))
    except (pa.ArrowException, OSError, ValueError, UnicodeDecodeError) as error:
        raise MessageRefused(f"not an Arrow stream: {type(error).__name__}") from None


def read_stream(content: bytes) -> pa.Table:
    """The table of a stream, fully validated; refuses dictionaries, compression and other message kinds."""
    try:
        _require_plain(content)
        table = pa.ipc.open_stream(pa.BufferReader(content)).read_all()
        table.validate(full=True)
    except MessageRefused:
        raise
    except (pa.ArrowException, OSError, ValueError, struct.error, OverflowError, IndexError) as error:
        raise MessageRefused(f"not a valid Arrow stream: {type(error).__name__}") from None
    return table


def read_table(content: bytes) -> pa.Table:
    """A table of plain columns (numbers, booleans, text, dates), as holders release them."""
    schema = read_schema(content)
    odd = [field.name for field in schema if not any(fits(field.type) for fits in SCALARS)]
    if odd or len(set(schema.names)) != len(schema.names):
        raise MessageRefused(f"a table with {len(odd)} columns of unexpected types or repeated names")
    return read_stream(content)


def _require_plain(content: bytes) -> None:
    reader = pa.ipc.MessageReader.open_stream(pa.BufferReader(content))
    for number, message in enumerate(reader):
        expected = "schema" if number == 0 else "record batch"
        if message.type != expected:
            raise MessageRefused(f"an Arrow message of kind '{message.type}' where a {expected} belongs")
        if number > 0 and _is_compressed(message.metadata.to_pybytes()):
            raise MessageRefused("compressed Arrow buffers are not accepted")


def _is_compressed(metadata: bytes) -> bool:
    """Whether a record batch names a compression: one look into its flatbuffer, as its vtable says."""
    root = struct.unpack_from("<I", metadata, 0)[0]
    header = _field(metadata, root, _HEADER)
    batch = header + struct.unpack_from("<I", metadata, header)[0]
    return _field(metadata, batch, _COMPRESSION) != 0


def _field(metadata: bytes, table: int, number: int) -> int:
    """Where a field of a flatbuffer table lies; 0 if the table does not have it."""
    vtable = table - struct.unpack_from("<i", metadata, table)[0]
    size = struct.unpack_from("<H", metadata, vtable)[0]
    slot = 4 + 2 * number
    if slot + 2 > size:
        return 0
    offset = struct.unpack_from("<H", metadata, vtable + slot)[0]
    return table + offset if offset else 0
