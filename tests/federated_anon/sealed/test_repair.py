import numpy as np

from federated_anon.ladder import joined
from federated_anon.sealed import NestedPartition, laddered, sealed_groups

#        0
#     1     2
#   3   4       (split 1 divides 1; split 2 divides 4 into 5, 6)
TREE = NestedPartition(np.array([3, 3, 5, 5, 6, 6, 2, 2], dtype=np.int32), np.array([0, 1, 4], dtype=np.int32))


def test_siblings_stand_beside_each_other_and_the_next_of_kin_come_after() -> None:
    numbers = laddered(TREE)
    by_name = dict(zip(TREE.labels.tolist(), numbers.tolist(), strict=True))
    assert by_name[5] // 2 == by_name[6] // 2
    assert by_name[3] // 2 == by_name[2] // 2
    assert sorted(by_name.values()) == [0, 1, 2, 3]


def test_joined_groups_are_unions_of_the_groups_that_were_shown() -> None:
    rng = np.random.default_rng(0)
    found = sealed_groups([rng.standard_normal((300, 2)) for _ in range(3)], 3, [1, 2, 3])
    numbers = laddered(found.partition)
    count = int(numbers.max()) + 1
    assert len(np.unique(np.stack([numbers, found.labels]), axis=1).T) == count == found.labels.max() + 1
    heights = np.zeros(count, dtype=np.int64)
    heights[:8] = 2
    assert len(np.unique(joined(heights)[numbers])) == count - 6
