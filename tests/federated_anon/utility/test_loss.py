"""Hand-computed tables: ten records in three groups."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy as scipy_entropy
from sklearn.metrics import mutual_info_score

from federated_anon.columns import Column, Kind, Role
from federated_anon.errors import DataRefused
from federated_anon.utility.combined import combined_utility, scores
from federated_anon.utility.loss import (
    classification_metric,
    discernibility,
    information_loss,
    least_distortion,
    minimal_distortion,
    range_loss,
    trade_off,
)

GROUPS = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 2])
ILL = pa.array(list("aabbbcacca"))
AGE = Column("age", Role.QUASI, Kind.INTEGER)
TOWN = Column("town", Role.QUASI, Kind.CATEGORY)


def test_discernibility_by_hand():
    assert discernibility(GROUPS) == 9 + 16 + 9
    assert discernibility(GROUPS, k=4) == 3 * 10 + 16 + 3 * 10


def test_classification_metric_by_hand():
    assert classification_metric(ILL, GROUPS) == pytest.approx(4 / 10)
    assert classification_metric(ILL, GROUPS, k=4) == pytest.approx(8 / 10)


def test_minimal_distortion_counts_changed_cells_and_missing_is_a_value():
    before = pa.table({"a": [1, 2, None, 4], "b": ["x", "y", "z", None]})
    after = pa.table({"a": [1, 3, None, None], "b": ["x", "x", "z", None]})
    assert minimal_distortion(before, after, ["a", "b"]) == 3
    assert least_distortion(before, after, ["a", "b"]) == 3


@given(st.permutations(range(6)))
def test_cells_that_must_have_changed_do_not_depend_on_the_order(order):
    before = pa.table({"a": [1, 2, 3, 4, 5, 6]})
    after = pa.table({"a": [1.5, 1.5, 3.0, 4.0, 5.5, 5.5]})
    assert least_distortion(before, after.take(pa.array(order)), ["a"]) == 4


def test_range_loss_by_hand():
    table = pa.table({"age": [20, 30, 40, 20, 20, 20, 60, 30, 30, 30], "town": list("xxxxyxxyyy")})
    by_hand = 3 * (20 / 40) + 4 * (40 / 40) + 0 + 4 * 1
    assert range_loss(table, [AGE, TOWN], GROUPS) == pytest.approx(by_hand)


def test_trade_off_is_bits_per_anonymity_given_up():
    codes = np.unique(ILL.to_pylist(), return_inverse=True)[1]
    gained = mutual_info_score(codes, GROUPS) / np.log(2)
    assert trade_off(ILL, GROUPS) == pytest.approx(gained / (10 - 3 + 1))
    assert scipy_entropy([4, 3, 3], base=2) >= gained


def test_information_loss_of_group_means_is_one_minus_the_variance_explained():
    rng = np.random.default_rng(0)
    values = rng.normal(size=10)
    means = np.array([values[g == GROUPS].mean() for g in range(3)])[GROUPS]
    column = Column("v", Role.QUASI, Kind.NUMBER)
    found = information_loss(pa.table({"v": values}), pa.table({"v": means}), [column])
    assert found.percent == pytest.approx(100 * (1 - means.var() / values.var()))
    assert found.columns == {"v": pytest.approx(found.percent)}


def test_combined_utility_and_score_by_hand():
    assert combined_utility(0.8, 0.6) == pytest.approx(0.7)
    assert combined_utility(0.8, 0.6, alpha=0.25) == pytest.approx(0.65)
    found = scores({"m": {"x": 0.5, "y": 0.9}, "n": {"x": 1.0, "y": 0.3}})
    assert found == {"m": pytest.approx(1.5), "n": pytest.approx(1 + 1 / 3)}
    with pytest.raises(DataRefused):
        scores({"m": {"x": 0.5}, "n": {"y": 1.0}})
    with pytest.raises(DataRefused):
        combined_utility(80.0, 0.6)


def test_the_printed_score_of_the_thesis_follows_from_its_own_table():
    """Table 3.8 prints shares of 6 data sets; a score over 6 cannot exceed 6, and its own sums differ by rounding."""
    k_tca = {"ecoli": 0.63, "electrical": 0.74, "glass": 0.71, "page-blocks": 0.60, "waveform": 0.66, "yeast": 0.51}
    c_tca = {"ecoli": 0.74, "electrical": 0.75, "glass": 0.54, "page-blocks": 0.70, "waveform": 0.65, "yeast": 0.51}
    found = scores({"k-tca": k_tca, "c-tca": c_tca})
    assert found["k-tca"] == pytest.approx(0.63 / 0.74 + 0.74 / 0.75 + 1 + 0.6 / 0.7 + 1 + 1)
    assert max(found.values()) <= 6
