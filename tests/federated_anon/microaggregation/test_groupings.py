"""Each method does what it says, on tables small enough to check by hand."""

from time import perf_counter

import numpy as np
import pytest

from federated_anon.arrays import Labels, Points
from federated_anon.errors import DataRefused
from federated_anon.microaggregation import (
    HAC,
    MDAV,
    TFRP,
    MaximumDistance,
    UnitGroups,
    VariableMDAV,
    group_means,
    information_loss,
    merge_small_units,
    split_large_groups,
)

LINE = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0], [13.0]])


def groups(labels: Labels) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}


@pytest.mark.parametrize("method", [MDAV(3), MaximumDistance(3), TFRP(3), HAC(3), VariableMDAV(3, gamma=1.1)])
def test_two_clusters_on_a_line_are_found(method: MDAV) -> None:
    assert groups(method.fit(LINE).labels_) == {frozenset({0, 1, 2}), frozenset({3, 4, 5, 6})}


def naive_mdav(X: Points, k: int) -> set[frozenset[int]]:
    left, found = list(range(len(X))), []

    def take(seed: int) -> None:
        order = sorted(left, key=lambda i: (((X[i] - X[seed]) ** 2).sum() if i != seed else -1.0, i))
        found.append(frozenset(order[:k]))
        left[:] = [i for i in left if i not in found[-1]]

    def farthest(place: Points) -> int:
        return max(left, key=lambda i: (((X[i] - place) ** 2).sum(), -i))

    while len(left) >= 3 * k:
        r = farthest(X[left].mean(axis=0))
        take(r)
        take(farthest(X[r]))
    if len(left) >= 2 * k:
        take(farthest(X[left].mean(axis=0)))
    return {*found, frozenset(left)}


@pytest.mark.parametrize("records", [14, 15, 31, 60])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_mdav_is_the_textbook_algorithm(records: int, k: int) -> None:
    X = np.random.default_rng(records).standard_normal((records, 3))
    assert groups(MDAV(k).fit(X).labels_) == naive_mdav(X, k)


def naive_farthest_pair(X: Points, k: int) -> set[frozenset[int]]:
    left, found = list(range(len(X))), []
    while len(left) >= 2 * k:
        gaps = ((X[left][:, None] - X[left]) ** 2).sum(-1)
        pair = [left[i] for i in np.unravel_index(gaps.argmax(), gaps.shape)]
        for seed in pair:
            if seed in left and len(left) >= 2 * k:
                order = sorted(left, key=lambda i: ((X[i] - X[seed]) ** 2).sum())
                found.append(frozenset(order[:k]))
                left = [i for i in left if i not in found[-1]]
    return {*found, frozenset(left)}


@pytest.mark.parametrize("k", [2, 3, 5])
def test_maximum_distance_starts_from_the_farthest_pair(k: int) -> None:
    X = np.random.default_rng(k).standard_normal((47, 3))
    assert groups(MaximumDistance(k).fit(X).labels_) == naive_farthest_pair(X, k)


def test_variable_groups_take_in_a_close_record() -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0], [50.0], [51.0], [52.0], [100.0], [101.0], [102.0]])
    assert np.bincount(VariableMDAV(3, gamma=1.1).fit(X).labels_).max() == 4
    assert {0, 1, 2, 3} in groups(VariableMDAV(3, gamma=1.1).fit(X).labels_)
    with pytest.raises(DataRefused, match="gamma"):
        VariableMDAV(3, gamma=-1).fit(X)


def test_the_second_stage_of_tfrp_never_loses() -> None:
    X = np.random.default_rng(0).lognormal(0, 1, (300, 3))
    first, second = (information_loss(X, TFRP(4, dissolve=stage).fit(X).labels_) for stage in (False, True))
    assert second <= first


def test_an_unknown_linkage_is_refused() -> None:
    with pytest.raises(DataRefused, match="linkage must be one of single, complete, centroid"):
        HAC(3, linkage="ward").fit(LINE)


def test_small_units_dissolve_smallest_first_into_the_nearest_survivor() -> None:
    X = np.array([[0.0], [0.1], [0.2], [1.05], [1.9], [2.0], [9.0]])
    units, codebook = np.array([0, 0, 0, 1, 2, 2, 4]), np.array([[0.0], [1.1], [2.0], [5.0], [9.0]])
    # Unit 1 (one record) joins unit 2, which then holds three; unit 4 (one record) joins it too.
    assert merge_small_units(X, units, codebook, 3).tolist() == [0, 0, 0, 1, 1, 1, 1]


def naive_merge(X: Points, units: Labels, codebook: Points, k: int) -> Labels:
    units = units.copy()
    alive = set(units.tolist())
    while len(alive) > 1:
        counts = {unit: int((units == unit).sum()) for unit in alive}
        smallest = min(counts, key=lambda unit: (counts[unit], unit))
        if counts[smallest] >= k:
            break
        alive.discard(smallest)
        rest = np.array(sorted(alive))
        for record in np.flatnonzero(units == smallest):
            units[record] = rest[((codebook[rest] - X[record]) ** 2).sum(axis=1).argmin()]
    return np.unique(units, return_inverse=True)[1]


@pytest.mark.parametrize("k", [2, 4, 9])
def test_merging_equals_the_plain_loop(k: int) -> None:
    rng = np.random.default_rng(k)
    X, codebook = rng.standard_normal((200, 2)), rng.standard_normal((60, 2))
    units = ((X[:, None] - codebook) ** 2).sum(-1).argmin(axis=1)
    assert np.array_equal(merge_small_units(X, units, codebook, k), naive_merge(X, units, codebook, k))


def test_thousands_of_small_units_merge_quickly() -> None:
    rng = np.random.default_rng(0)
    X, codebook = rng.standard_normal((20_000, 6)), rng.standard_normal((5000, 6))
    units = rng.integers(5000, size=20_000)
    merge_small_units(X[:50], units[:50] % 5, codebook[:5], 3)
    begun = perf_counter()
    assert np.bincount(merge_small_units(X, units, codebook, 5)).min() >= 5
    assert perf_counter() - begun < 10


def test_merging_needs_a_prototype_for_every_unit() -> None:
    with pytest.raises(DataRefused, match="codebook must give"):
        merge_small_units(LINE, np.arange(7), LINE[:3], 2)


def test_only_large_groups_split() -> None:
    labels = np.array([5, 5, 5, 2, 2, 2, 2])
    assert groups(split_large_groups(LINE, labels, 3)) == groups(labels)
    assert groups(split_large_groups(LINE, labels, 2)) == {
        frozenset({0, 1, 2}),
        frozenset({3, 4}),
        frozenset({5, 6}),
    }


def test_whole_units_are_an_option() -> None:
    X = np.random.default_rng(0).standard_normal((500, 2))
    whole, split = (np.bincount(UnitGroups(3, split=choice).fit(X).labels_) for choice in (False, True))
    assert whole.max() >= 6 > split.max()


def test_loss_is_the_share_of_variance_and_means_repeat_in_a_group() -> None:
    X = np.array([[0.0], [2.0], [10.0], [14.0]])
    labels = np.array([7, 7, 3, 3])
    assert group_means(X, labels).tolist() == [[1], [1], [12], [12]]
    assert information_loss(X, labels) == pytest.approx(100 * (2 + 8) / ((X - X.mean()) ** 2).sum())
    assert information_loss(np.ones((4, 2)), labels) == 0
