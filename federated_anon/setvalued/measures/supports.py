"""In how many records a set of items stands: in a data set, visibly in its disassociated form, and as expected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod

import numpy as np

from federated_anon.setvalued.chunks import Cluster, Disassociated
from federated_anon.setvalued.transactions import Transactions

Itemset = tuple[str, ...]
"""Items by name, so that it means the same in two data sets."""

_Parts = Mapping[int, frozenset[int]]
_Measure = Callable[[Cluster, _Parts], float]


def supports(transactions: Transactions, itemsets: Iterable[Itemset]) -> dict[Itemset, int]:
    """Records that hold all items of each set; 0 for a set with an item that no record has."""
    postings = Postings(transactions)
    return {one: len(postings.records(one)) for one in itemsets}


class Postings:
    """Which records hold an item, for every item."""

    def __init__(self, transactions: Transactions) -> None:
        rows = np.repeat(np.arange(len(transactions)), transactions.lengths)
        order = np.argsort(transactions.items, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(transactions.supports)])
        self._rows, self._bounds = rows[order], bounds
        self._code = {name: place for place, name in enumerate(transactions.names)}

    def records(self, itemset: Itemset) -> np.ndarray:
        """Rising places of the records that hold all items; an empty set of items is held by none."""
        codes = [self._code.get(name, -1) for name in itemset]
        if not codes or min(codes) < 0:
            return np.zeros(0, dtype=np.int64)
        lists = sorted((self._rows[self._bounds[c] : self._bounds[c + 1]] for c in codes), key=len)
        found = lists[0]
        for other in lists[1:]:
            places = np.minimum(np.searchsorted(other, found), max(len(other) - 1, 0))
            found = found[other[places] == found] if len(other) else found[:0]
        return found


def visible_supports(form: Disassociated, itemsets: Iterable[Itemset]) -> dict[Itemset, int]:
    """Sub-records of one chunk that hold all items of a set: what a reader can count without any guess."""
    found = _over_clusters(form, list(itemsets), _visible)
    return {one: round(value) for one, value in found.items()}


def expected_supports(form: Disassociated, itemsets: Iterable[Itemset]) -> dict[Itemset, float]:
    r"""Mean support over all random re-associations, exactly.

    The sub-records of each chunk fall on the :math:`|C|` people of a cluster uniformly and independently of the other
    chunks, so with :math:`c_j` the sub-records of chunk :math:`j` that hold the items of the set that belong to it

    .. math:: E = \sum_C |C| \prod_j \frac{c_j}{|C|} .

    An item in no chunk of the cluster (a term, or absent) makes its product 0: terms are not re-associated.
    """
    return _over_clusters(form, list(itemsets), _expected)


def _over_clusters(form: Disassociated, itemsets: Sequence[Itemset], measure: _Measure) -> dict[Itemset, float]:
    code = {name: place for place, name in enumerate(form.names)}
    coded = {one: tuple(code[name] for name in one) for one in itemsets if one and all(name in code for name in one)}
    by_item: dict[int, list[Itemset]] = {}
    for one, codes in coded.items():
        by_item.setdefault(codes[0], []).append(one)
    total: dict[Itemset, float] = dict.fromkeys(itemsets, 0.0)
    for cluster in form.clusters:
        home = {item: place for place, chunk in enumerate(cluster.chunks) for item in chunk.items}
        for item in home.keys() & by_item.keys():
            for one in by_item[item]:
                if all(part in home for part in coded[one]):
                    total[one] += measure(cluster, _parts(coded[one], home))
    return total


def _parts(codes: tuple[int, ...], home: Mapping[int, int]) -> dict[int, frozenset[int]]:
    """The items of a set by the chunk they belong to."""
    places = {home[item] for item in codes}
    return {place: frozenset(item for item in codes if home[item] == place) for place in places}


def _holders(cluster: Cluster, place: int, items: frozenset[int]) -> int:
    return sum(items.issubset(record) for record in cluster.chunks[place].records)


def _visible(cluster: Cluster, parts: _Parts) -> float:
    if len(parts) > 1:
        return 0.0
    return float(sum(_holders(cluster, place, items) for place, items in parts.items()))


def _expected(cluster: Cluster, parts: _Parts) -> float:
    return cluster.size * prod(_holders(cluster, place, items) / cluster.size for place, items in parts.items())
