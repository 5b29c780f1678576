from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from federated_anon.errors import DataRefused
from federated_anon.privacy import Rate, indices_linkage, linkage_risk
from federated_anon.privacy import linkage as module
from federated_anon.privacy.linkage import wilson


def grouped_means(points, labels):
    return np.array([points[labels == g].mean(axis=0) for g in range(labels.max() + 1)])


@given(st.integers(0, 50), st.integers(1, 50))
def test_the_interval_is_the_one_of_scipy(successes, trials):
    successes = min(successes, trials)
    found, oracle = wilson(successes, trials), binomtest(successes, trials).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((oracle.low, oracle.high), abs=1e-12)
    assert found.low <= found.value <= found.high


def test_a_table_published_as_it_is_links_everybody():
    points = np.random.default_rng(0).normal(size=(50, 3))
    own = np.arange(50)
    found = linkage_risk(points, points[::-1], own, own[::-1], np.random.default_rng(1))
    assert found.linked.value == 1
    assert found.bound == 1
    assert found.by_chance == Rate(1 / 50, 1 / 50, 1 / 50)


def test_groups_far_apart_are_found_but_not_the_person_inside():
    labels = np.repeat([0, 1], [4, 6])
    points = np.random.default_rng(0).normal(size=(10, 2)) + 100 * labels[:, None]
    released = grouped_means(points, labels)[labels]
    found = linkage_risk(points, released, labels, labels, np.random.default_rng(1))
    assert found.linked.value == pytest.approx((4 * 1 / 4 + 6 * 1 / 6) / 10)
    assert found.bound == 1 / 4


def test_groups_published_alike_share_the_guess():
    released, labels = np.zeros((6, 1)), np.repeat([0, 1], 3)
    found = linkage_risk(np.array([[1.0]]), released, np.array([1]), labels, np.random.default_rng(0))
    assert found.linked.value == pytest.approx(1 / 6)


def test_a_tie_between_two_groups_is_broken_evenly():
    released, labels = np.array([[-1.0], [-1.0], [1.0], [1.0], [1.0]]), np.array([0, 0, 1, 1, 1])
    found = linkage_risk(np.zeros((1, 1)), released, np.array([0]), labels, np.random.default_rng(0))
    assert found.linked.value == pytest.approx(2 / 5 / 2)


def test_ties_are_seen_through_rounding():
    rng = np.random.default_rng(0)
    people, steps = rng.normal(size=(40, 6)), 0.1 * rng.normal(size=(40, 6))
    released = np.stack([people + steps, people - steps], axis=1) + 100 * np.arange(40)[:, None, None]
    found = linkage_risk(
        people + 100 * np.arange(40)[:, None],
        released.reshape(80, 6),
        np.arange(0, 80, 2),
        np.arange(80),
        np.random.default_rng(1),
    )
    assert found.linked.value == pytest.approx(1 / 2)


def test_somebody_whose_group_was_not_published_is_never_linked():
    found = linkage_risk(
        np.zeros((2, 1)), np.zeros((2, 1)), np.array([7, -1]), np.array([0, 0]), np.random.default_rng(0)
    )
    assert found.linked.value == 0


@given(st.integers(0, 2**32), st.integers(1, 4), st.booleans())
def test_the_expected_success_agrees_with_its_definition(seed, groups, alike):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(groups), rng.integers(0, groups, 8)])
    people = rng.integers(-2, 3, (len(labels), 2)).astype(float)
    means = rng.integers(-2, 3, (groups, 2)).astype(float)
    released = means[labels] if alike else rng.integers(-2, 3, people.shape).astype(float)
    expected = []
    for person, own in zip(people, labels, strict=True):
        distance = ((released - person) ** 2).sum(axis=1)
        nearest = distance == distance.min()
        expected.append((nearest & (labels == own)).sum() / nearest.sum() / (labels == own).sum())
    found = linkage_risk(people, released, labels, labels, rng)
    assert found.linked.value == pytest.approx(np.mean(expected))


def test_chunks_do_not_change_the_result(monkeypatch):
    rng = np.random.default_rng(3)
    points, labels = rng.normal(size=(300, 4)), np.arange(300) // 3
    released = grouped_means(points, labels)[labels]
    whole = linkage_risk(points, released, labels, labels, np.random.default_rng(5), sample=200)
    monkeypatch.setattr(module, "CELLS", 700)
    assert linkage_risk(points, released, labels, labels, np.random.default_rng(5), sample=200) == whole
    assert 0 < whole.linked.value < whole.bound == 1 / 3


def test_indices_link_by_their_distinct_combinations():
    first, second = np.array([0, 0, 1, 1]), np.array([5, 5, 5, 6])
    assert indices_linkage([first]) == 2 / 4
    assert indices_linkage([first, second]) == 3 / 4


def test_nothing_to_attack_is_refused():
    none, some, rng = np.empty((0, 2)), np.zeros((1, 2)), np.random.default_rng(0)
    with pytest.raises(DataRefused, match="got 0 people and 1 published"):
        linkage_risk(none, some, np.array([], int), np.array([0]), rng)
    with pytest.raises(DataRefused, match="at least one holder"):
        indices_linkage([])
    with pytest.raises(DataRefused, match="at least one trial"):
        wilson(0, 0)
