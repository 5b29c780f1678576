from time import monotonic

import numpy as np
import pytest

from federated_anon.arrays import Labels, Points
from federated_anon.errors import DataRefused
from federated_anon.microaggregation import LocalSearch, Refine, information_loss
from federated_anon.microaggregation.mdav import mdav_labels
from federated_anon.microaggregation.neighbours import nearest_records
from federated_anon.microaggregation.partition import partition_of, transfer
from federated_anon.microaggregation.refine import moved, swapped
from federated_anon.microaggregation.search import total_error


@pytest.fixture
def table() -> Points:
    rng = np.random.default_rng(4)
    return rng.standard_normal((240, 3)) * rng.lognormal(0, 1, (240, 1))


def best_of_all_partitions(X: Points, k: int) -> float:
    """Least loss over every partition into groups of at least k, by dynamic programming over subsets."""
    n = len(X)
    best = {0: 0.0}
    for mask in range(1, 1 << n):
        rows = [i for i in range(n) if mask >> i & 1]
        best[mask] = np.inf
        first = rows[0]
        part = mask
        while part:
            if part >> first & 1 and part.bit_count() >= k and best[mask ^ part] < np.inf:
                members = X[[i for i in rows if part >> i & 1]]
                best[mask] = min(best[mask], best[mask ^ part] + ((members - members.mean(0)) ** 2).sum())
            part = (part - 1) & mask
    return 100 * best[(1 << n) - 1] / float(((X - X.mean(0)) ** 2).sum())


def test_search_finds_the_optimum_of_small_tables() -> None:
    for seed in range(4):
        X = np.random.default_rng(seed).standard_normal((9, 2))
        found = information_loss(X, LocalSearch(2, steps=400).fit(X).labels_)
        assert found == pytest.approx(best_of_all_partitions(X, 2), rel=1e-9)


def error_of(X: Points, labels: Labels) -> float:
    return sum(float(((X[labels == g] - X[labels == g].mean(0)) ** 2).sum()) for g in np.unique(labels))


def test_the_price_of_a_move_and_of_a_swap_is_exact(table: Points) -> None:
    labels = mdav_labels(table[:23], 4)
    partition = partition_of(table[:23], labels, 4)
    before = error_of(table[:23], labels)
    large, other = int(np.bincount(labels).argmax()), 0 if np.bincount(labels).argmax() else 1
    record, partner = int(np.flatnonzero(labels == large)[0]), int(np.flatnonzero(labels == other)[0])
    after = labels.copy()
    after[record] = other
    assert moved(partition, record, large, other) == pytest.approx(error_of(table[:23], after) - before)
    after[partner] = large
    sizes = np.bincount(labels)
    axis = partition.sums[other] / sizes[other] - partition.sums[large] / sizes[large]
    change = swapped(table[record], table[partner], axis, 1 / sizes[large] + 1 / sizes[other])
    assert change == pytest.approx(error_of(table[:23], after) - before)


def test_a_partition_stays_in_step_with_its_records(table: Points) -> None:
    labels = mdav_labels(table, 5)
    partition = partition_of(table, labels, 5, capacity=40)
    for record in (0, 7, 9, 100):
        transfer(partition, record, 3)
        labels[record] = 3
    assert np.array_equal(partition.label, labels)
    assert np.array_equal(partition.size, np.bincount(labels, minlength=len(partition.size)))
    np.testing.assert_allclose(partition.sums[3], table[labels == 3].sum(axis=0))
    assert total_error(partition) == pytest.approx(error_of(table, labels))


def test_each_stage_lowers_the_loss(table: Points) -> None:
    losses = [
        information_loss(table, labels)
        for labels in (
            mdav_labels(table, 5),
            Refine(5).fit(table).labels_,
            LocalSearch(5, steps=500).fit(table).labels_,
            LocalSearch(5, steps=20_000).fit(table).labels_,
        )
    ]
    assert losses == sorted(losses, reverse=True)
    assert losses[2] < 0.97 * losses[0]


def test_refine_keeps_what_cannot_be_improved(table: Points) -> None:
    once = Refine(5).fit(table).labels_
    assert np.array_equal(Refine(5, start=once).fit(table).labels_, once)


def test_steps_and_seed_repeat_and_seeds_differ(table: Points) -> None:
    first, again, other = (LocalSearch(5, steps=300, seed=seed).fit(table).labels_ for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_budget_in_seconds_ends_in_time(table: Points) -> None:
    begun = monotonic()
    labels = LocalSearch(5, seconds=0.2).fit(table).labels_
    assert monotonic() - begun < 5
    assert information_loss(table, labels) < information_loss(table, mdav_labels(table, 5))


def test_a_bad_budget_is_refused(table: Points) -> None:
    with pytest.raises(DataRefused, match="steps must not be negative"):
        LocalSearch(5, steps=-1).fit(table)
    with pytest.raises(DataRefused, match="seconds positive"):
        LocalSearch(5, seconds=0).fit(table)


def test_a_start_below_k_is_refused(table: Points) -> None:
    for method in (Refine(5, start=np.arange(240) // 4), LocalSearch(5, start=np.arange(240) // 4)):
        with pytest.raises(DataRefused, match="start must put at least k=5"):
            method.fit(table)


def test_nearest_records_are_the_nearest(table: Points) -> None:
    distances = ((table[:, None] - table) ** 2).sum(-1)
    np.fill_diagonal(distances, np.inf)
    near = nearest_records(table, 5)
    expected = np.sort(distances, axis=1)[:, :5]
    np.testing.assert_allclose(np.take_along_axis(distances, near, axis=1), expected, rtol=1e-3, atol=1e-4)
    assert nearest_records(table[:3], 5).shape == (3, 2)
