import numpy as np
import pytest

from federated_anon.errors import GuaranteeBroken
from federated_anon.privacy.kanonymity import joint_labels
from federated_anon.sealed import NestedPartition, merge_siblings, sealed_groups

#        0
#     1     2
#   3   4       (split 1 divides 1; split 2 divides 4 into 5, 6)
TREE = NestedPartition(np.array([3, 3, 5, 5, 6, 6, 2, 2], dtype=np.int32), np.array([0, 1, 4], dtype=np.int32))


@pytest.mark.parametrize(
    ("failing", "labels"),
    [
        ([], [3, 3, 5, 5, 6, 6, 2, 2]),
        ([5], [3, 3, 4, 4, 4, 4, 2, 2]),
        ([3], [1, 1, 1, 1, 1, 1, 2, 2]),
        ([5, 3], [1, 1, 1, 1, 1, 1, 2, 2]),
        ([2], [0] * 8),
    ],
)
def test_a_failing_group_joins_all_that_its_sibling_became(failing: list[int], labels: list[int]) -> None:
    merged = merge_siblings(TREE, np.array(failing, dtype=np.int64))
    assert merged.labels.tolist() == labels
    assert merged.parents.tolist() == TREE.parents.tolist()


def test_merging_again_goes_one_split_further_up() -> None:
    once = merge_siblings(TREE, np.array([6]))
    assert merge_siblings(once, np.array([4])).labels.tolist() == [1, 1, 1, 1, 1, 1, 2, 2]


def test_nothing_is_above_everyone() -> None:
    with pytest.raises(GuaranteeBroken):
        merge_siblings(NestedPartition.whole(5), np.array([0]))


def test_merged_groups_are_unions_of_the_groups_that_were_shown() -> None:
    rng = np.random.default_rng(0)
    found = sealed_groups([rng.standard_normal((300, 2)) for _ in range(3)], 3, [1, 2, 3])
    names = np.unique(found.partition.labels)
    merged = merge_siblings(found.partition, names[::7])
    joint = joint_labels([merged.labels, found.labels], 300)
    assert len(np.unique(joint)) == len(names)
    assert not np.isin(names[::7], merged.labels).any()
    assert len(np.unique(merged.labels)) < len(names)
