from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from federated_anon.columns import Column, Kind, Role, column_faults, infer_column, infer_kind


def chunked(values, kind=None):
    return pa.chunked_array([pa.array(values, kind)])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (chunked([1.5, None]), Kind.NUMBER),
        (chunked([Decimal("1.5")]), Kind.NUMBER),
        (chunked([1], pa.uint8()), Kind.INTEGER),
        (chunked([True, None]), Kind.BOOLEAN),
        (chunked(["a", "b"]), Kind.CATEGORY),
        (chunked(["a", "b"], pa.large_string()), Kind.CATEGORY),
        (chunked([dt.date(2020, 1, 1)]), Kind.DATE),
        (chunked([dt.datetime(2020, 1, 1)]), Kind.TIMESTAMP),
        (chunked([["a"], []]), Kind.SET),
        (chunked([None, None]), Kind.CATEGORY),
        (chunked([{"a": 1}]), Kind.TEXT),
        (chunked([b"a", None]), Kind.CATEGORY),
        (chunked([1, None], pa.time32("s")), Kind.CATEGORY),
        (chunked([1, None], pa.duration("s")), Kind.CATEGORY),
        (chunked([f"name {i}" for i in range(51)]), Kind.TEXT),
        (chunked([f"name {i}" for i in range(50)]), Kind.CATEGORY),
        (chunked([f"name {i}" for i in range(60)] * 10), Kind.CATEGORY),
        (chunked([f"name {i}" for i in range(1001)] * 11), Kind.TEXT),
        (chunked([*map(str, range(11)), "oops"]), Kind.INTEGER),
        (chunked([*(f"{i}.5" for i in range(99)), "oops", None]), Kind.NUMBER),
        (chunked([*(f"-{i}e-3" for i in range(99)), "oops"]).dictionary_encode(), Kind.NUMBER),
        (chunked([str(i) for i in range(30)]), Kind.CATEGORY),
        (chunked([*map(str, range(20)), "a", "b", "c"]), Kind.CATEGORY),
        (chunked(["0", "1", "2", "3+"] * 9 + ["0"] * 99), Kind.CATEGORY),
    ],
)
def test_kind_is_inferred_from_values(values, kind):
    assert infer_kind(values) is kind


def test_an_ordered_dictionary_brings_its_levels_in_its_own_order():
    grades = pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array(["low", "high"]), ordered=True)
    found = infer_column("grade", Role.QUASI, pa.chunked_array([grades]))
    assert found == Column("grade", Role.QUASI, Kind.ORDERED, levels=("low", "high"))


def test_a_dictionary_of_names_is_text():
    names = pa.chunked_array([pa.array([f"name {i}" for i in range(60)]).dictionary_encode()])
    assert infer_column("who", Role.KEEP, names) == Column("who", Role.KEEP, Kind.TEXT)


@pytest.mark.parametrize(
    "column",
    [
        Column("age", Role.QUASI, Kind.INTEGER, weight=0.5),
        Column("grade", Role.QUASI, Kind.ORDERED, levels=("low", "high")),
        Column("town", Role.QUASI, Kind.CATEGORY, levels=("a",)),
        Column("note", Role.KEEP, Kind.TEXT),
        Column("items", Role.SET, Kind.SET),
        Column("items", Role.IDENTIFIER, Kind.SET),
    ],
)
def test_sound_declarations_have_no_faults(column):
    assert column_faults(column) == []


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (Column("note", Role.QUASI, Kind.TEXT), "free text cannot be a quasi-identifier"),
        (Column("grade", Role.QUASI, Kind.ORDERED), "needs at least two levels"),
        (Column("age", Role.QUASI, Kind.INTEGER, levels=("1", "2")), "levels are for ordered"),
        (Column("town", Role.QUASI, Kind.CATEGORY, levels=("b", "a", "b")), "more than once: b"),
        (Column("age", Role.QUASI, Kind.INTEGER, weight=0.0), "positive number, got 0.0"),
        (Column("age", Role.QUASI, Kind.INTEGER, weight=float("nan")), "positive number, got nan"),
        (Column("age", Role.QUASI, Kind.INTEGER, weight=float("inf")), "positive number, got inf"),
        (Column("items", Role.QUASI, Kind.SET), "go together"),
        (Column("items", Role.SET, Kind.CATEGORY), "go together"),
        (Column(" ", Role.QUASI, Kind.NUMBER), "needs a name"),
    ],
)
def test_each_fault_is_named(column, words):
    (fault,) = column_faults(column)
    assert words in fault
    assert fault.startswith(f"column '{column.name}'")


def test_all_faults_come_together():
    assert len(column_faults(Column("", Role.QUASI, Kind.TEXT, weight=-1, levels=("a", "a")))) == 5
