import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federated_anon.errors import Code, MessageRefused
from federated_anon.messages import Envelope, Message, Step, decode, encode
from federated_anon.messages import payloads as p
from federated_anon.messages.arrow import read_stream
from federated_anon.messages.codec import _forms, decode_payload, encode_payload

STUDY = "a" * 64


def envelope(step: Step = Step.RELEASE, **changes: object) -> Envelope:
    return dataclasses.replace(Envelope(1, STUDY, step, "coordinator", 7), **changes)


def arrays(dtype: str) -> st.SearchStrategy[np.ndarray]:
    kinds = {
        "int32": st.integers(-(2**31), 2**31 - 1),
        "float64": st.floats(width=64),
        "float32": st.floats(width=32),
        "uint64": st.integers(0, 2**64 - 1),
        "uint8": st.integers(0, 255),
        "bool": st.booleans(),
    }
    return st.lists(kinds[dtype], max_size=20).map(lambda values: np.array(values, dtype=dtype))


def matrices(dtype: str) -> st.SearchStrategy[np.ndarray]:
    return st.tuples(st.integers(1, 4), arrays(dtype)).map(
        lambda pair: (
            pair[1][: len(pair[1]) // pair[0] * pair[0]].reshape(pair[0], -1)
            if len(pair[1]) >= pair[0]
            else np.zeros((0, 0), dtype)
        )
    )


FIELDS = {
    str: st.text(st.characters(codec="utf-8"), max_size=20),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(),
    bool: st.booleans(),
    bytes: st.binary(max_size=40),
    tuple[str, ...]: st.lists(st.text(st.characters(codec="utf-8"), max_size=5), max_size=4).map(tuple),
    tuple[bytes, ...]: st.lists(st.binary(max_size=5), max_size=4).map(tuple),
    p.Ints: arrays("int32"),
    p.Floats: arrays("float64"),
    p.Singles: arrays("float32"),
    p.Octets: arrays("uint8"),
    p.Words: arrays("uint64"),
    p.Flags: arrays("bool"),
    p.IntMatrix: matrices("int32"),
    p.Matrix: matrices("float64"),
    p.Table: st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=5).map(
        lambda v: pa.table({"a": pa.array(v, pa.int64())})
    ),
}


def any_payload(kind: type) -> st.SearchStrategy[object]:
    import typing

    hints = typing.get_type_hints(kind, include_extras=True)
    return st.builds(kind, **{name: FIELDS[hint] for name, hint in hints.items()})


ALL = sorted({*p.REQUESTS.values(), *p.REPLIES.values(), p.Refused}, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_payload_comes_back_as_it_went(kind):
    @settings(max_examples=25)
    @given(any_payload(kind))
    def round_trip(payload):
        back = decode_payload(encode_payload(payload), kind)
        for name in _forms(kind):
            sent, came = getattr(payload, name), getattr(back, name)
            if isinstance(sent, np.ndarray):
                np.testing.assert_array_equal(sent, came)
                assert sent.dtype == came.dtype
            elif isinstance(sent, pa.Table):
                assert sent.equals(came)
            else:
                assert sent == came or (sent != sent and came != came)

    round_trip()


def request() -> bytes:
    return encode(Message(envelope(), p.MakeRelease(np.arange(40, dtype=np.int32), ("age", "sex"))))


def test_an_envelope_comes_back_as_it_went():
    assert decode(request(), p.REQUESTS).envelope == envelope()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"version": 2}, Code.VERSION),
        ({"study": "short"}, Code.MALFORMED),
        ({"sender": "x" * 65}, Code.MALFORMED),
        ({"sequence": -1}, Code.MALFORMED),
    ],
)
def test_a_forged_envelope_is_refused_with_its_code(change, code):
    content = encode(Message(envelope(**change), p.MakeRelease(np.arange(3, dtype=np.int32), ())))
    with pytest.raises(MessageRefused) as refused:
        decode(content, p.REQUESTS)
    assert refused.value.code is code


def test_an_unknown_step_is_refused():
    content = encode_payload(
        p.Evaluate(),
        {"version": "1", "study": STUDY, "step": "dance", "sender": "coordinator", "sequence": "1", "kind": "Evaluate"},
    )
    with pytest.raises(MessageRefused) as refused:
        decode(content, p.REQUESTS)
    assert refused.value.code is Code.WRONG_STEP


def test_an_oversized_message_is_refused_before_it_is_read():
    with pytest.raises(MessageRefused) as refused:
        decode(b"\xff" * 1000, p.REQUESTS, largest=999)
    assert refused.value.code is Code.OVERSIZED


def test_another_steps_payload_is_refused():
    content = encode(Message(envelope(Step.ALIGN), p.MakeRelease(np.arange(3, dtype=np.int32), ())))
    with pytest.raises(MessageRefused, match="not those of Align"):
        decode(content, p.REQUESTS)


def test_a_request_cannot_be_a_refusal():
    with pytest.raises(MessageRefused):
        decode(encode(Message(envelope(), p.Refused("x"))), p.REQUESTS)


def test_compressed_buffers_are_refused():
    table = pa.table({"a": np.zeros(100_000)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    bomb = sink.getvalue().to_pybytes()
    assert len(bomb) < 5000
    with pytest.raises(MessageRefused, match="compressed"):
        read_stream(bomb)


def test_dictionaries_are_refused():
    table = pa.table({"a": pa.array(["x", "y"]).dictionary_encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(MessageRefused, match="dictionary"):
        read_stream(sink.getvalue().to_pybytes())


def test_nulls_where_none_belong_are_refused():
    schema = pa.schema([pa.field("groups", pa.large_list(pa.int32())), pa.field("columns", pa.list_(pa.string()))])
    table = pa.table({"groups": [[1, None]], "columns": [["a"]]}, schema=schema)
    honest = pa.ipc.open_stream(pa.BufferReader(encode_payload(p.MakeRelease(np.arange(2), ("a",))))).schema
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, honest) as writer:
        batch = table.to_batches()[0]
        arrays = [
            pa.Array.from_buffers(f.type, 1, c.buffers()[:2], children=[c.values])
            for f, c in zip(honest, batch.columns, strict=True)
        ]
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=honest))
    with pytest.raises(MessageRefused):
        decode_payload(sink.getvalue().to_pybytes(), p.MakeRelease)


@settings(max_examples=1500)
@given(st.data())
def test_damaged_messages_never_get_past_the_decoder_unnoticed(data):
    """Flip, cut or splice bytes of a real message: either it is refused, or it still is a well-formed message."""
    content = bytearray(request())
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(content) - 1))
        action = data.draw(st.sampled_from(["flip", "cut", "insert"]))
        if action == "flip":
            content[at] ^= data.draw(st.integers(1, 255))
        elif action == "cut":
            del content[at : at + data.draw(st.integers(1, 64))]
        else:
            content[at:at] = data.draw(st.binary(max_size=32))
        if not content:
            break
    _decode_or_refuse(bytes(content))


@settings(max_examples=800)
@given(st.binary(max_size=2000))
def test_random_bytes_are_refused(content):
    with pytest.raises(MessageRefused):
        decode(content, p.REQUESTS)


def _decode_or_refuse(content: bytes) -> None:
    """Any other exception than a refusal goes through and fails the test."""
    try:
        message = decode(content, p.REQUESTS)
    except MessageRefused:
        return
    assert isinstance(message.payload, p.MakeRelease)
    assert message.payload.groups.dtype == np.int32
