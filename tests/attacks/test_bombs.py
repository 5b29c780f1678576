"""Bytes that are small and grow, or that are no message at all: refused, and the memory they take is measured."""

from __future__ import annotations

import struct
import subprocess
import sys
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

import federated_anon.messages.arrow as arrow
import federated_anon.messages.codec as codec
from federated_anon.errors import Code, MessageRefused, SettingsRefused
from federated_anon.messages import Step, decode
from federated_anon.messages import payloads as p
from federated_anon.study import Study
from tests.simulator import LyingCoordinator, make_holders, make_study

STUDY = make_study()
HEAD = {
    "version": "1",
    "study": "0" * 64,
    "step": "code",
    "sender": "coordinator",
    "sequence": "5",
    "kind": "MakeCode",
}


def stream_of(table: pa.Table, **options) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def as_message(array: pa.Array, name: str = "codes", **options) -> bytes:
    schema = pa.schema([pa.field(name, array.type, nullable=False)]).with_metadata(HEAD)
    return stream_of(pa.Table.from_arrays([array], schema=schema), **options)


LIST = pa.list_(pa.field("item", pa.large_binary(), nullable=False))
ZEROS = pa.array([[bytes(50_000_000)]], LIST)


def peak(work) -> float:
    """Most memory that Python and Arrow took meanwhile, in MB, beyond what was there."""
    pool = pa.default_memory_pool()
    tracemalloc.start()
    before, most = pool.bytes_allocated(), pool.max_memory()
    try:
        work()
    finally:
        python = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return (python + max(pool.max_memory() - max(most, before), 0)) / 2**20


def refused(content: bytes) -> MessageRefused:
    with pytest.raises(MessageRefused) as error:
        decode(content, p.REQUESTS)
    return error.value


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_a_compressed_message_is_refused_before_it_grows(compression):
    content = as_message(ZEROS, compression=compression)
    assert len(content) < 1_000_000
    assert peak(lambda: refused(content)) < 10


def test_a_compressed_message_unguarded_grows(monkeypatch):
    content = as_message(ZEROS, compression="zstd")
    monkeypatch.setattr(arrow, "_is_compressed", lambda metadata: False)
    message = decode(content, p.REQUESTS)
    assert len(message.payload.codes[0]) > 50 * len(content)


def test_a_compressed_table_inside_a_reply_is_refused():
    inner = stream_of(pa.table({"a": np.zeros(1_000_000)}), compression="zstd")
    with pytest.raises(MessageRefused):
        arrow.read_table(inner)


def test_a_dictionary_is_refused():
    """One value, indexed a million times over, or an index out of range."""
    coded = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1000, np.int8)), pa.array(["x" * 100_000]))
    with pytest.raises(MessageRefused):
        arrow.read_table(stream_of(pa.table({"a": coded})))


def empty_texts(count: int) -> bytes:
    """A message with a list of ``count`` empty texts."""
    starts = pa.py_buffer(bytes(8 * (count + 1)))
    items = pa.Array.from_buffers(pa.large_binary(), count, [None, starts, pa.py_buffer(b"")])
    ends = pa.py_buffer(struct.pack("<2i", 0, count))
    return as_message(pa.Array.from_buffers(LIST, 1, [None, ends], children=[items]))


def test_lists_of_very_many_empty_texts_are_refused():
    count = codec.MOST_TEXTS + 1
    offsets = pa.py_buffer(struct.pack("<2i", 0, count))
    items = pa.Array.from_buffers(
        pa.large_binary(), count, [None, pa.py_buffer(bytes(8 * (count + 1))), pa.py_buffer(b"")]
    )
    content = as_message(pa.Array.from_buffers(LIST, 1, [None, offsets], children=[items]))
    assert refused(content).code is Code.OVERSIZED


def test_lists_of_very_many_empty_texts_unguarded_grow(monkeypatch):
    monkeypatch.setattr(codec, "MOST_TEXTS", 1 << 40)
    count = 3_000_000
    offsets = pa.py_buffer(struct.pack("<2i", 0, count))
    items = pa.Array.from_buffers(
        pa.large_binary(), count, [None, pa.py_buffer(bytes(8 * (count + 1))), pa.py_buffer(b"")]
    )
    content = as_message(pa.Array.from_buffers(LIST, 1, [None, offsets], children=[items]))
    assert peak(lambda: decode(content, p.REQUESTS)) > 1.5 * len(content) / 2**20


def nested(depth: int) -> pa.DataType:
    kind = pa.int8()
    for _ in range(depth):
        kind = pa.list_(kind)
    return kind


@pytest.mark.parametrize("depth", [10, 60, 120, 1000])
def test_deeply_nested_types_are_refused(depth):
    content = stream_of(pa.schema([pa.field("codes", nested(depth))]).with_metadata(HEAD).empty_table())
    refused(content)


def test_a_table_without_buffers_claims_rows_and_takes_no_memory():
    """Null columns have a length and no bytes: 2^30 rows in some hundred bytes, which then do not fit the groups."""
    content = stream_of(pa.table({"a": pa.nulls(1 << 30)}))
    assert len(content) < 1000
    assert peak(lambda: arrow.read_table(content)) < 5
    schema = pa.schema([pa.field("codes", LIST, nullable=False)]).with_metadata(HEAD)
    refused(
        stream_of(
            pa.table({"codes": pa.nulls(1 << 20)}).cast(pa.schema([("codes", pa.null())])).replace_schema_metadata(HEAD)
        )
    )
    refused(stream_of(schema.empty_table()))


@pytest.mark.parametrize("length", [2**31 - 1, 2**40, 2**62, -1])
def test_lengths_that_lie_are_refused(length):
    """Each eight bytes of an honest message that could be a length or an offset are overwritten in turn."""
    honest = as_message(pa.array([[b"abc", b"defg"]], LIST))
    lie, kept = struct.pack("<q", length), 0
    for place in range(8, len(honest) - 8, 8):
        content = honest[:place] + lie + honest[place + 8 :]
        try:
            decode(content, p.REQUESTS)
        except MessageRefused:
            continue
        kept += 1
    assert kept < 0.4 * len(honest) / 8


def opened_by_arrow(content):
    """Whether Arrow by itself hands out a table whose offsets lead outside its buffers."""
    try:
        table = pa.ipc.open_stream(content).read_all()
    except (pa.ArrowException, OSError, ValueError, MemoryError):
        return False
    try:
        table.validate(full=True)
    except pa.ArrowInvalid:
        return True
    except UnicodeDecodeError:  # A name of a column, overwritten: that much Arrow's Python side notices.
        return False
    return False


def test_lengths_that_lie_unguarded_are_handed_out_by_arrow():
    """Arrow checks the frame, not the content: whoever read such a table would read memory that is not its own."""
    honest, handed = as_message(pa.array([[b"abc", b"defg"]], LIST)), 0
    for length in (2**31 - 1, 2**40, 2**62, -1):
        for place in range(8, len(honest) - 8, 8):
            content = honest[:place] + struct.pack("<q", length) + honest[place + 8 :]
            if opened_by_arrow(content):
                handed += 1
                with pytest.raises(MessageRefused):
                    decode(content, p.REQUESTS)
    assert handed >= 4


def test_extension_types_are_not_built():
    """A field may name an extension whose class would read its own metadata; the schema must be the plain one."""
    field = pa.field("codes", LIST, nullable=False, metadata={"ARROW:extension:name": "arrow.py_extension_type"})
    for kind in (field, pa.field("codes", pa.uuid()), pa.field("codes", pa.json_())):
        content = stream_of(pa.schema([kind]).with_metadata(HEAD).empty_table())
        refused(content)


@pytest.mark.parametrize(
    "change",
    [
        {"extra": "x"},
        {"sequence": "9" * 5000},
        {"sender": "x" * 10_000},
        {"study": "x" * 64},
        {"version": "2"},
        {"step": "x"},
    ],
)
def test_metadata_of_another_shape_is_refused(change):
    schema = pa.schema([pa.field("codes", LIST, nullable=False)]).with_metadata(HEAD | change)
    refused(stream_of(schema.empty_table()))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 50_000,
        '{"seed": ' + "9" * 10_000 + "}",
        '{"name": "' + "x" * 1_000_000 + '"}',
        '{"holders": [' + ",".join(f'"h{i}"' for i in range(100_000)) + "]}",
        "NaN",
        '{"privacy": {"k": 1e400}}',
    ],
    ids=["brackets", "braces", "digits", "name", "holders", "nan", "infinity"],
)
def test_a_study_that_is_a_bomb_is_refused(text):
    with pytest.raises(SettingsRefused) as error:
        Study.from_text(text)
    assert len(str(error.value)) < 4_000_000


def test_a_holder_takes_little_memory_for_much_garbage(tmp_path):
    """Random bytes, cut and spliced requests, three hundred of them: refused each, and memory stays flat."""
    holder = make_holders(tmp_path)["north"]
    liar = LyingCoordinator(holder, STUDY)
    liar.ask(Step.ENROL, p.Enrol(STUDY.text))
    rng = np.random.default_rng(0)
    honest = as_message(pa.array([[b"abc" * 50]], LIST))
    holder.answer(honest)

    def pelt():
        for _ in range(150):
            at = int(rng.integers(0, len(honest)))
            reply = liar.send(
                honest[:at] + rng.bytes(int(rng.integers(0, 64))) + honest[at + int(rng.integers(0, 9)) :]
            )
            assert isinstance(reply, p.Refused)

    pelt()
    assert peak(pelt) < 8


WHOLE = """
import resource, sys
import pyarrow as pa
from federated_anon.messages import decode
from federated_anon.messages import payloads as p
content = open(sys.argv[1], "rb").read()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    decode(content, p.REQUESTS)
    print("read")
except Exception as error:
    print(type(error).__name__)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_resident_memory_of_a_compressed_bomb(tmp_path):
    """The same as seen by the operating system, in a process of its own: 200 MB behind 20 KB."""
    content = as_message(pa.array([[bytes(200_000_000)]], LIST), compression="zstd")
    path = tmp_path / "bomb"
    path.write_bytes(content)
    run = subprocess.run([sys.executable, "-c", WHOLE, str(path)], capture_output=True, text=True, check=True)
    verdict, grown = run.stdout.split()
    assert verdict == "MessageRefused"
    assert int(grown) < 30
