import numpy as np
import pytest

from federated_anon.errors import MessageRefused, SettingsRefused
from federated_anon.sealed import NestedPartition, SplitRules, apply, open_groups, winners


def packed(*bits: int) -> bytes:
    return np.packbits(np.array(bits, dtype=np.uint8)).tobytes()


def test_groups_are_named_by_the_splits_that_made_them() -> None:
    rules = SplitRules(2)
    whole = NestedPartition.whole(8)
    halves = apply(whole, np.array([1]), [b"", packed(0, 0, 0, 0, 1, 1, 1, 1)], rules)
    assert halves.labels.tolist() == [1, 1, 1, 1, 2, 2, 2, 2]
    quarters = apply(halves, np.array([1, 0]), [packed(0, 1, 0, 1), packed(1, 1, 0, 0)], rules)
    assert quarters.labels.tolist() == [4, 4, 3, 3, 5, 6, 5, 6]
    assert quarters.parents.tolist() == [0, 1, 2]
    assert quarters.compact.tolist() == [1, 1, 0, 0, 2, 3, 2, 3]
    assert open_groups(quarters, 2).tolist() == []
    assert open_groups(halves, 2).tolist() == [1, 2]


def test_bits_of_several_groups_follow_each_other_without_gaps() -> None:
    rules = SplitRules(2)
    halves = apply(NestedPartition.whole(8), np.array([0]), [packed(0, 1, 0, 1, 0, 1, 0, 1)], rules)
    quarters = apply(halves, np.array([0, 0]), [packed(0, 0, 1, 1, 1, 0, 1, 0)], rules)
    assert quarters.labels.tolist() == [3, 6, 3, 5, 4, 6, 4, 5]


def test_a_winner_that_splits_off_little_goes_on_in_the_same_message() -> None:
    rules = SplitRules(2, chain_from=20)
    first = [1] * 2 + [0] * 28
    second = [0] * 14 + [1] * 14
    partition = apply(NestedPartition.whole(30), np.array([0]), [packed(*first, *second)], rules)
    assert partition.sizes.tolist() == [0, 0, 2, 14, 14]
    assert partition.parents.tolist() == [0, 1]
    with pytest.raises(MessageRefused, match="expected 58 bits"):
        apply(NestedPartition.whole(30), np.array([0]), [packed(*first)], rules)


@pytest.mark.parametrize(
    ("won", "bits", "fault"),
    [
        ([0], [packed(0, 0, 0, 0, 0, 0, 0, 1)], "needs 2 records, one has 1"),
        ([0], [packed(0, 0, 0, 0, 1, 1, 1, 1) + b"\0"], "expected 8 bits, got 16"),
        ([0], [packed(0, 0, 1, 1, 1, 1, 1, 1), b"\1"], "expected 0 bits, got 8"),
        ([0], [b""], "expected 8 bits, got 0"),
        ([1], [packed(0, 0, 0, 0, 1, 1, 1, 1)], "winner"),
        ([0, 0], [packed(0, 0, 0, 0, 1, 1, 1, 1)], "winner"),
    ],
)
def test_bits_that_do_not_fit_are_refused(won: list[int], bits: list[bytes], fault: str) -> None:
    partition = NestedPartition.whole(8)
    with pytest.raises(MessageRefused, match=fault):
        apply(partition, np.array(won), bits, SplitRules(2))


def test_the_largest_gain_wins_and_the_first_of_equals() -> None:
    gains = [np.array([1.0, 2.0, np.nan, 0.0]), np.array([3.0, 2.0, 0.0, np.nan]), np.array([2.0, 2.0, 1.0, 0.0])]
    assert winners(gains).tolist() == [1, 0, 2, 0]


def test_rules_list_all_their_faults() -> None:
    with pytest.raises(SettingsRefused, match="2 faults") as caught:
        SplitRules(1, directions=0)
    assert caught.value.faults == ("k must be at least 2", "directions must be at least 1")
