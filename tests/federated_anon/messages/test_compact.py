"""Tables travel in few bytes and arrive as they were; what no sender of ours writes is refused."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_anon.errors import MessageRefused
from federated_anon.messages.compact import MEANT, narrowed, widened
from federated_anon.representatives import ROUNDING, rounded

WIDE = [pa.int16(), pa.int32(), pa.int64(), pa.date32(), pa.timestamp("s"), pa.timestamp("ns"), pa.float64()]


@given(
    kind=st.sampled_from(WIDE),
    reach=st.sampled_from([0, 100, 127, 128, 20_000]),
    seed=st.integers(0, 999),
    gaps=st.booleans(),
)
def test_a_table_arrives_as_it_was(kind, reach, seed, gaps):
    rng = np.random.default_rng(seed)
    whole = rng.integers(-reach, reach + 1, 20)
    numbers = whole / 7 if pa.types.is_floating(kind) and seed % 2 else whole
    column = pa.array([None if gaps and i % 3 == 0 else n for i, n in enumerate(numbers.tolist())])
    column = column.cast(pa.int32()).cast(kind) if pa.types.is_date32(kind) else column.cast(kind)
    table = pa.table({"a": column, "b": [str(i) for i in range(20)]})
    short = narrowed(table)
    assert widened(short).equals(table, check_metadata=True)
    assert short.nbytes <= table.nbytes


@pytest.mark.parametrize(
    "odd", [[-0.0, 1.0], [float("nan"), 1.0], [float("inf"), 1e300], [5e-324, 1.0], [0.1 + 0.2, 1]]
)
def test_numbers_that_do_not_fit_keep_all_their_bits(odd):
    table = pa.table({"x": pa.array(odd, pa.float64())})
    back = widened(narrowed(table))["x"].to_numpy()
    assert back.tobytes() == np.array(odd, dtype=float).tobytes()


def test_rounded_numbers_take_half_the_bytes_and_move_little():
    exact = np.random.default_rng(0).normal(100, 30, 5000)
    table = rounded(pa.table({"x": exact}))
    assert narrowed(table).schema.field("x").type == pa.float32()
    assert 0 < np.abs(table["x"].to_numpy() - exact).max() <= ROUNDING * exact.std()


@pytest.mark.parametrize("exact", [1e9 + np.arange(9) / 1000, np.full(9, 1 / 3), np.arange(9) * 1e300])
def test_a_column_that_rounding_would_blur_keeps_its_digits(exact):
    assert rounded(pa.table({"x": exact}))["x"].to_numpy().tobytes() == exact.tobytes()


@pytest.mark.parametrize(
    ("narrow", "meant"),
    [
        (pa.int8(), "string"),
        (pa.int64(), "int32"),
        (pa.int32(), "int32"),
        (pa.float32(), "int64"),
        (pa.int8(), "double"),
    ],
)
def test_a_type_that_no_column_is_narrowed_from_is_refused(narrow, meant):
    schema = pa.schema([pa.field("a", narrow, metadata={MEANT: meant})])
    with pytest.raises(MessageRefused):
        widened(pa.table({"a": pa.array([1, 2], narrow)}, schema=schema))
