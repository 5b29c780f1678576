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
    """Cells, and groups that follow them but for a few records moved away; every part keeps two records."""
    rng = np.random.default_rng(seed)
    cells = np.repeat(np.arange(rng.integers(1, 8)), 5)
    groups = cells.copy()
    for record in rng.choice(len(cells), size=int(rng.integers(0, 8))):
        if np.count_nonzero(groups == groups[record]) > 2:
            groups[record] = rng.integers(cells.max() + 1)
    return cells, groups


def test_the_random_partitions_have_bridges_and_cycles():
    shares = np.array([bridges(*random_partitions(seed)).mean() for seed in range(800)])
    assert np.count_nonzero(shares > 0) > 200
    assert shares.max() < 1


@pytest.mark.parametrize("block", range(8))
def test_exactly_the_bridges_are_determined(block):
    for seed in range(100 * block, 100 * block + 100):
        cells, groups = random_partitions(seed)
        everything = np.ones(groups.max() + 1, dtype=bool)
        np.testing.assert_array_equal(determined(equations(cells, groups, everything)), bridges(cells, groups))


@pytest.mark.parametrize("block", range(8))
def test_no_record_is_determined_once_the_groups_are_veiled(block):
    for seed in range(100 * block, 100 * block + 100):
        cells, groups = random_partitions(seed)
        assert not determined(equations(cells, groups, ~groups_to_veil(cells, groups))).any()


def test_equal_sizes_leave_no_bridge():
    """A regular bipartite multigraph has none: one side of a bridge would hold unequal numbers of ends."""
    for seed in range(50):
        cells = np.arange(60) // 3
        assert not bridges(cells, np.random.default_rng(seed).permutation(cells)).any()


def test_no_smaller_set_of_veiled_groups_would_do():
    for seed in range(300):
        cells, groups = random_partitions(seed)
        veiled = groups_to_veil(cells, groups)
        for group in np.flatnonzero(veiled):
            fewer = veiled.copy()
            fewer[group] = False
            assert determined(equations(cells, groups, ~fewer)).any()


def test_coefficients_of_a_few_features_determine_nothing_more():
    cells, groups = next(pair for pair in map(random_partitions, range(100)) if bridges(*pair).sum() > 3)
    system = equations(cells, groups, np.ones(groups.max() + 1, dtype=bool))
    features = np.random.default_rng(1).normal(size=(5, len(cells)))
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
