"""Groups that fail l-diversity or t-closeness are joined along the tree of splits: what was shown stays nested."""

from __future__ import annotations

import numpy as np

from federated_anon.arrays import Labels
from federated_anon.ladder import order_by_tree
from federated_anon.sealed.partition import NestedPartition


def laddered(partition: NestedPartition) -> Labels:
    """(n,): the groups numbered 0..g-1 as rungs of a ladder: siblings beside each other, then their next of kin.

    The numbers depend on the splits alone, so every party finds the same.
    """
    return np.asarray(order_by_tree(parent_of_groups(partition), np.flatnonzero(partition.sizes))[partition.compact])


def parent_of_groups(partition: NestedPartition) -> Labels:
    """(2s + 1,): the group that each group was split from; -1 for everyone."""
    return np.concatenate([[-1], np.repeat(partition.parents, 2)]).astype(np.int32)
