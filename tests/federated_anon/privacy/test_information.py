from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy as scipy_entropy
from scipy.stats import pearsonr
from sklearn.metrics import mean_squared_error as sklearn_mse
from sklearn.metrics import mutual_info_score

from federated_anon.errors import DataRefused
from federated_anon.privacy import closeness, distinct_diversity, entropy_diversity, smallest_class
from federated_anon.privacy import error as wrong
from federated_anon.privacy import information as bits

GROUPS = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 2])
ILL = pa.array(list("aabbbcacca"))
PAY = pa.array([3, 5, 9, 3, 5, 9, 9, 9, 3, 3])
PYCANON_T = {"ill": 0.36666666666666664, "pay": 0.16666666666666666}

shares = st.lists(st.floats(0.01, 1), min_size=2, max_size=8).map(lambda p: np.array(p) / sum(p))


def test_k_l_and_t_are_those_of_pycanon():
    """pycanon 1.3.6 on this table: k 3, l 2, entropy l 1 (the floor of ours), t 0.3667 and 0.1667."""
    assert smallest_class(GROUPS) == 3
    assert distinct_diversity(ILL, GROUPS).min() == 2
    assert entropy_diversity(ILL, GROUPS).min() == pytest.approx(1.8898815748423097)
    assert closeness(ILL, GROUPS, ordered=False).max() == pytest.approx(PYCANON_T["ill"])
    assert closeness(PAY, GROUPS, ordered=True).max() == pytest.approx(PYCANON_T["pay"])


@given(shares)
def test_entropies_are_those_of_scipy(p):
    other = np.roll(p, 1)
    assert bits.entropy(p) == pytest.approx(scipy_entropy(p, base=2))
    assert bits.normalised_entropy(p) == pytest.approx(scipy_entropy(p, base=2) / np.log2(len(p)))
    assert bits.relative_entropy(p, other) == pytest.approx(scipy_entropy(p, other, base=2), abs=1e-12)
    assert bits.cross_entropy(p, other) == pytest.approx(-(p * np.log2(other)).sum())


def test_edges_of_entropies():
    assert bits.entropy(np.array([1.0, 0.0])) == 0
    assert bits.normalised_entropy(np.array([1.0])) == 0
    assert bits.relative_entropy(np.array([0.5, 0.5]), np.array([1.0, 0.0])) == np.inf
    for p in (np.array([]), np.array([0.4, 0.4]), np.array([1.5, -0.5])):
        with pytest.raises(DataRefused):
            bits.entropy(p)


def test_mutual_information_is_that_of_scikit_learn():
    codes = np.unique(ILL.to_pylist(), return_inverse=True)[1]
    assert bits.mutual_information(ILL, GROUPS) == pytest.approx(mutual_info_score(codes, GROUPS) / np.log(2))
    assert bits.mutual_information(ILL, np.zeros(10, dtype=int)) == 0
    assert bits.conditional_entropy(ILL, np.arange(10)) == 0


def test_anonymity_sets_entropy_and_guesses_by_hand():
    assert bits.anonymity_sets(GROUPS).tolist() == [3, 3, 3, 4, 4, 4, 4, 3, 3, 3]
    assert bits.identification_entropy(GROUPS) == pytest.approx((6 * np.log2(3) + 4 * 2) / 10)
    assert bits.time_to_success(GROUPS) == pytest.approx((6 * 2 + 4 * 2.5) / 10)
    assert bits.guesses_needed([0.25] * 4) == pytest.approx(2.5)
    assert bits.guesses_needed([0.2, 0.7, 0.1]) == pytest.approx(0.7 + 0.4 + 0.3)


def test_histograms_are_those_of_numpy_plus_half_a_record():
    rng = np.random.default_rng(0)
    before, after = rng.normal(size=200), rng.normal(size=100)
    first, second = bits.histograms(before, after, 10)
    counts = np.histogram(before, bins=10)[0] + 0.5
    assert first == pytest.approx(counts / counts.sum())
    assert second.sum() == pytest.approx(1)


def test_correlation_is_that_of_scipy():
    rng = np.random.default_rng(1)
    x = rng.normal(size=30)
    y = x + rng.normal(size=30)
    assert bits.correlation(x, y) == pytest.approx(pearsonr(x, y).statistic)
    assert bits.correlation(x, np.ones(30)) == 0


def test_errors_by_scikit_learn_and_by_hand():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(20, 3)), rng.normal(size=(20, 3))
    assert wrong.mean_squared_error(x, y) == pytest.approx(3 * sklearn_mse(x, y))
    assert wrong.normalised_variance(x[:, 0], y[:, 0]) == pytest.approx(np.var(x[:, 0] - y[:, 0]) / np.var(x[:, 0]))
    assert wrong.normalised_variance(x[:, 0], x[:, 0] + 5) == pytest.approx(0)
    assert wrong.normalised_variance(np.ones(3), np.arange(3.0)) == np.inf
    line = np.array([[0.0], [1.0], [2.0], [3.0]])
    assert wrong.success_rate(line, line + np.array([[0], [0.4], [0.6], [9]]), 0.5).value == 0.5
    with pytest.raises(DataRefused):
        wrong.mean_squared_error(x, y[:5])


def test_degrees_of_anonymity():
    found = [wrong.degree_of_anonymity(p, 100) for p in (0, 0.01, 0.2, 0.6, 0.95, 1)]
    assert found == list(wrong.Degree)
    with pytest.raises(DataRefused):
        wrong.degree_of_anonymity(1.5, 10)


def test_interval_widths_are_quantiles_of_each_group():
    values = np.array([1.0, 2, 3, 0, 0, 0, 0, 5, 9, 7])
    found = wrong.interval_width(values, GROUPS, confidence=0.5)
    assert found == pytest.approx([1.0, 0.0, 2.0])
