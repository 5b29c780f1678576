"""A partition that only ever becomes finer, together with the splits that made it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Counts, Labels
from federated_anon.errors import MessageRefused
from federated_anon.sealed.members import Members, members_of
from federated_anon.sealed.rules import SplitRules

CHAIN_SHARE = 10
"""A winner goes on with the rest of a group when it split off less than one part in so many."""

LATE_SHARE = 8
"""Once open groups hold less than one record in so many, winners go on with the rest of groups of any size."""


@dataclass(frozen=True, slots=True)
class NestedPartition:
    """The groups of records as leaves of a tree of splits.

    Group 0 is everyone; split j divides group ``parents[j]`` into the groups 2j + 1 and 2j + 2. So the name of a group
    depends on the splits and their order, and on nothing else.
    """

    labels: Labels  # (n,) the group of each record
    parents: Labels  # (s,)

    @classmethod
    def whole(cls, records: int) -> Self:
        """Everyone in one group."""
        return cls(np.zeros(records, dtype=np.int32), np.zeros(0, dtype=np.int32))

    @property
    def sizes(self) -> Counts:
        """(2s + 1,): records per group; 0 for a group that was split."""
        return np.bincount(self.labels, minlength=2 * len(self.parents) + 1)

    @property
    def compact(self) -> Labels:
        """(n,): the groups numbered 0..g-1 in the order of their names."""
        rank = np.cumsum(self.sizes > 0) - 1
        return np.asarray(rank[self.labels], dtype=np.int64)


def open_groups(partition: NestedPartition, k: int) -> Labels:
    """Names of the groups of at least 2k records, rising."""
    return np.flatnonzero(partition.sizes >= 2 * k)


def winners(gains: Sequence[NDArray[np.floating]]) -> Labels:
    """Per open group the holder of the largest gain; among equals the first of the roster. Not-a-number never wins."""
    table = np.stack([np.asarray(one, dtype=float) for one in gains])
    return np.argmax(np.where(np.isnan(table), -np.inf, table), axis=0)


def apply(partition: NestedPartition, won: Labels, bits: Sequence[bytes], rules: SplitRules) -> NestedPartition:
    """Split every open group as its winner says; ``won`` (open groups,) and ``bits`` go by holder of the roster.

    Raises ``MessageRefused`` unless the bits are as many as the groups ask for and leave k records on both sides.
    """
    opened = open_groups(partition, rules.k)
    if len(won) != len(opened) or not np.isin(won, np.arange(len(bits))).all():
        raise MessageRefused(f"expected a winner for each of {len(opened)} open groups")
    streams = [_Stream(packed) for packed in bits]
    members = members_of(partition.labels, opened)
    grown = _Growth(partition.labels.copy(), [partition.parents])
    least = chain_least(partition, rules)
    while len(members.groups):
        flags = _flags(members, won, streams, len(grown.labels))
        require_both_sides(members, flags, rules.k)
        children = grown.split(members, flags)
        going = continues(members, flags, least)
        won, members = won[going], larger_sides(members, flags, children).only(going)
    for stream in streams:
        stream.require_end()
    return grown.partition()


def chain_least(partition: NestedPartition, rules: SplitRules) -> int:
    """Records that the rest of a group needs for its winner to go on: fewer rounds, where rivals matter least."""
    sizes = partition.sizes
    is_late = sizes[sizes >= 2 * rules.k].sum() * LATE_SHARE < len(partition.labels)
    return 2 * rules.k if is_late else max(rules.chain_from, 2 * rules.k)


def continues(members: Members, flags: NDArray[np.uint8], least: int) -> NDArray[np.bool_]:
    """(g,): whether the winner of each group goes on with the larger side in the same message."""
    sizes, ones = members.sizes, members.ones(flags)
    small = np.minimum(ones, sizes - ones)
    return np.asarray((small * CHAIN_SHARE < sizes) & (sizes - small >= least))


def larger_sides(members: Members, flags: NDArray[np.uint8], first: Labels) -> Members:
    """The larger side of each split group; ``first`` (g,) names the sides of flag 0, the others come next after."""
    kept = (2 * members.ones(flags) > members.sizes).astype(np.uint8)
    return members.side(flags, kept, first + kept)


def require_both_sides(members: Members, flags: NDArray[np.uint8], k: int) -> None:
    """Raise ``MessageRefused`` if a split leaves fewer than ``k`` records on a side."""
    ones = members.ones(flags)
    if len(ones) and (smallest := int(np.minimum(ones, members.sizes - ones).min())) < k:
        raise MessageRefused(f"every side of a split needs {k} records, one has {smallest}")


class _Growth:
    """Labels and splits while a message is applied."""

    def __init__(self, labels: Labels, parents: list[Labels]) -> None:
        self.labels, self.parents = labels, parents

    def split(self, members: Members, flags: NDArray[np.uint8]) -> Labels:
        """Split all groups, in their order; gives the names of their first sides."""
        before = sum(map(len, self.parents))
        first = 2 * (before + np.arange(len(members.groups))) + 1
        self.labels[members.records] = np.repeat(first, members.sizes) + flags[members.records]
        self.parents.append(members.groups)
        return first

    def partition(self) -> NestedPartition:
        """The partition as it is now."""
        return NestedPartition(self.labels, np.concatenate(self.parents).astype(np.int32))


class _Stream:
    """The bits of one holder's message, read from the front."""

    def __init__(self, packed: bytes) -> None:
        self.bits = np.unpackbits(np.frombuffer(packed, dtype=np.uint8))
        self.place = 0

    def read(self, count: int) -> NDArray[np.uint8]:
        """The next ``count`` bits, or ``MessageRefused``."""
        if self.place + count > len(self.bits):
            raise MessageRefused(f"expected {self.place + count} bits, got {len(self.bits)}")
        self.place += count
        return self.bits[self.place - count : self.place]

    def require_end(self) -> None:
        """Raise ``MessageRefused`` if more than zero padding is left."""
        rest = self.bits[self.place :]
        if len(rest) >= 8 or rest.any():
            raise MessageRefused(f"expected {self.place} bits, got {len(self.bits)}")


def _flags(members: Members, won: Labels, streams: Sequence[_Stream], records: int) -> NDArray[np.uint8]:
    """(n,): the bits of each holder put at the records of the groups it won."""
    flags = np.zeros(records, dtype=np.uint8)
    for holder, stream in enumerate(streams):
        own = members.only(won == holder).records
        flags[own] = stream.read(len(own))
    return flags
