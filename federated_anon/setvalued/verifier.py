"""k^m checked from the published form alone, by code that the partitioner does not share.

Where the partitioner keeps bit masks and grows domains item by item, this counts every combination of a finished chunk
over plain sets of sub-records.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from federated_anon.errors import GuaranteeBroken
from federated_anon.setvalued.chunks import Chunk, Cluster, Disassociated
from federated_anon.setvalued.transactions import Transactions

Record = tuple[int, ...]

MOST_KINDS = 1000
"""Different records up to which each is compared with each."""

MOST_TOLD = 5
"""Faults that an error names; the rest are counted."""


def require_disassociated(form: Disassociated) -> None:
    """Raise ``GuaranteeBroken`` unless every cluster has ``k`` people, every chunk is k^m-anonymous and well-formed."""
    _require_none(list(faults(form)), f"{form.k}^{form.m}-anonymity by disassociation")


def require_km(transactions: Transactions, k: int, m: int) -> None:
    """Raise ``GuaranteeBroken`` unless each combination of at most ``m`` items is in no record or in ``k`` of them."""
    found = [
        f"items {', '.join(transactions.names[item] for item in rare)} occur together {count} times"
        for rare, count in rare_combinations(transactions, k, m)
    ]
    _require_none(found, f"{k}^{m}-anonymity of a table")


def require_km_parts(parts: Iterable[Iterable[Record]], k: int, m: int) -> None:
    """Raise ``GuaranteeBroken`` unless each part of a table is k^m-anonymous: then so is the table, as counts add."""
    found = [
        f"part {index}: items {rare} occur together {count} times"
        for index, part in enumerate(parts)
        for rare, count in rare_combinations(part, k, m)
    ]
    _require_none(found, f"{k}^{m}-anonymity of a table")


def faults(form: Disassociated) -> Iterator[str]:
    """All that breaks the promise, in words that quote item codes and counts of the published form only."""
    if form.k < 2 or form.m < 1:
        yield f"k must be at least 2 and m at least 1, got {form.k} and {form.m}"
    for index, cluster in enumerate(form.clusters):
        for fault in (*_shape_faults(cluster, len(form.names)), *_size_faults(cluster, form.k)):
            yield f"cluster {index}: {fault}"
        for place, chunk in enumerate(cluster.chunks):
            for rare, count in rare_combinations(chunk.records, form.k, form.m):
                yield f"cluster {index}, chunk {place}: items {rare} occur together {count} times"


def _size_faults(cluster: Cluster, k: int) -> Iterator[str]:
    if cluster.size < k:
        yield f"{cluster.size} people"
    for place, chunk in enumerate(cluster.chunks):
        if len(chunk.records) > cluster.size:
            yield f"chunk {place} has {len(chunk.records)} sub-records for {cluster.size} people"


def _shape_faults(cluster: Cluster, known: int) -> Iterator[str]:
    """Items named twice or unknown, sub-records that are empty, unordered or outside their chunk."""
    domains = [cluster.terms, *(chunk.items for chunk in cluster.chunks)]
    named = Counter(item for domain in domains for item in domain)
    for item, count in named.items():
        if count > 1:
            yield f"item {item} is in {count} places"
        if not 0 <= item < known:
            yield f"item {item} has no name"
    for place, chunk in enumerate(cluster.chunks):
        yield from (f"chunk {place}: {fault}" for fault in _chunk_faults(chunk))


def _chunk_faults(chunk: Chunk) -> Iterator[str]:
    inside = set(chunk.items)
    for record in sorted(set(chunk.records)):
        if not record or list(record) != sorted(set(record)):
            yield f"sub-record {record} is empty, unordered or repeats an item"
        if not inside.issuperset(record):
            yield f"sub-record {record} has items of other chunks"
    if list(chunk.records) != sorted(chunk.records):
        yield "sub-records stand in an order of their own, which may tell who is who"
    if unused := inside.difference(*chunk.records) if chunk.records else inside:
        yield f"items {sorted(unused)} are in no sub-record"


def rare_combinations(records: Iterable[Record], k: int, m: int) -> Iterator[tuple[Record, int]]:
    """Combinations of at most ``m`` items that occur, but fewer than ``k`` times; one for each set of their records.

    Items that the same records hold are one column: any choice among them occurs equally often. A rare combination
    is not extended, since all that holds it is rare too.
    """
    columns = distinct_columns(list(records))
    if m > 2 and all_shared(columns, k):
        return
    everywhere: tuple[Record, list[Record]] = ((), columns)
    waiting = [everywhere] if m else []
    while waiting:
        chosen, holders = waiting.pop()
        counts = Counter(item for record in holders for item in record)
        for item, count in sorted(counts.items()):
            if count < k:
                yield (*chosen, item), count
            elif len(chosen) + 1 < m:
                beyond = [record[record.index(item) + 1 :] for record in holders if item in record]
                waiting.append(((*chosen, item), [record for record in beyond if record]))


def all_shared(records: list[Record], k: int) -> bool:
    """Whether k records hold all items of each record: then no combination is rare, whatever its size."""
    kinds = Counter(records)
    if len(kinds) > MOST_KINDS:
        return False
    sets = [(frozenset(kind), count) for kind, count in kinds.items()]
    return all(
        count >= k or sum(other_count for other, other_count in sets if other >= kind) >= k for kind, count in sets
    )


def distinct_columns(records: list[Record]) -> list[Record]:
    """The records without items that another item of lower code stands for, being held by the same records."""
    holders: dict[int, list[int]] = defaultdict(list)
    for place, record in enumerate(records):
        for item in record:
            holders[item].append(place)
    first: dict[tuple[int, ...], int] = {}
    for item in sorted(holders):
        first.setdefault(tuple(holders[item]), item)
    standing = set(first.values())
    return [tuple(item for item in record if item in standing) for record in records]


def _require_none(found: list[str], promise: str) -> None:
    if found:
        more = f" and {len(found) - MOST_TOLD} more" if len(found) > MOST_TOLD else ""
        raise GuaranteeBroken(f"{promise} does not hold: " + "; ".join(found[:MOST_TOLD]) + more)
