"""Who belongs to which of some groups: positions in one array, group after group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Counts, Labels
from federated_anon.microaggregation.compiled import compiled


@dataclass(frozen=True, slots=True)
class Members:
    """``records[starts[i]:starts[i + 1]]`` are the records of the i-th of ``groups``, in rising order."""

    groups: Labels  # (g,) rising
    starts: Labels  # (g + 1,)
    records: Labels  # (m,)

    @property
    def sizes(self) -> Counts:
        """(g,): records per group."""
        return np.diff(self.starts)

    def ones(self, flags: NDArray[np.uint8]) -> Counts:
        """(g,): how many records of each group are flagged; ``flags`` (n,) goes by record."""
        ends = np.concatenate([[0], np.cumsum(flags[self.records], dtype=np.int64)])
        return np.diff(ends[self.starts])

    def only(self, wanted: NDArray[np.bool_]) -> Members:
        """The members of some of the groups; ``wanted`` is (g,)."""
        sizes = self.sizes
        return Members(self.groups[wanted], _starts(sizes[wanted]), self.records[np.repeat(wanted, sizes)])

    def side(self, flags: NDArray[np.uint8], kept: NDArray[np.uint8], named: Labels) -> Members:
        """The records whose flag is what ``kept`` (g,) says for their group, the groups renamed."""
        sizes = self.sizes
        stay = flags[self.records] == np.repeat(kept, sizes)
        count = np.where(kept == 1, self.ones(flags), sizes - self.ones(flags))
        return Members(named, _starts(count), self.records[stay])


def members_of(labels: Labels, groups: Labels) -> Members:
    """The members of ``groups`` (rising) among records with these labels, by one counting sort."""
    place = np.full(int(labels.max()) + 1, -1)
    place[groups] = np.arange(len(groups))
    starts = _starts(np.bincount(labels, minlength=len(place))[groups])
    return Members(groups, starts, _sorted_records(labels, place, starts))


def _starts(sizes: Counts) -> Labels:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@compiled
def _sorted_records(labels: Labels, place: Labels, starts: Labels) -> Labels:
    cursor = starts[:-1].copy()
    records = np.empty(starts[-1], np.int64)
    for record in range(len(labels)):
        group = place[labels[record]]
        if group >= 0:
            records[cursor[group]] = record
            cursor[group] += 1
    return records
