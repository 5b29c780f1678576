"""A proposer that splits by the super-clusters of a local map instead of by its records."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Labels, Points, Weights
from federated_anon.microaggregation.compiled import compiled
from federated_anon.sealed.agreement import SealedMap, grid_of
from federated_anon.sealed.cuts import Sides, Sorted, gain, mean_of
from federated_anon.sealed.layout import Empty, gathered
from federated_anon.sealed.members import Members
from federated_anon.sealed.proposer import CHUNK, Proposals, Proposer
from federated_anon.sealed.rules import SplitRules
from federated_anon.som import BatchSOM
from federated_anon.som.parallel import slices

LEAST = 8
"""Times k: groups below are split by their records, as few units have records there, and few of them."""


class MapProposer(Proposer):
    """Splits by one holder's map: a group falls into two super-clusters of units.

    The map is trained on the holder's rows in canonical order, so it is a function of the values alone. In a group each
    record stands for the prototype of its unit, and the two super-clusters are the best split of those; a unit
    is parted, in canonical order, only where both sides would not keep k records otherwise. A group inside one unit,
    or too small for its units to say much, is split by its records. Gains are those of the records in either case.
    """

    def __init__(
        self, points: Points, private: NDArray[np.generic], rules: SplitRules, empty: Empty | None = None
    ) -> None:
        super().__init__(points, private, rules, empty)
        rows = self._sorted.points
        grid = grid_of(len(rows))
        found = BatchSOM(grid.rows, grid.cols, dtype="float64").fit(rows, np.random.default_rng(0))
        self.map = SealedMap(grid, found.codebook_, found.assign(rows))
        coded = np.asarray((empty or np.empty)((len(rows), rows.shape[1])))
        self._coded = Sorted(coded, self._sorted.order, self._sorted.rank)
        self._used: SealedMap | None = None
        self.advance()

    @property
    def points(self) -> Points:
        """The records in canonical order, however they are laid out by now."""
        if self._sorted.order is self._coded.order:
            return self._sorted.points
        return gathered(self._sorted.points, self._sorted.rank[self._coded.order], self._empty or np.empty)

    def in_order(self, groups: Labels) -> Labels:
        """What is said of each record, in canonical order."""
        return np.asarray(groups[self._coded.order])

    def advance(self) -> None:
        """The next level: split by ``map``, which may have changed; within a level the same question has one answer."""
        if self._used is self.map:
            return
        self._used = self.map
        self._units = self.map.units[self._coded.rank]
        for part in slices(len(self._units), CHUNK):
            self._coded.points[part] = self.map.codebook[self.map.units[part]]

    def _propose(self, members: Members, least: int) -> Proposals:
        if len(members.groups) == 0:
            return super()._propose(members, least)
        units = self._units[members.records]
        is_spread = members.sizes >= LEAST * self._rules.k
        is_spread &= np.minimum.reduceat(units, members.starts[:-1]) < np.maximum.reduceat(units, members.starts[:-1])
        flags = np.zeros(len(self._units), dtype=np.uint8)
        values = np.zeros(len(members.groups))
        for table, chosen in ((self._coded, is_spread), (self._sorted, ~is_spread)):
            part = members.only(chosen)
            self._split(table, part, flags)
            values[chosen] = gains_of(self._sorted, part.records, part.starts, flags)
        return Proposals(members, values, flags, least)


@compiled
def gains_of(table: Sorted, records: Labels, starts: Labels, flags: Sides) -> Weights:
    """The gain of each group's split by ``flags``, summed in canonical order."""
    gains = np.empty(len(starts) - 1)
    for group in range(len(gains)):
        positions = np.sort(table.rank[records[starts[group] : starts[group + 1]]])
        sides = np.empty(len(positions), np.uint8)
        for place in range(len(positions)):
            sides[place] = flags[table.order[positions[place]]]
        gains[group] = gain(table.points, positions, mean_of(table.points, positions), sides)
    return gains
