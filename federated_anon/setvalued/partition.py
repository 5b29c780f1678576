"""Horizontal partitioning: people who share their most frequent items form clusters of at most ``delta``.

HORPART of Terrovitis et al., "Privacy preservation by disassociation", VLDB 2012: split on the most frequent item not
used yet, recursively. An inverted index and a lazy heap per node make a split cost what leaves, not what stays. Read
literally it leaves clusters of one person, whose whole set is then published as terms; ``joined`` cures that.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from federated_anon.setvalued.transactions import Transactions

Rows = NDArray[np.int64]
"""(size,): the records of one cluster, by their place in the data."""

Record = tuple[int, ...]


def horizontal(transactions: Transactions, delta: int, min_size: int, rows: Iterable[int] | None = None) -> list[Rows]:
    """Clusters of ``min_size`` to ``delta`` records (to ``2 min_size - 1``, where that is more).

    Fewer than ``min_size`` records form one cluster. ``min_size`` 0 or 1 is the method as printed: nothing is joined.
    ``rows`` restricts it to some of the records.
    """
    chosen = list(range(len(transactions))) if rows is None else [int(row) for row in rows]
    pieces = split_by_frequency(list(transactions), chosen, delta)
    return as_rows(joined(pieces, min_size, delta))


def as_rows(clusters: Iterable[Sequence[int]]) -> list[Rows]:
    """Clusters as arrays."""
    return [np.array(cluster, dtype=np.int64) for cluster in clusters]


def split_by_frequency(records: Sequence[Record], rows: list[int], delta: int) -> list[list[int]]:
    """HORPART: what is left without an unused item is cut into pieces of ``delta``."""
    pieces: list[list[int]] = []
    waiting: list[tuple[list[int], frozenset[int]]] = [(rows, frozenset())]
    while waiting:
        here, used = waiting.pop()
        if len(here) > delta:
            node = Node.of(records, here, used)
            while len(node.staying) > delta and (leaving := node.pop(records)):
                if len(leaving.rows) <= delta:
                    pieces.append(leaving.rows)
                else:
                    waiting.append((leaving.rows, node.used | {leaving.item}))
            here = [row for row in here if row in node.staying]
        pieces += [here[start : start + delta] for start in range(0, len(here), delta)]
    return pieces


@dataclass(frozen=True, slots=True)
class Leaving:
    """Records that leave a node together, and the item that they share."""

    item: int
    rows: list[int]


@dataclass(slots=True)
class Node:
    """A set of records being split: who stays, who holds each item, and how many of those still stay."""

    staying: set[int]
    holders: dict[int, list[int]]
    count: dict[int, int]
    used: frozenset[int]
    heap: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, records: Sequence[Record], rows: list[int], used: frozenset[int]) -> Node:
        """The inverted index over items not used yet; an item that all records share splits nothing, so it is used."""
        holders: dict[int, list[int]] = defaultdict(list)
        for row in rows:
            for item in records[row]:
                holders[item].append(row)
        shared = {item for item, held in holders.items() if len(held) == len(rows)}
        spent = used | shared
        holders = {item: held for item, held in holders.items() if item not in spent}
        count = {item: len(held) for item, held in holders.items()}
        heap = [(-number, item) for item, number in count.items()]
        heapq.heapify(heap)
        return cls(set(rows), holders, count, spent, heap)

    def pop(self, records: Sequence[Record]) -> Leaving | None:
        """Take out the records with the most frequent item; ties go to the lower code. None if no item is left."""
        while self.heap:
            told, item = heapq.heappop(self.heap)
            number = self.count[item]
            if number != -told:  # The entry is stale: records with this item have left since it was made.
                if number:
                    heapq.heappush(self.heap, (-number, item))
                continue
            rows = [row for row in self.holders[item] if row in self.staying]
            self.staying.difference_update(rows)
            for row in rows:
                for other in records[row]:
                    if other in self.count:
                        self.count[other] -= 1
            return Leaving(item, rows)
        return None


def joined(pieces: Iterable[Sequence[int]], min_size: int, delta: int) -> list[list[int]]:
    """Pieces below ``min_size`` joined with their neighbour in the order of splitting, which is alike.

    A union beyond ``max(delta, 2 min_size - 1)`` is cut in halves, so nothing below ``min_size`` is left unless all
    records together are fewer.
    """
    most = max(delta, 2 * min_size - 1)
    whole: list[list[int]] = []
    for piece in pieces:
        if whole and (len(piece) < min_size or len(whole[-1]) < min_size):
            union = [*whole.pop(), *piece]
            half = len(union) // 2
            whole += [union] if len(union) <= most else [union[:half], union[half:]]
        else:
            whole.append(list(piece))
    return whole


def even_parts(rows: Sequence[int], delta: int) -> list[list[int]]:
    """The fewest parts of at most ``delta`` whose sizes differ by one at most, so that no small tail is left."""
    parts = -(-len(rows) // delta)
    return [list(rows[len(rows) * i // parts : len(rows) * (i + 1) // parts]) for i in range(parts)]
