from __future__ import annotations

import datetime as dt

import numpy as np
import ot
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from federated_anon.columns import Column, Kind, Role
from federated_anon.errors import DataRefused
from federated_anon.utility.structure import column_distance, correlation_error, sliced_distance, structure

numbers = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)


@given(numbers, numbers)
def test_numbers_move_as_far_as_scipy_says(before, after):
    found = column_distance(pa.array(before), pa.array(after))
    assert found.w1 == pytest.approx(wasserstein_distance(before, after), rel=1e-9, abs=1e-6)


def test_tiny_numbers_have_a_deviation_too():
    found = column_distance(pa.array([0.0, 2e-293]), pa.array([0.0]))
    assert (found.by_range, found.by_std) == (0.5, 1.0)


def test_a_hand_computed_column():
    found = column_distance(pa.array([0.0, 2.0, 4.0]), pa.array([1.0, 2.0, 3.0]))
    assert found.w1 == pytest.approx(2 / 3)
    assert found.by_range == pytest.approx(1 / 6)
    assert found.by_std == pytest.approx(2 / 3 / np.std([0, 2, 4]))


def test_categories_are_as_far_apart_as_their_shares():
    found = column_distance(pa.array(["a", "a", "b", None]), pa.array(["a", "b", "b", "b"]))
    assert found.w1 == found.by_range == found.by_std == pytest.approx(0.5)
    assert found.missing == 0.25


def test_a_dictionary_and_its_strings_are_the_same_column():
    words = pa.array(["x", "y", "y"])
    assert column_distance(words.dictionary_encode(), words).w1 == 0


def test_ordered_levels_move_by_ranks():
    column = Column("c", Role.QUASI, Kind.ORDERED, levels=("low", "middle", "high"))
    found = column_distance(pa.array(["low", "high"]), pa.array(["middle", "middle"]), column)
    assert (found.w1, found.by_range) == (1.0, 0.5)


def test_dates_far_away_keep_their_ticks():
    start = dt.datetime(2026, 1, 1)
    before = pa.array([start, start + dt.timedelta(microseconds=2)], pa.timestamp("us"))
    after = pa.array([start + dt.timedelta(microseconds=1)] * 2, pa.timestamp("us"))
    assert column_distance(before, after).by_range == 0.5


def test_constant_and_missing_columns():
    assert column_distance(pa.array([3, 3]), pa.array([3, 3])).by_std == 0
    assert column_distance(pa.array([3, 3]), pa.array([4, 4])).by_std == 1
    assert column_distance(pa.array([1.0, None]), pa.array([None, None], pa.float64())).by_range == 1
    with pytest.raises(DataRefused):
        column_distance(pa.array([], pa.float64()), pa.array([1.0]))


def test_the_sliced_distance_is_the_mean_over_the_same_directions():
    rng = np.random.default_rng(0)
    before, after = rng.normal(size=(60, 3)), rng.normal(size=(40, 3)) + 1
    directions = ot.sliced.get_random_projections(3, 64, seed=5)
    by_hand = [wasserstein_distance(before @ one, after @ one) for one in directions.T]
    assert sliced_distance(before, after, seed=5) == pytest.approx(np.mean(by_hand))
    assert sliced_distance(before, before[::-1], seed=5) == pytest.approx(0, abs=1e-12)


def test_correlations_against_numpy_and_a_constant_column():
    rng = np.random.default_rng(1)
    before = rng.normal(size=(50, 3))
    after = before @ np.array([[1, 0.5, 0], [0, 1, 0], [0, 0, 0]])
    found = correlation_error(before, after)
    expected = np.corrcoef(before, rowvar=False)[[0, 0, 1], [1, 2, 2]]
    released = [np.corrcoef(after[:, :2], rowvar=False)[0, 1], 0, 0]
    assert found.mean == pytest.approx(np.abs(expected - released).mean())
    assert found.worst == pytest.approx(np.abs(expected - released).max())
    gap = np.cov(before.T, bias=True) - np.cov(after.T, bias=True)
    assert found.covariance == pytest.approx(np.linalg.norm(gap) / np.linalg.norm(np.cov(before.T, bias=True)))


def test_a_whole_table_names_its_worst_column():
    before = pa.table({"a": [1.0, 2.0, 3.0, 4.0], "b": [1, 1, 1, 9]})
    after = pa.table({"a": [1.5, 1.5, 3.5, 3.5], "b": [3, 3, 3, 3]})
    columns = [Column("a", Role.QUASI, Kind.NUMBER), Column("b", Role.QUASI, Kind.INTEGER)]
    found = structure(before, after, columns)
    assert found.worst_column == "b"
    assert found.median_by_range == pytest.approx((0.5 / 3 + 3 / 8) / 2)
    assert found.utility == pytest.approx(1 - found.median_by_range)
    assert structure(before, before.take(pa.array([3, 1, 2, 0])), columns).sliced == pytest.approx(0, abs=1e-12)
