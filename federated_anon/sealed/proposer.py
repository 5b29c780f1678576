"""A holder's side of sealed splitting: what it would gain in each open group, and the bits of the groups it won."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Labels, Points, Weights
from federated_anon.errors import DataRefused
from federated_anon.sealed.cuts import Search, Sorted, split_groups
from federated_anon.sealed.layout import BUCKET_BYTES, Empty, canonical_order, gathered, inverse
from federated_anon.sealed.members import Members, members_of
from federated_anon.sealed.partition import NestedPartition, chain_least, continues, larger_sides, open_groups
from federated_anon.sealed.rules import SplitRules
from federated_anon.som.parallel import map_chunks
from federated_anon.som.points import require_points

CHUNK = 8192


@dataclass(frozen=True, slots=True)
class Gains:
    """One scalar per open group: what the holder's best split would be worth in its own columns (``cuts.gain``)."""

    groups: Labels  # (g,) rising
    values: NDArray[np.float32]  # (g,)


@dataclass(frozen=True, slots=True)
class Proposals:
    """A holder's own splits of some groups; ``flags`` (n,) is the side of each record. It never leaves the holder."""

    members: Members
    values: Weights
    flags: NDArray[np.uint8]
    chain_least: int


class Proposer:
    """Splits by one holder's (n, d) encoded columns.

    Rows are put in the order of (own values, private number) once, and all sums run in that order: every figure
    is then a function of the values in a group and not of who has which of them. ``private`` is (n,), all different,
    drawn by the holder for itself.

    ``empty`` says where the rows are kept. Where that is not memory, they are laid out anew by group as long as groups
    are large, so that what is read together lies together; the order inside a group stays, and so do all figures.
    """

    def __init__(
        self, points: Points, private: NDArray[np.generic], rules: SplitRules, empty: Empty | None = None
    ) -> None:
        points = require_points(points, "points").astype(float, copy=False)
        order = canonical_order(points, private)
        self._sorted = Sorted(gathered(points, order, empty or np.empty), order, inverse(order))
        self._empty, self._together = empty, points.nbytes
        self._rules = rules
        shrink = rules.shrinkage(len(points), points.shape[1])
        self._search = search_of(rules, shrink)
        self._proposals: Proposals | None = None

    def advance(self) -> None:
        """The next level begins; splits by records know nothing that could have changed."""

    def gains(self, partition: NestedPartition) -> Gains:
        """The gain of the best split of every open group; the splits are remembered.

        ``partition`` is as fine as any before it, or finer.
        """
        opened = open_groups(partition, self._rules.k)
        self._lay_out(partition)
        self._proposals = self._propose(members_of(partition.labels, opened), chain_least(partition, self._rules))
        return Gains(opened, self._proposals.values.astype(np.float32))

    def bits(self, won: Labels) -> bytes:
        """The remembered splits of ``won`` (names, rising), one bit per record, in the order of group and record.

        Where a split leaves most of a large group on one side, the split of that side follows after all of these,
        and so on: see ``continues``.
        """
        if self._proposals is None or not np.isin(won, self._proposals.members.groups).all():
            raise DataRefused("bits can only be asked for groups whose gains were told last")
        flags, least = self._proposals.flags, self._proposals.chain_least
        members = self._proposals.members.only(np.isin(self._proposals.members.groups, won))
        pieces = []
        while len(members.groups):
            pieces.append(flags[members.records])
            going = continues(members, flags, least)
            members = larger_sides(members, flags, members.groups).only(going)
            flags = self._propose(members, least).flags
        return np.packbits(np.concatenate(pieces)).tobytes() if pieces else b""

    def _lay_out(self, partition: NestedPartition) -> None:
        """Rows by group, in the order they had, if rows that lie together were more than a bucket and are fewer now."""
        points, order, _ = self._sorted
        largest = int(partition.sizes.max()) * points.shape[1] * points.itemsize
        if self._empty is None or self._together <= BUCKET_BYTES or largest > 0.75 * self._together:
            return
        by_group = np.argsort(partition.labels[order], kind="stable")
        order = order[by_group]
        self._sorted = Sorted(gathered(points, by_group, self._empty), order, inverse(order))
        self._together = largest

    def _propose(self, members: Members, least: int) -> Proposals:
        flags = np.zeros(len(self._sorted.order), dtype=np.uint8)
        return Proposals(members, self._split(self._sorted, members, flags), flags, least)

    def _split(self, table: Sorted, members: Members, flags: NDArray[np.uint8]) -> Weights:
        """The best splits by the points of ``table``: fills the flags of the members, gives the gains."""

        def work(part: slice) -> Weights:
            starts = members.starts[part.start : part.stop + 1]
            return split_groups(table, members.records, starts, self._search, flags)

        values = map_chunks(work, chunks(members))
        return np.concatenate(values) if values else np.zeros(0)


def search_of(rules: SplitRules, shrink: Weights) -> Search:
    """The rules as compiled code takes them."""
    unseen = float(rules.unseen), float(rules.unseen_near)
    numbers = rules.k, rules.directions, rules.refinements, rules.waste_free, rules.sample
    return Search(*numbers, *unseen, rules.near, shrink)


def chunks(members: Members) -> list[slice]:
    """Consecutive groups of about ``CHUNK`` records together; a larger group is a chunk of its own."""
    turn = members.starts[:-1] // CHUNK
    edges = np.flatnonzero(np.diff(turn, prepend=-1))
    ends = np.append(edges, len(turn))[1:]
    return [slice(int(begin), int(end)) for begin, end in zip(edges, ends, strict=True)]
