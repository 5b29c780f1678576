"""Repair of groups that fail l-diversity or t-closeness: splits are undone, so that all that was shown stays nested."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Labels
from federated_anon.errors import GuaranteeBroken
from federated_anon.microaggregation.compiled import compiled
from federated_anon.sealed.partition import NestedPartition


def merge_siblings(partition: NestedPartition, failing: Labels) -> NestedPartition:
    """Undo the split that made each group named in ``failing``: it and all its sibling became are one group again.

    The splits stay in the history, for they were shown; a merged group keeps the name it had before and must not be
    split again, since a second split would cut across the first.
    """
    parent = parent_of_groups(partition)
    if 0 in failing:
        raise GuaranteeBroken("l, t or a wish cannot be reached: the whole table as one group does not keep it")
    merged = np.zeros(len(parent), dtype=np.bool_)
    merged[parent[failing]] = True
    return NestedPartition(_topmost(parent, merged)[partition.labels], partition.parents)


def parent_of_groups(partition: NestedPartition) -> Labels:
    """(2s + 1,): the group that each group was split from; -1 for everyone."""
    return np.concatenate([[-1], np.repeat(partition.parents, 2)]).astype(np.int32)


@compiled
def _topmost(parent: Labels, merged: NDArray[np.bool_]) -> Labels:
    """(2s + 1,): the highest merged group above or at each group, or the group itself."""
    found = np.arange(len(parent)).astype(np.int32)
    for group in range(1, len(parent)):
        above = found[parent[group]]
        if merged[above]:
            found[group] = above
    return found
