"""A profile tells counts of at least k people, and nobody's value."""

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federated_anon.columns import Column, Kind, Role
from federated_anon.encoding import Encoding
from federated_anon.microaggregation import MDAV
from federated_anon.privacy import linkage_risk, representative_linkage
from federated_anon.profiles import After, Before, column_bins, profile_of, unit_heights
from federated_anon.representatives import representatives
from federated_anon.som import Grid


def quasi(kind: Kind, *levels: str) -> Column:
    return Column("x", Role.QUASI, kind, levels=levels)


def released(values: pa.Array, column: Column, k: int) -> pa.Array:
    """Groups of neighbours in the order of the rows, represented."""
    labels = np.minimum(np.arange(len(values)) // k, max(len(values) // k - 1, 0))
    return representatives(pa.table({"x": values}), [column], labels)["x"].take(pa.array(labels))


numbers = st.lists(
    st.one_of(st.none(), st.floats(-1e9, 1e9, allow_subnormal=False), st.sampled_from([0.0, 1.5])),
    min_size=8,
    max_size=120,
)


@given(values=numbers, k=st.integers(2, 6))
@settings(max_examples=150, deadline=None)
def test_no_bin_of_numbers_counts_fewer_than_k(values, k):
    column, before = quasi(Kind.NUMBER), pa.array(values, pa.float64())
    bins = column_bins(before, released(before, column, k), column, k)
    require_honest(bins, len(values), k)
    assert len(bins.edges) == len([label for label in bins.labels if label != "missing"]) - 1


@given(
    values=st.lists(st.one_of(st.none(), st.sampled_from("abcdefgh")), min_size=8, max_size=120), k=st.integers(2, 6)
)
@settings(max_examples=150, deadline=None)
def test_no_bin_of_names_counts_fewer_than_k_or_names_what_the_release_does_not(values, k):
    column, before = quasi(Kind.CATEGORY), pa.array(values, pa.string())
    after = released(before, column, k)
    bins = column_bins(before, after, column, k)
    require_honest(bins, len(values), k)
    shown = {"missing" if value is None else value for value in after.to_pylist()}
    assert set(bins.labels) - {"others"} <= shown


@given(
    st.lists(st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1)), min_size=8, max_size=80), st.integers(2, 6)
)
@settings(max_examples=60, deadline=None)
def test_no_bin_of_dates_counts_fewer_than_k(values, k):
    column, before = quasi(Kind.DATE), pa.array(values)
    require_honest(column_bins(before, released(before, column, k), column, k), len(values), k)


def require_honest(bins, people, k):
    assert len(bins.labels) == len(bins.before) == len(bins.after) == len(set(bins.labels))
    assert sum(bins.before) == sum(bins.after) == people
    assert min(bins.before) >= k or bins.before == (people,)


def test_neither_the_least_nor_the_greatest_value_nor_any_other_is_an_edge():
    values = np.random.default_rng(0).normal(50, 11, 400).round(5)
    column = quasi(Kind.NUMBER)
    bins = column_bins(pa.array(values), pa.array(values), column, 5)
    assert bins.labels[0].startswith("under ")
    assert bins.labels[-1].endswith(" or more")
    assert len(bins.edges) >= 5
    assert set(map(float, bins.edges)).isdisjoint(values.tolist())
    assert all(float(edge) % 5 == 0 for edge in bins.edges), "round numbers"


def test_dates_are_cut_at_years_and_ordered_levels_keep_their_order():
    days = pa.array(np.datetime64("1950-03-07") + np.arange(0, 20_000, 50))
    assert column_bins(days, days, quasi(Kind.DATE), 5).edges[0] in {"1955", "1960"}
    levels = pa.array(["low", "high", "mid", "high"] * 20)
    assert column_bins(levels, levels, quasi(Kind.ORDERED, "low", "mid", "high"), 5).labels == ("low", "mid", "high")


def made(people: int = 240, k: int = 5):
    rng = np.random.default_rng(3)
    table = pa.table(
        {"a": rng.normal(size=people), "b": rng.integers(0, 60, people), "c": rng.choice(list("xyz"), people)}
    )
    columns = [
        Column("a", Role.QUASI, Kind.NUMBER),
        Column("b", Role.QUASI, Kind.INTEGER),
        Column("c", Role.QUASI, Kind.CATEGORY),
    ]
    encoding = Encoding.fit(table, columns)
    points = encoding.encode(table)
    groups = MDAV(k).fit(points).labels_
    return Before(encoding, table, points), After(representatives(table, columns, groups), groups)


def test_correlations_are_those_of_numpy_and_need_many_people_for_few_figures():
    before, after = made()
    told = profile_of(before, after, 5, np.random.default_rng(0)).correlations
    rows = after.representatives.take(pa.array(after.groups))
    for side, table in ((told.before, before.table), (told.after, rows)):
        expected = np.corrcoef(table["a"].to_numpy(), table["b"].to_numpy())
        assert np.allclose(side, expected, atol=6e-4)
    few = made(people=7, k=3)
    assert profile_of(*few, 3, np.random.default_rng(0)).correlations is None


def test_linkage_by_representatives_is_linkage_by_rows():
    before, after = made()
    reps = before.encoding.encode(after.representatives)
    by_rows = linkage_risk(before.points, reps[after.groups], after.groups, after.groups, np.random.default_rng(1))
    assert representative_linkage(before.points, reps, after.groups, np.random.default_rng(1)) == by_rows
    told = profile_of(before, after, 5, np.random.default_rng(1)).linked
    assert told.value == round(by_rows.linked.value, 3) <= 0.2


def test_heights_are_mean_distances_to_told_neighbours_only():
    grid, codebook = Grid(1, 4), np.array([[0.0], [1.0], [3.0], [90.0]])
    assert unit_heights(grid, codebook, np.array([5, 5, 5, 4]), 5) == (1.0, 1.5, 2.0, None)
    assert unit_heights(grid, codebook, np.array([5, 0, 5, 5]), 5) == (None, None, 87.0, 87.0)


@pytest.mark.parametrize("people", [1, 3])
def test_a_handful_of_people_is_one_bin(people):
    values = pa.array([1.5, 2.5, 99.0][:people])
    bins = column_bins(values, values, quasi(Kind.NUMBER), 5)
    assert (bins.labels, bins.before) == (("all",), (people,))
