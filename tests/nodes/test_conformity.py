from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_anon.columns import Column, Kind, Role
from federated_anon.errors import DataRefused
from nodes.conformity import conform

DAY = dt.date(2020, 2, 29)
NOON = dt.datetime(2020, 2, 29, 12)


def conformed(values, kind, role=Role.QUASI, levels=()):
    column = Column("x", role, kind, levels=levels)
    return conform(pa.table({"x": values}), [column])["x"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([1, None], pa.int8()), Kind.INTEGER),
        (pa.array([2**64 - 1], pa.uint64()), Kind.INTEGER),
        (pa.array([1.5, None], pa.float32()), Kind.NUMBER),
        (pa.array([Decimal("1.5"), None], pa.decimal128(38, 1)), Kind.NUMBER),
        (pa.array([DAY], pa.date32()), Kind.DATE),
        (pa.array([DAY], pa.date64()), Kind.DATE),
        (pa.array([NOON, None], pa.timestamp("ns", "Europe/Berlin")), Kind.TIMESTAMP),
        (pa.array(["a", None]), Kind.CATEGORY),
        (pa.array(["a"], pa.large_string()), Kind.CATEGORY),
        (pa.array(["a", None]).dictionary_encode(), Kind.CATEGORY),
        (pa.array([1, 2], pa.int16()), Kind.CATEGORY),
        (pa.array([True, None]), Kind.BOOLEAN),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else value,
)
def test_types_that_fit_stay_as_they_are(values, kind):
    found = conformed(values, kind)
    assert found.type == values.type
    assert found.combine_chunks().equals(values)


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["1.5", " +2 ", "1e3", " ", None], Kind.NUMBER, [1.5, 2.0, 1000.0, None, None]),
        ([1, None], Kind.NUMBER, [1.0, None]),
        ([1.0, float("nan")], Kind.NUMBER, [1.0, None]),
        (["7", " +8", None], Kind.INTEGER, [7, 8, None]),
        (["18446744073709551615"], Kind.INTEGER, [2**64 - 1]),
        ([7.0, float("nan")], Kind.INTEGER, [7, None]),
        ([Decimal("7.0")], Kind.INTEGER, [7]),
        (["Yes", "NO", "true", "False", "1", "0", None], Kind.BOOLEAN, [True, False, True, False, True, False, None]),
        ([1, 0, None], Kind.BOOLEAN, [True, False, None]),
        ([1.0, 0.0, float("nan")], Kind.BOOLEAN, [True, False, None]),
        ([1.0, float("nan")], Kind.CATEGORY, [1, None]),
        ([b"a", None], Kind.CATEGORY, ["a", None]),
        (["2020-02-29", None], Kind.DATE, [DAY, None]),
        ([dt.datetime(2020, 2, 29), None], Kind.DATE, [DAY, None]),
        (["2020-02-29 12:00", "2020-02-29T12:00:00.5"], Kind.TIMESTAMP, [NOON, NOON.replace(microsecond=500_000)]),
        (["2020-02-29T12:00:00Z"], Kind.TIMESTAMP, [NOON.replace(tzinfo=dt.UTC)]),
        ([DAY], Kind.TIMESTAMP, [dt.datetime(2020, 2, 29)]),
    ],
)
def test_values_are_read_as_declared(values, kind, expected):
    assert conformed(values, kind).to_pylist() == expected


def test_a_date_at_midnight_of_its_zone_is_a_date():
    midnight = pa.array([dt.datetime(2020, 1, 1, 15)], pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    assert conformed(midnight.cast(pa.timestamp("us", "Asia/Tokyo")), Kind.DATE).to_pylist() == [dt.date(2020, 1, 2)]


def test_keys_and_sets():
    assert conformed([7, 8], Kind.TEXT, Role.KEY).to_pylist() == ["7", "8"]
    assert conformed([7.0, None], Kind.TEXT, Role.KEY).to_pylist() == ["7", None]
    assert conformed([["a"], []], Kind.SET, Role.SET).to_pylist() == [["a"], []]


def test_a_null_inside_a_dictionary_is_missing():
    hidden = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1], pa.int8()), pa.array(["a", None]))
    found = conformed(hidden, Kind.CATEGORY)
    assert found.null_count == 2
    assert found.type == hidden.type


@pytest.mark.parametrize(
    ("values", "kind", "words"),
    [
        (["1", "secret", "2", "secret", "x"], Kind.NUMBER, "not of type 'number': 3, the first in row 2"),
        (["1", "secret"], Kind.INTEGER, "not of type 'integer': 1, the first in row 2"),
        (["1.5"], Kind.INTEGER, "not of type 'integer': 1"),
        ([1.0, 1.5, 1e300], Kind.INTEGER, "not exact integers: 2, the first in row 2"),
        ([Decimal("7.5")], Kind.INTEGER, "not 64-bit integers"),
        ([1.0, float("inf"), float("-inf")], Kind.NUMBER, "infinite values: 2, the first in row 2"),
        (["1", "inf"], Kind.NUMBER, "infinite values: 1, the first in row 2"),
        ([pa.scalar(Decimal(10**20))], Kind.NUMBER, "more than 18 digits"),
        ([True], Kind.NUMBER, "holds bool, which cannot be read as type 'number'"),
        ([DAY], Kind.INTEGER, "holds date32"),
        (["secret", "yes"], Kind.BOOLEAN, "not boolean: 1, the first in row 1; allowed: true, yes, 1"),
        ([0, 2], Kind.BOOLEAN, "not boolean: 1, the first in row 2"),
        (["2020-02-29", "2020-02-30", "29.2.2020"], Kind.DATE, "not of type 'date': 2, the first in row 2"),
        ([NOON], Kind.DATE, "dates with a time of day: 1, the first in row 1"),
        (["2020-01-01T00:00:00Z", "2020-01-01"], Kind.TIMESTAMP, "not of one type"),
        (["secret"], Kind.TIMESTAMP, "not of type 'timestamp': 1"),
        ([1.5], Kind.CATEGORY, "not exact integers: 1"),
        ([["a"]], Kind.CATEGORY, "holds list"),
        ([b"\xff"], Kind.CATEGORY, "not UTF-8"),
        ([["a"]], Kind.TEXT, "holds list"),
        (["a"], Kind.SET, "holds string"),
        (pa.array([None, None], pa.float64()), Kind.NUMBER, "every value is missing"),
        (pa.nulls(2), Kind.CATEGORY, "every value is missing"),
        (pa.nulls(2), Kind.DATE, "every value is missing"),
    ],
)
def test_each_fault_is_counted_and_no_value_is_quoted(values, kind, words):
    with pytest.raises(DataRefused) as caught:
        conformed(values, kind)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("kind", [Kind.CATEGORY, Kind.ORDERED])
@pytest.mark.parametrize("values", [["low", "other", None, "other"], [3, 4, None, 4]])
def test_values_outside_the_levels_are_counted(kind, values):
    with pytest.raises(DataRefused, match="outside its levels: 2, the first in row 2"):
        conformed(values, kind, levels=("low", "high", "3"))
    assert conformed(values, kind, levels=("low", "other", "3", "4")).to_pylist() == values


def test_an_identifier_passes_unchecked():
    assert conformed(pa.nulls(2), Kind.NUMBER, Role.IDENTIFIER).null_count == 2
    assert conformed(["secret"], Kind.NUMBER, Role.IDENTIFIER).to_pylist() == ["secret"]


def test_columns_come_in_declared_order_and_others_stay_behind():
    table = pa.table({"a": [1], "b": [2], "c": [3]})
    columns = [Column("c", Role.QUASI, Kind.INTEGER), Column("a", Role.QUASI, Kind.INTEGER)]
    assert conform(table, columns).column_names == ["c", "a"]


def test_all_faults_come_in_one_message():
    table = pa.table({"a": ["x"], "b": pa.nulls(1), "c": [1]})
    columns = [Column(name, Role.QUASI, Kind.INTEGER) for name in ("a", "b", "c", "d")]
    with pytest.raises(DataRefused) as caught:
        conform(table, columns)
    assert str(caught.value).splitlines() == [
        "table refused, 3 faults:",
        "  no column 'd'; known columns: a, b, c",
        "  column 'a': values that are not of type 'integer': 1, the first in row 1; mend them, or leave them empty",
        "  column 'b': every value is missing; drop it (role identifier)",
    ]
    with pytest.raises(DataRefused, match="the table has no rows"):
        conform(table.slice(0, 0), columns[:1])


@given(st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_spelled_out_are_read_back(values):
    if any(value is not None for value in values):
        spelled = pa.array([None if value is None else repr(value) for value in values], pa.string())
        assert conformed(spelled, Kind.NUMBER).to_pylist() == values
