from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_anon.errors import Code, DataRefused
from nodes.identity import data_version, fold, normalise_ids, require_unique


@pytest.mark.parametrize(
    "spellings",
    [
        ["Ann Lee", " ann  lee\t", "ANN\u00a0LEE", "\uff21nn Lee"],
        ["Straße", "STRASSE", "strasse"],
        ["Café", "Cafe\u0301", "CAFÉ"],
        ["P-001", "p-001 "],
        ["Ann", "\u1d2cnn", "ann"],
    ],
)
def test_one_person_however_spelled(spellings):
    assert len(set(normalise_ids(pa.array(spellings)).to_pylist())) == 1


@pytest.mark.parametrize(
    "array",
    [
        pa.array([7, 12]),
        pa.array([7, 12], pa.uint8()),
        pa.array([7.0, 12.0]),
        pa.array(["7", " 12"]),
        pa.array(["7", "12"], pa.large_string()),
        pa.array(["7", "12"]).dictionary_encode(),
        pa.chunked_array([["7"], ["12"]]),
    ],
)
def test_integers_are_their_decimal_digits(array):
    assert normalise_ids(array).equals(pa.array(["7", "12"]))


def test_leading_zeros_matter():
    assert normalise_ids(pa.array(["007", "7", "7.0"])).to_pylist() == ["007", "7", "7.0"]


spelled = st.text(st.characters(codec="utf-8")) | st.text(st.sampled_from(" \t\n\x0b\x1c\x1faAbZ0é\u3000ẞ"))


@given(st.lists(spelled.filter(fold), min_size=1))
def test_whole_columns_fold_as_single_ids_do(ids):
    assert normalise_ids(pa.array(ids)).to_pylist() == [fold(value) for value in ids]


@given(spelled)
def test_folding_twice_changes_nothing(value):
    assert fold(fold(value)) == fold(value)


@given(st.text("abzéßäøж0 -"))
def test_case_and_surroundings_do_not_matter(value):
    assert fold(f" {value}\n") == fold(value) == fold(value.upper())


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (pa.array(["a", None, " ", ""]), "3 of 4 ids are missing or empty"),
        (pa.array([1.0, float("nan")]), "1 of 2 ids are missing"),
        (pa.array([1.0, 1.5, 1e300]), "2 of 3 ids are numbers that are not exact integers"),
        (pa.array([True]), "a key of bool"),
        (pa.array([["a"]]), "a key of list"),
    ],
)
def test_ids_that_name_nobody_are_refused(ids, words):
    with pytest.raises(DataRefused, match=words):
        normalise_ids(ids)


def test_repeated_ids_are_counted_not_named():
    require_unique(pa.array(["a", "b"]))
    with pytest.raises(DataRefused) as caught:
        require_unique(normalise_ids(pa.array(["Secret", "secret ", "b", "c", "C", "c"])))
    assert caught.value.code is Code.DUPLICATE_IDS
    assert "2 of 3 ids occur more than once, in 5 of 6 records" in str(caught.value)
    assert "secret" not in str(caught.value).lower()


TABLE = pa.table(
    {
        "id": ["a", "b", "c"],
        "n": [1, None, 3],
        "f": [0.5, None, 2.0],
        "town": ["x", None, ""],
        "flag": [True, None, False],
        "day": [dt.date(2020, 1, 1), None, dt.date(2020, 1, 2)],
        "at": [dt.datetime(2020, 1, 1), None, dt.datetime(2020, 1, 2)],
        "cash": [Decimal("1.5"), None, Decimal("2.5")],
        "items": [["x", "y"], None, []],
        "hour": pa.array([1, None, 3], pa.time32("s")),
    }
)


def changed(name, values):
    place = TABLE.column_names.index(name)
    return TABLE.set_column(place, name, pa.array(values, TABLE[name].type))


def test_the_version_does_not_depend_on_storage():
    version = data_version(TABLE, "id")
    narrow = TABLE.set_column(1, "n", pa.array([1, None, 3], pa.int8()))
    coded = TABLE.set_column(3, "town", pa.array(["x", None, ""]).dictionary_encode())
    shouted = TABLE.set_column(0, "id", pa.array([" A", "b", "C"]))
    same = [
        TABLE.take([2, 0, 1]),
        pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)]),
        pa.concat_tables([TABLE, TABLE]).slice(3),
        TABLE.select(TABLE.column_names[::-1]),
        narrow,
        coded,
        shouted,
    ]
    assert {data_version(table, "id") for table in same} == {version}
    assert len(version) == 64
    assert int(version, 16)


def test_garbage_under_missing_values_does_not_count():
    left = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(np.array([1, 77]))])
    assert data_version(pa.table({"x": left}), None) == data_version(pa.table({"x": [1, None]}), None)


@pytest.mark.parametrize(
    "other",
    [
        changed("n", [1, 0, 3]),
        changed("f", [0.5, 0.0, 2.0]),
        changed("town", ["x", "", None]),
        changed("town", [None, "x", ""]),
        changed("flag", [True, False, None]),
        changed("day", [dt.date(2020, 1, 1), None, dt.date(2020, 1, 3)]),
        changed("at", [dt.datetime(2020, 1, 1), None, dt.datetime(2020, 1, 2, 1)]),
        changed("cash", [Decimal("1.5"), None, Decimal("2.4")]),
        changed("items", [["x"], ["y"], []]),
        changed("items", [["xy"], None, []]),
        changed("hour", [1, None, 4]),
        changed("id", ["a", "b", "d"]),
        TABLE.slice(1),
        TABLE.drop_columns(["n"]),
        TABLE.rename_columns(["id", "m", *TABLE.column_names[2:]]),
    ],
)
def test_any_change_of_content_is_another_version(other):
    assert data_version(other, "id") != data_version(TABLE, "id")


def test_values_do_not_slide_between_neighbours():
    assert data_version(pa.table({"a": ["xy", "z"]}), None) != data_version(pa.table({"a": ["x", "yz"]}), None)


def test_without_a_key_the_order_counts():
    assert data_version(TABLE.take([2, 0, 1]), None) != data_version(TABLE, None)
