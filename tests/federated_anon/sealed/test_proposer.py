import numpy as np
import pytest

from federated_anon.arrays import Points
from federated_anon.errors import DataRefused
from federated_anon.sealed import NestedPartition, Proposer, SplitRules, apply, open_groups, sealed_groups
from tests.federated_anon.sealed.tables import grouped, numbers


def two_clouds(records: int = 40, columns: int = 3) -> Points:
    rng = np.random.default_rng(1)
    table = rng.standard_normal((records, columns))
    table[::2] += 50.0
    return table


def test_the_gain_follows_from_sizes_and_means_of_both_sides() -> None:
    table, rules = two_clouds(), SplitRules(3)
    proposer = Proposer(table, np.arange(40), rules)
    whole = NestedPartition.whole(40)
    gains = proposer.gains(whole)
    after = apply(whole, np.array([0]), [proposer.bits(gains.groups)], rules)
    sides = [table[after.labels == name] for name in np.unique(after.labels)]
    apart = sides[0].mean(axis=0) - sides[1].mean(axis=0)
    assert gains.values[0] == pytest.approx((len(sides[0]) * len(sides[1])) ** 0.2 * (apart @ apart), rel=1e-6)
    assert len(np.unique(after.labels[::2])) == len(np.unique(after.labels[1::2])) == 1


def test_small_groups_are_cut_without_waste() -> None:
    rng = np.random.default_rng(3)
    for records in range(10, 40):
        proposer = Proposer(rng.standard_normal((records, 2)), np.arange(records), SplitRules(5))
        whole = NestedPartition.whole(records)
        sizes = apply(whole, np.array([0]), [proposer.bits(proposer.gains(whole).groups)], SplitRules(5)).sizes[1:]
        assert sizes.min() >= 5
        assert (sizes // 5).sum() == records // 5


def test_bits_are_told_only_of_groups_whose_gains_were() -> None:
    proposer = Proposer(two_clouds(), np.arange(40), SplitRules(3))
    with pytest.raises(DataRefused):
        proposer.bits(np.array([0]))
    proposer.gains(NestedPartition.whole(40))
    assert proposer.bits(np.zeros(0, dtype=np.int64)) == b""
    with pytest.raises(DataRefused):
        proposer.bits(np.array([1]))


@pytest.mark.parametrize("private", [np.zeros(40), np.arange(39)])
def test_private_numbers_must_differ(private: Points) -> None:
    with pytest.raises(DataRefused):
        Proposer(two_clouds(), private, SplitRules(3))


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("columns", [1, 2, 40])
def test_groups_end_between_k_and_twice_k(k: int, columns: int) -> None:
    rng = np.random.default_rng(k)
    found = sealed_groups([rng.standard_normal((150, columns)), rng.integers(0, 2, (150, 2))], k, [0, 1])
    sizes = np.bincount(found.labels)
    assert k <= sizes.min() <= sizes.max() < 2 * k
    assert len(open_groups(found.partition, k)) == 0


def test_the_same_bytes_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    blocks = np.array_split(rng.standard_normal((20_000, 6)), 3, axis=1)
    told = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        told.append(grouped(blocks, numbers(20_000, 3), SplitRules(5)).transcript)
    assert told[0] == told[1] == told[2]


def test_columns_without_values_split_at_random() -> None:
    found = sealed_groups([np.zeros((50, 2)), np.zeros((50, 1))], 5, [0, 1])
    assert np.bincount(found.labels).min() >= 5
    assert (np.diff(found.labels) != 0).sum() > 12


@pytest.mark.parametrize(
    ("rows", "k", "seeds"), [((10, 9), 3, (0, 1)), ((10, 10), 3, (0,)), ((), 3, ()), ((10, 10), 11, (0, 1))]
)
def test_tables_that_cannot_be_grouped_are_refused(rows: tuple[int, ...], k: int, seeds: tuple[int, ...]) -> None:
    with pytest.raises(DataRefused):
        sealed_groups([np.zeros((count, 2)) for count in rows], k, seeds)
