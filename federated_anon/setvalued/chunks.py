"""Vertical partitioning: a cluster's items dealt to record chunks that are k^m-anonymous, and a term chunk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

import numpy as np

from federated_anon.setvalued.partition import Record, Rows
from federated_anon.setvalued.transactions import Transactions

DEEP = 5
"""From this ``m`` on, chunks keep combinations of any size: to count those of many sizes would take too long."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Sub-records over ``items``: what each person holds of them, empty ones left out, in sorted order.

    The order is the content's own, so that places in two chunks of a cluster say nothing about who is who.
    """

    items: tuple[int, ...]
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Cluster:
    """``size`` people: their record chunks, and the items too rare among them for any chunk, without counts."""

    size: int
    chunks: tuple[Chunk, ...]
    terms: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Disassociated:
    """Published form: within every chunk, a combination of at most ``m`` items occurs never or at least ``k`` times."""

    k: int
    m: int
    clusters: tuple[Cluster, ...]
    names: tuple[str, ...]

    @property
    def people(self) -> int:
        """Records that went in."""
        return sum(cluster.size for cluster in self.clusters)

    @property
    def kept(self) -> int:
        """Item occurrences in record chunks."""
        return sum(len(record) for one in self.clusters for chunk in one.chunks for record in chunk.records)


def disassociated(
    transactions: Transactions, clusters: Iterable[Rows], k: int, m: int, rules: Sequence[Record] = ()
) -> Disassociated:
    """The published form of given clusters, whatever their sizes: see ``disassociate`` for the guarded way."""
    whole = tuple(vertical(transactions, rows, k, m, rules) for rows in clusters)
    return Disassociated(k, m, whole, transactions.names)


def vertical(
    transactions: Transactions, rows: Rows | Sequence[int], k: int, m: int, rules: Sequence[Record] = ()
) -> Cluster:
    """VERPART (Terrovitis et al. 2012): items of support below ``k`` become terms; the others, by falling support,
    each join the first record chunk that stays k^m-anonymous. Items of ``rules`` that k of the records contain go
    first, rule by rule, so that they meet in one chunk.
    """
    part = transactions.select(np.asarray(rows, dtype=np.int64))
    records = list(part)
    masks: dict[int, int] = defaultdict(int)
    for place, record in enumerate(records):
        for item in record:
            masks[item] |= 1 << place
    terms = tuple(sorted(item for item, mask in masks.items() if mask.bit_count() < k))
    kept = (item for item, mask in masks.items() if mask.bit_count() >= k)
    frequent = sorted(kept, key=lambda item: (-masks[item].bit_count(), item))
    domains = dealt([*dict.fromkeys([*leading(rules, masks, k), *frequent])], masks, k, m)
    return Cluster(len(records), tuple(chunk_of(records, domain) for domain in domains), terms)


def leading(rules: Sequence[Record], masks: dict[int, int], k: int) -> list[int]:
    """Items of the rules that at least ``k`` records contain, the most frequent rule first."""
    held = [
        (reduce(and_, (masks[item] for item in rule)), rule) for rule in rules if all(item in masks for item in rule)
    ]
    strong = [(-records.bit_count(), rule) for records, rule in held if records.bit_count() >= k]
    return [item for _, rule in sorted(strong) for item in rule]


def chunk_of(records: Iterable[Record], domain: Iterable[int]) -> Chunk:
    """The chunk over the items of ``domain``."""
    inside = frozenset(domain)
    parts = (tuple(item for item in record if item in inside) for record in records)
    return Chunk(tuple(sorted(inside)), tuple(sorted(part for part in parts if part)))


def dealt(frequent: Sequence[int], masks: dict[int, int], k: int, m: int) -> list[list[int]]:
    """First-fit of items into k^m-anonymous domains; ``masks`` has one bit per record that holds an item.

    Items that the same records hold always share a domain, so each distinct mask is tried once.
    """
    fill = filled_deeply if m >= DEEP else filled
    twins: dict[int, list[int]] = defaultdict(list)
    for item in frequent:
        twins[masks[item]].append(item)
    domains, left = [], list(twins)
    while left:
        taken, left = fill(left, k, m)
        domains.append([item for mask in taken for item in twins[mask]])
    return domains


def filled(masks: Sequence[int], k: int, m: int) -> tuple[list[int], list[int]]:
    """One domain filled greedily: the masks it takes, and those that would break k^m.

    ``held`` maps the records of a combination in the domain to the smallest number of items, below ``m``, with just
    these records: all that a test needs. An item fits if its records meet each of those never or at least k times.
    """
    taken: list[int] = []
    left: list[int] = []
    held: dict[int, int] = {}
    for mask in masks:
        longer: dict[int, int] = {}
        for records, count in held.items():
            both = records & mask
            if both:
                if both.bit_count() < k:
                    left.append(mask)
                    break
                if count + 1 < m and longer.get(both, m) > count + 1:
                    longer[both] = count + 1
        else:
            taken.append(mask)
            if m > 1:
                longer[mask] = 1
            for records, count in longer.items():
                if held.get(records, m) > count:
                    held[records] = count
    return taken, left


def filled_deeply(masks: Sequence[int], k: int, m: int) -> tuple[list[int], list[int]]:
    """As ``filled``, for combinations of any size: each record's items in the domain are shared by at least k records.

    ``alike`` maps each record (its bit) to the records that hold all it holds in the domain.
    """
    taken: list[int] = []
    left: list[int] = []
    alike: dict[int, int] = {}
    for mask in masks:
        holders = [1 << place for place in range(mask.bit_length()) if mask >> place & 1]
        shared = {bit: alike.get(bit, mask) & mask for bit in holders}
        if min(records.bit_count() for records in shared.values()) < k:
            left.append(mask)
        else:
            taken.append(mask)
            alike |= shared
    return taken, left
