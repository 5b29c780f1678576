"""What two published partitions give away, checked against the rank of the equations themselves."""

import time

import numpy as np
import pytest

from federated_anon.bridges import bridges, groups_to_veil


def equations(cells, groups, kept_groups):
    """One row per published sum: which records it adds up."""
    rows = [cells == c for c in range(cells.max() + 1)]
    return np.array(rows + [groups == g for g in np.flatnonzero(kept_groups)], dtype=float)


def determined(system):
    """Records whose unit vector lies in the row space: its distance to that space is zero."""
    _, values, right = np.linalg.svd(system, full_matrices=False)
    basis = right[values > 1e-9]
    return (basis**2).sum(axis=0) > 1 - 1e-9


def random_partitions(seed):
    """Two partitions with parts of at least two, nested in part, so that bridges and several pieces occur."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(4, 40)), int(rng.integers(2, 4))
    parts = max(n // k, 1)
    cells = np.sort(np.arange(n) % parts)
    groups = cells.copy()
    moved = rng.choice(n, size=int(rng.integers(0, n // 2 + 1)), replace=False)
    groups[moved] = groups[rng.permutation(moved)]
    return cells, groups


@pytest.mark.parametrize("block", range(8))
def test_exactly_the_bridges_are_determined(block):
    for seed in range(100 * block, 100 * block + 100):
        cells, groups = random_partitions(seed)
        everything = np.ones(groups.max() + 1, dtype=bool)
        np.testing.assert_array_equal(
            determined(equations(cells, groups, everything)), bridges(cells, groups)
        )


@pytest.mark.parametrize("block", range(8))
def test_no_record_is_determined_once_the_groups_are_veiled(block):
    for seed in range(100 * block, 100 * block + 100):
        cells, groups = random_partitions(seed)
        assert not determined(equations(cells, groups, ~groups_to_veil(cells, groups))).any()


def test_no_smaller_set_of_veiled_groups_would_do():
    for seed in range(300):
        cells, groups = random_partitions(seed)
        veiled = groups_to_veil(cells, groups)
        for group in np.flatnonzero(veiled):
            fewer = veiled.copy()
            fewer[group] = False
            assert determined(equations(cells, groups, ~fewer)).any()


def test_coefficients_of_a_few_features_determine_nothing_more():
    cells, groups = np.arange(60) // 3, np.random.default_rng(0).permutation(60) // 3
    system = equations(cells, groups, np.ones(20, dtype=bool))
    features = np.random.default_rng(1).normal(size=(5, 60))
    np.testing.assert_array_equal(determined(np.vstack([system, features])), bridges(cells, groups))


def test_one_moved_pair_is_seen():
    """A record that moved alone is a bridge; two that moved between the same parts share a cycle."""
    cells = np.array([0, 0, 0, 0, 1, 1, 1])
    assert bridges(cells, np.array([0, 0, 0, 1, 1, 1, 1])).tolist() == [False] * 3 + [True] + [False] * 3
    assert not bridges(cells, np.array([0, 0, 1, 1, 1, 1, 1])).any()
    assert not groups_to_veil(cells, cells).any()
    assert groups_to_veil(cells, np.array([0, 0, 0, 1, 1, 1, 1])).tolist() == [True, True]


def test_a_million_records_take_seconds():
    rng = np.random.default_rng(0)
    cells = rng.permutation(np.arange(1_000_000) // 3)
    groups = np.where(rng.random(1_000_000) < 0.5, cells, rng.permutation(cells))
    bridges(cells[:9], groups[:9])
    started = time.perf_counter()
    assert groups_to_veil(cells, groups).any()
    assert time.perf_counter() - started < 6
