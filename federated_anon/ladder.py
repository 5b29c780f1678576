"""A ladder of groups: which are joined where one breaks l or t, fixed before anybody looks at a sensitive value.

Groups are numbered so that neighbours in number are close. On rung h, groups stand together in twos to the power of h:
group i of g in the party ``min(i >> h, (g >> h) - 1)``, so that the last party takes what is left over; on the top rung
all are one. A holder with a sensitive column lets every party that breaks l or t climb one rung, until none does, and
tells once how high each group stands. Distinct and entropy diversity never fall when groups are joined, and closeness
never rises above its worst part (it is convex), so what several holders ask for holds for all of them together.

What that tells: of the groups in a party, one at least broke l or t. Not which: partners are fixed beforehand and of
like size, so by symmetry a member's sensitive value is nearly as uncertain as the released group leaves it.
A verdict per group, the plain way, names the group, and with the values of the group it ends in mostly the value too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from federated_anon.arrays import Labels, Points
from federated_anon.errors import MessageRefused
from federated_anon.microaggregation.compiled import compiled

NEAREST = 9
"""Neighbours, oneself among them, that are looked at for a partner."""


def top_rung(count: int) -> int:
    """The lowest rung on which ``count`` groups are one."""
    return max(count, 1).bit_length() - 1


def party(groups: Labels, rung: int, count: int) -> Labels:
    """The party of each group on a rung."""
    return np.minimum(np.asarray(groups, dtype=np.int64) >> rung, max(count >> rung, 1) - 1)


def joined(heights: Labels) -> Labels:
    """(g,): the joined group of each group that stands ``heights`` high, numbered 0.. in the order of the groups.

    Raises ``MessageRefused`` unless all of a party stand as high as it does.
    """
    count = len(heights)
    if count == 0 or heights.min() < 0 or heights.max() > top_rung(count):
        raise MessageRefused(f"heights of {count} groups lie between 0 and {top_rung(count)}")
    whole = np.zeros(count, dtype=np.int64)
    for rung in range(int(heights.max()) + 1):
        own = party(np.arange(count), rung, count)
        lifted = np.flatnonzero(heights == rung)
        members = np.isin(own, own[lifted])
        if (heights[members] < rung).any():
            raise MessageRefused("a party climbs with all its groups, or not at all")
        whole[lifted] = own[lifted] << rung
    return np.unique(whole, return_inverse=True)[1]


def climb(count: int, failing: Callable[[Labels], NDArray[np.bool_]]) -> Labels | None:
    """(count,): how high each group must stand so that no joined group fails; None if no height helps.

    ``failing`` is given the joined group of each group, and answers per joined group.
    """
    heights = np.zeros(count, dtype=np.int32)
    while True:
        current = joined(heights)
        bad = failing(current)[current]
        if not bad.any():
            return heights
        if heights[bad].max() == top_rung(count):
            return None
        for rung in np.unique(heights[bad]) + 1:
            own = party(np.arange(count), int(rung), count)
            lifted = np.isin(own, own[bad & (heights == rung - 1)])
            heights[lifted] = np.maximum(heights[lifted], rung)


def order_by_tree(parent: Labels, leaves: Labels) -> Labels:
    """(g,): the number of each leaf of a tree of splits, such that parties stand as low in the tree as can be.

    ``parent`` (nodes,) names the node above each, itself earlier, and -1 for the first; ``leaves`` (g,) are nodes.
    Round after round, what is left without a partner below a node meets the next one there. Odd ones go last.
    """
    at = np.asarray(leaves, dtype=np.int64).copy()
    following = np.full(len(leaves), -1, dtype=np.int64)
    last = np.arange(len(leaves), dtype=np.int64)
    items: Labels = np.arange(len(leaves), dtype=np.int64)
    odd: list[int] = []
    while len(items) > 1:
        items, left = _paired(np.asarray(parent, dtype=np.int64), items, at, following, last)
        odd += [left] if left >= 0 else []
    found, item = np.empty(len(leaves), dtype=np.int64), 0
    for first in [*items, *reversed(odd)]:
        while first >= 0:
            found[first], first, item = item, following[first], item + 1
    return found


@compiled
def _paired(parent: Labels, items: Labels, at: Labels, following: Labels, last: Labels) -> tuple[Labels, int]:
    """One round: items, each at a node, find partners from below upwards; the pairs, and the one left over or -1."""
    waiting = np.full(len(parent), -1, dtype=np.int64)
    arrived = np.full(len(parent), -1, dtype=np.int64)
    chained = np.full(len(at), -1, dtype=np.int64)
    for item in items:
        chained[item] = arrived[at[item]]
        arrived[at[item]] = item
    pairs = np.empty(len(items) // 2, dtype=np.int64)
    count = 0
    for node in range(len(parent) - 1, -1, -1):
        item = arrived[node]
        while item >= 0:
            following_item = chained[item]
            if waiting[node] < 0:
                waiting[node] = item
            else:
                first = waiting[node]
                following[last[first]] = item
                last[first] = last[item]
                at[first] = node
                pairs[count] = first
                count += 1
                waiting[node] = -1
            item = following_item
        if node > 0 and waiting[node] >= 0:
            chained[waiting[node]] = arrived[parent[node]]
            arrived[parent[node]] = waiting[node]
    return pairs, waiting[0]


def order_by_place(centres: Points) -> Labels:
    """(g,): the number of each group, such that parties are close: nearest pairs first, then nearest pairs of pairs."""
    members = [[group] for group in range(len(centres))]
    places, odd = np.asarray(centres, dtype=float), []
    while len(members) > 1:
        pairs, left = _nearest_pairs(places)
        odd += [members[left]] if left is not None else []
        members = [members[a] + members[b] for a, b in pairs]
        places = (places[pairs[:, 0]] + places[pairs[:, 1]]) / 2
    order = [group for party_ in [*members, *reversed(odd)] for group in party_]
    numbers = np.empty(len(centres), dtype=np.int64)
    numbers[order] = np.arange(len(centres))
    return numbers


def _nearest_pairs(places: Points) -> tuple[Labels, int | None]:
    """(n // 2, 2): partners, the closest two first; who finds none near looks again. And the odd one, if any."""
    free, pairs = np.arange(len(places)), []
    while len(free) > 1:
        near = min(NEAREST, len(free))
        away, other = cKDTree(places[free]).query(places[free], k=near)
        first, second = np.repeat(np.arange(len(free)), near), other.ravel()
        edges = np.flatnonzero(first < second)
        edges = edges[np.argsort(away.ravel()[edges], kind="stable")]
        taken = np.zeros(len(free), dtype=np.bool_)
        kept = _greedy(first[edges], second[edges], taken) if len(edges) else np.zeros(0, dtype=bool)
        if not kept.any():  # All on one spot, where a tree may name any neighbours.
            taken[: len(free) // 2 * 2] = True
            pairs.append(free[: len(free) // 2 * 2].reshape(-1, 2))
        else:
            pairs.append(np.column_stack([free[first[edges[kept]]], free[second[edges[kept]]]]))
        free = free[~taken]
    return np.concatenate(pairs), int(free[0]) if len(free) else None


@compiled
def _greedy(first: Labels, second: Labels, taken: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which edges join two that are both free still, in the order given."""
    kept = np.zeros(len(first), dtype=np.bool_)
    for edge in range(len(first)):
        if not taken[first[edge]] and not taken[second[edge]]:
            taken[first[edge]] = taken[second[edge]] = kept[edge] = True
    return kept
