from __future__ import annotations

import datetime as dt
import math
import statistics
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_anon.columns import Column, Kind, Role
from federated_anon.errors import DataRefused
from federated_anon.representatives import representatives

LEVELS = ("low", "mid", "high")


def quasi(name, kind, levels=()):
    return Column(name, Role.QUASI, kind, levels=levels)


def represent(values, kind, labels, levels=()):
    found = representatives(pa.table({"x": values}), [quasi("x", kind, levels)], np.asarray(labels))
    return found["x"].to_pylist()


def test_each_kind_has_its_representative():
    table = pa.table(
        {
            "number": [1.0, 2.0, 6.0, 8.0],
            "integer": pa.array([1, 2, 2, 6], pa.int8()),
            "ordered": ["high", "low", "mid", "mid"],
            "category": ["b", "a", "c", "c"],
            "boolean": [True, False, True, True],
            "date": [dt.date(2020, 1, 1), dt.date(2020, 1, 3), dt.date(1969, 12, 31), dt.date(1969, 12, 29)],
            "timestamp": pa.array([0, 10, -1, -2], pa.timestamp("ms", "Asia/Tokyo")),
        }
    )
    levels = {"ordered": LEVELS}
    columns = [quasi(name, Kind(name), levels.get(name, ())) for name in table.column_names]
    found = representatives(table, columns, np.array([0, 0, 1, 1]))
    assert found.schema.equals(table.schema)
    expected = {
        "number": [1.5, 7.0],
        "integer": [2, 4],  # 1.5 rounds to the even 2
        "ordered": ["low", "mid"],
        "category": ["a", "c"],
        "boolean": [False, True],
        "date": [dt.date(2020, 1, 2), dt.date(1969, 12, 30)],
        "timestamp": pa.array([5, -2], pa.timestamp("ms", "Asia/Tokyo")).to_pylist(),
    }
    assert found.to_pydict() == expected


def test_groups_come_in_order_whatever_the_order_of_records():
    assert represent([30, 10, 20, 31, 11, 21], Kind.INTEGER, [2, 0, 1, 2, 0, 1]) == [10, 20, 30]


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1.0, None], Kind.NUMBER, 1.0),
        ([1.0, None, None], Kind.NUMBER, None),
        ([1.0, float("nan"), float("nan")], Kind.NUMBER, None),
        ([7, None, 8, None], Kind.INTEGER, 8),
        (pa.array([None, None], pa.int64()), Kind.INTEGER, None),
        (["a", None], Kind.CATEGORY, "a"),
        (["a", None, None], Kind.CATEGORY, None),
        (["a", "b", None, None], Kind.CATEGORY, None),
        ([True, None, True, None], Kind.BOOLEAN, True),
        (["low", None], Kind.ORDERED, None),
        (["low", "high", None], Kind.ORDERED, "low"),
        (["high", "mid", "mid", None, None], Kind.ORDERED, "mid"),
    ],
)
def test_missing_is_a_value_like_any_other(values, kind, expected):
    levels = LEVELS if kind is Kind.ORDERED else ()
    assert represent(values, kind, [0] * len(values), levels) == [expected]


def test_ties_go_to_the_first_in_level_order():
    assert represent(["b", "a"], Kind.CATEGORY, [0, 0]) == ["a"]
    assert represent(["b", "a"], Kind.CATEGORY, [0, 0], levels=("c", "b", "a")) == ["b"]
    assert represent([10, 9], Kind.CATEGORY, [0, 0]) == [9]


@pytest.mark.parametrize(
    "kind",
    [pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()],
    ids=str,
)
def test_extremes_of_integers_are_averaged_exactly(kind):
    bits = kind.bit_width - (0 if pa.types.is_unsigned_integer(kind) else 1)
    top, low = 2**bits - 1, 0 if pa.types.is_unsigned_integer(kind) else -(2**bits)
    values = pa.array([top, top, top, low, low, low, top, low], kind)
    assert represent(values, Kind.INTEGER, [0, 0, 0, 1, 1, 1, 2, 2]) == [
        top,
        low,
        round(Fraction(top + low, 2)),
    ]


def test_decimals_are_averaged_in_their_last_place():
    values = pa.array([Decimal("0.01"), Decimal("0.02"), Decimal("-5.00")], pa.decimal128(38, 2))
    assert represent(values, Kind.NUMBER, [0, 0, 1]) == [Decimal("0.02"), Decimal("-5.00")]


def test_equal_floats_represent_themselves_and_extremes_stay_finite():
    for size in range(1, 100):
        assert represent([0.1] * size + [1 / 3] * size, Kind.NUMBER, [0] * size + [1] * size) == [0.1, 1 / 3]
    assert represent([1.7e308, 1.7e308, 5e-324, 5e-324], Kind.NUMBER, [0, 0, 1, 1]) == [1.7e308, 5e-324]


def test_small_numbers_survive_beside_large_ones():
    assert represent([1e16, 1.0, -1e16, 1.0], Kind.NUMBER, [0] * 4) == [0.5]
    assert represent([2.0**60, 0.375, -(2.0**60)], Kind.NUMBER, [0] * 3) == [0.125]
    assert represent([1e300, 3e-300], Kind.NUMBER, [0, 1]) == [1e300, 3e-300]


def test_the_sign_of_zero_does_not_depend_on_order():
    for values in ([0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0]):
        assert math.copysign(1, represent(values, Kind.NUMBER, [0, 0])[0]) == 1


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.large_string()),
    ],
    ids=str,
)
def test_text_types_come_back_as_they_were(kind):
    values = pa.array(["b", "b", "a", None]).cast(kind)
    found = representatives(pa.table({"x": values}), [quasi("x", Kind.CATEGORY)], np.array([0, 0, 1, 1]))
    assert found["x"].type == kind
    assert found["x"].to_pylist() == ["b", "a"]


def test_an_ordered_dictionary_stays_ordered():
    values = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1], pa.int8()), pa.array(["low", "high"]), ordered=True)
    table = pa.table({"x": values})
    found = representatives(table, [quasi("x", Kind.ORDERED, LEVELS)], np.array([0, 0, 0]))
    assert found.schema.equals(table.schema)
    assert found["x"].to_pylist() == ["high"]
    assert found["x"].combine_chunks().dictionary.to_pylist() == ["low", "high"]


@st.composite
def grouped(draw):
    """A table of every kind with missing values, and labels that use every group."""
    rows = draw(st.integers(1, 25))

    def column(values, kind):
        return pa.array(draw(st.lists(st.none() | values, min_size=rows, max_size=rows)), kind)

    table = pa.table(
        {
            "number": column(st.floats(allow_nan=False, allow_infinity=False), pa.float64()),
            "single": column(st.floats(allow_nan=False, allow_infinity=False, width=32), pa.float32()),
            "integer": column(st.integers(-(2**63), 2**63 - 1), pa.int64()),
            "boolean": column(st.booleans(), pa.bool_()),
            "category": column(st.sampled_from(["a", "b", "c"]), pa.string()),
            "ordered": column(st.sampled_from(LEVELS), pa.string()),
            "date": column(st.dates(), pa.date32()),
            "timestamp": column(st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)), pa.timestamp("us")),
        }
    )
    labels = draw(st.lists(st.integers(0, 4), min_size=rows, max_size=rows))
    order = np.array(draw(st.permutations(range(rows))))
    return table, np.unique(labels, return_inverse=True)[1], order


COLUMNS = [
    quasi("number", Kind.NUMBER),
    quasi("single", Kind.NUMBER),
    quasi("integer", Kind.INTEGER),
    quasi("boolean", Kind.BOOLEAN),
    quasi("category", Kind.CATEGORY),
    quasi("ordered", Kind.ORDERED, LEVELS),
    quasi("date", Kind.DATE),
    quasi("timestamp", Kind.TIMESTAMP),
]


def as_bytes(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue().to_pybytes()


@given(grouped())
def test_the_order_of_records_does_not_change_a_byte(case):
    table, labels, order = case
    found = representatives(table, COLUMNS, labels)
    again = representatives(table.take(pa.array(order)), COLUMNS, labels[order])
    assert as_bytes(found) == as_bytes(again)


@given(grouped())
def test_types_survive_and_nothing_is_invented(case):
    table, labels, _ = case
    found = representatives(table, COLUMNS, labels)
    assert found.schema.equals(table.schema)
    assert found.num_rows == labels.max() + 1
    for name in ("boolean", "category", "ordered"):
        for group, value in enumerate(found[name].to_pylist()):
            assert value in [v for v, g in zip(table[name].to_pylist(), labels, strict=True) if g == group]


@given(grouped())
def test_means_agree_with_exact_arithmetic(case):
    table, labels, _ = case
    found = representatives(table, COLUMNS, labels)
    for group in range(found.num_rows):
        integers = [v for v, g in zip(table["integer"].to_pylist(), labels, strict=True) if g == group]
        present = [v for v in integers if v is not None]
        expected = round(Fraction(sum(present), len(present))) if 2 * len(present) >= len(integers) else None
        assert found["integer"][group].as_py() == expected
        numbers = [v for v, g in zip(table["number"].to_pylist(), labels, strict=True) if g == group]
        present = [v for v in numbers if v is not None]
        if 2 * len(present) < len(numbers):
            assert found["number"][group].as_py() is None
        else:
            exact = float(sum(map(Fraction, present)) / len(present))
            largest = max(map(abs, present))
            assert abs(found["number"][group].as_py() - exact) <= 4e-16 * abs(exact) + largest * 1e-31 + 1e-323


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([*LEVELS, None])), min_size=1))
def test_the_median_is_the_lower_one(pairs):
    labels = np.unique([g for g, _ in pairs], return_inverse=True)[1]
    found = represent(pa.array([v for _, v in pairs], pa.string()), Kind.ORDERED, labels, LEVELS)
    for group, value in enumerate(found):
        members = [v for (_, v), g in zip(pairs, labels, strict=True) if g == group]
        ranks = [LEVELS.index(v) for v in members if v is not None]
        half = 2 * len(ranks) <= len(members)
        assert value == (None if half else LEVELS[statistics.median_low(ranks)])


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["a", "b", "c", None])), min_size=1))
def test_the_mode_is_the_most_frequent(pairs):
    labels = np.unique([g for g, _ in pairs], return_inverse=True)[1]
    found = represent(pa.array([v for _, v in pairs], pa.string()), Kind.CATEGORY, labels)
    for group, value in enumerate(found):
        members = [v for (_, v), g in zip(pairs, labels, strict=True) if g == group]
        assert value == max(["a", "b", "c", None], key=members.count)


def test_what_cannot_be_represented_is_refused():
    table = pa.table({"x": ["a", "b"]})
    with pytest.raises(DataRefused, match="'x' of type 'text' has no representative"):
        representatives(table, [quasi("x", Kind.TEXT)], np.array([0, 0]))
    with pytest.raises(DataRefused, match="1 of 2 groups have no records"):
        representatives(table, [quasi("x", Kind.CATEGORY)], np.array([1, 1]))
    with pytest.raises(DataRefused, match="1 groups for 2 records"):
        representatives(table, [quasi("x", Kind.CATEGORY)], np.array([0]))
    with pytest.raises(DataRefused, match="0 groups for 0 records"):
        representatives(table.slice(0, 0), [quasi("x", Kind.CATEGORY)], np.array([], int))
    with pytest.raises(DataRefused, match="no column 'y'"):
        representatives(table, [quasi("y", Kind.CATEGORY)], np.array([0, 0]))
