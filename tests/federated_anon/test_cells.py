"""Cells keep k, come from the units, and lie close; the same seed gives the same cells."""

import numpy as np
import pytest

from federated_anon import cells as module
from federated_anon.cells import make_cells, whole_units
from federated_anon.microaggregation import MDAV, information_loss, split_large_groups
from federated_anon.som import BatchSOM


def mixture(n, seed=0, columns=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(8, columns))[rng.integers(0, 8, n)] * 2 + rng.normal(size=(n, columns))


def mapped(points, side=8):
    return BatchSOM(side, side).fit(points, np.random.default_rng(0)).assign(points)


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("large", [10, 10_000])
def test_cells_hold_k_to_2k_minus_1_records(k, large, monkeypatch):
    monkeypatch.setattr(module, "LARGE", large)
    points = mixture(500)
    sizes = np.bincount(make_cells(points, mapped(points), k, seed=1))
    assert sizes.min() >= k
    assert sizes.max() <= 2 * k - 1


@pytest.mark.parametrize(
    ("points", "units"),
    [
        (np.zeros((9, 2)), np.arange(9)),
        (np.arange(5.0)[:, None], np.array([7, 7, 0, 0, 3])),
        (np.repeat(mixture(6), 5, axis=0), np.zeros(30, dtype=int)),
    ],
    ids=["all alike", "fewer than 2k records", "duplicates in one unit"],
)
def test_odd_tables_keep_k(points, units):
    assert np.bincount(make_cells(points, units, 3, seed=0)).min() >= 3


def test_cells_lose_less_than_units_split_alone_and_than_mdav():
    points = mixture(800)
    units = mapped(points)
    found = information_loss(points, make_cells(points, units, 5, seed=0))
    alone = split_large_groups(points, whole_units(points, units, 5), 5)
    assert found < 0.9 * information_loss(points, alone)
    assert found < information_loss(points, MDAV(k=5).fit(points).labels_)


def test_a_large_table_is_swept_in_blocks_without_losing_much(monkeypatch):
    points = mixture(6000)
    units = mapped(points, side=20)
    whole = information_loss(points, make_cells(points, units, 5, seed=0))
    monkeypatch.setattr(module, "LARGE", 1000)
    assert information_loss(points, make_cells(points, units, 5, seed=0)) < 1.25 * whole


@pytest.mark.parametrize("large", [100, 10_000])
def test_same_seed_same_cells_on_one_or_two_threads(large, monkeypatch):
    monkeypatch.setattr(module, "LARGE", large)
    points = mixture(3000)
    units = mapped(points)
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        found.append(make_cells(points, units, 4, seed=3))
    np.testing.assert_array_equal(*found)
