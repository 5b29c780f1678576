from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import friedmanchisquare

from federated_anon.comparison.pictures import ranks_png
from federated_anon.errors import DataRefused
from federated_anon.utility.ranking import cliques, nemenyi_p, rank

CRITICAL = {2: 1.960, 3: 2.343, 4: 2.569, 5: 2.728, 6: 2.850, 7: 2.949, 8: 3.031, 9: 3.102, 10: 3.164}
"""Critical values of the two-tailed Nemenyi test at 0.05: Demšar (2006), table 5a."""

SCORES = np.round(np.random.default_rng(7).normal([0, 0.9, 0.2, 1.0], size=(14, 4)), 1)


@pytest.mark.parametrize("methods", CRITICAL)
def test_the_critical_difference_is_that_of_the_published_values(methods):
    scores = np.random.default_rng(0).normal(size=(14, methods))
    found = rank([str(number) for number in range(methods)], scores)
    expected = CRITICAL[methods] * np.sqrt(methods * (methods + 1) / (6 * 14))
    assert found.critical_difference == pytest.approx(expected, rel=5e-4)


def test_ranks_by_hand():
    found = rank(["a", "b", "c"], np.array([[3.0, 2.0, 1.0], [5.0, 5.0, 1.0]]))
    assert found.mean_ranks == (1.25, 1.75, 3.0)
    assert found.best_first == (("a", 1.25), ("b", 1.75), ("c", 3.0))


@given(st.integers(0, 1000), st.integers(3, 6), st.integers(3, 12))
def test_the_statistic_is_the_one_of_scipy_ties_or_not(seed, methods, cases):
    scores = np.random.default_rng(seed).integers(0, 5, size=(cases, methods)).astype(float)
    names = [str(number) for number in range(methods)]
    found = rank(names, scores)
    if np.ptp(scores, axis=1).any():
        oracle = friedmanchisquare(*scores.T)
        assert found.statistic == pytest.approx(oracle.statistic)
        assert found.p_value == pytest.approx(oracle.pvalue)
    lower = rank(names, -scores, higher_is_better=False)
    assert lower.mean_ranks == found.mean_ranks


def test_pairwise_p_values_are_those_of_scikit_posthocs():
    posthocs = pytest.importorskip("scikit_posthocs")
    oracle = posthocs.posthoc_nemenyi_friedman(SCORES).to_numpy()
    assert nemenyi_p(rank(list("abcd"), SCORES)) == pytest.approx(oracle, abs=1e-6)


def test_cases_of_one_table_do_not_make_it_more_certain():
    once, thrice = rank(list("abcd"), SCORES), rank(list("abcd"), np.repeat(SCORES, 3, axis=0), independent=14)
    assert thrice.statistic == pytest.approx(once.statistic)
    assert thrice.critical_difference == once.critical_difference


def test_cliques_are_the_widest_runs_within_the_difference():
    apart = np.array([[4, 3, 2, 1]] * 40, dtype=float)
    assert cliques(rank(list("abcd"), apart)) == []
    few = np.array([[4, 3, 2, 1]] * 6, dtype=float)  # The critical difference is 1.91: neighbours cannot be told apart.
    assert cliques(rank(list("abcd"), few)) == [("a", "b"), ("b", "c"), ("c", "d")]
    fewer = np.array([[4, 3, 2, 1]] * 4, dtype=float)  # 2.35: nor can those two ranks apart.
    assert cliques(rank(list("abcd"), fewer)) == [("a", "b", "c"), ("b", "c", "d")]


def test_a_picture_is_drawn_and_the_same_again():
    found = rank(list("abcd"), SCORES)
    assert ranks_png(found, "title").startswith(b"\x89PNG")
    assert ranks_png(found, "title") == ranks_png(found, "title")


def test_too_little_to_compare_is_refused():
    for scores in (np.ones((1, 3)), np.ones((3, 2)), np.full((3, 3), np.nan)):
        with pytest.raises(DataRefused):
            rank(list("abc"), scores)
