"""Frequent sets of items, and whether their ranks survive.

Pairs are counted here. Larger sets need the ``sets`` extra (mlxtend's FP-growth).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import scipy.stats

from federated_anon.errors import SettingsRefused
from federated_anon.setvalued.measures.supports import Itemset, supports
from federated_anon.setvalued.transactions import Transactions

MOST_ITEMS = 4000
"""Items, the most frequent ones, among which pairs are counted: a table of all pairs of more would not fit."""


@dataclass(frozen=True, slots=True)
class RankPreservation:
    """The sets most frequent in the original: how many stay among the most frequent, and how their ranks agree.

    ``correlation`` is Spearman's of the supports before and after; 1 if there are fewer than two different supports.
    ``ratio`` is the mean of the smaller support divided by the larger.
    """

    sets: int
    staying: int
    correlation: float
    ratio: float


def top_pairs(transactions: Transactions, count: int) -> dict[Itemset, int]:
    """The ``count`` most frequent pairs with their supports, most frequent first, ties by name."""
    order = np.argsort(-transactions.supports, kind="stable")[:MOST_ITEMS]
    column = np.full(len(transactions.names), -1, dtype=np.int64)
    column[order] = np.arange(len(order))
    rows = np.repeat(np.arange(len(transactions)), transactions.lengths)
    places = column[transactions.items]
    inside = places >= 0
    shape = (len(transactions), len(order))
    held = scipy.sparse.csr_array((np.ones(inside.sum(), dtype=np.int64), (rows[inside], places[inside])), shape=shape)
    both = scipy.sparse.triu(held.T @ held, k=1).tocoo()
    one, other = (order[place] for place in both.coords)
    low, high = np.minimum(one, other), np.maximum(one, other)
    chosen = np.lexsort((high, low, -both.data))[:count].tolist()
    names = transactions.names
    return {(names[low[place]], names[high[place]]): int(both.data[place]) for place in chosen}


def frequent_itemsets(transactions: Transactions, minimum: int, sizes: tuple[int, int] = (2, 3)) -> dict[Itemset, int]:
    """All sets of ``sizes[0]`` to ``sizes[1]`` items in at least ``minimum`` records, most frequent first."""
    names, codes = transactions.names, np.flatnonzero(transactions.supports >= max(minimum, 1))
    if not len(codes) or not len(transactions):
        return {}
    held = mining_frame(transactions, codes)
    share = (max(minimum, 1) - 0.5) / len(transactions)
    found = mining_library().fpgrowth(held, min_support=share, max_len=sizes[1])
    counted = zip(found["support"], found["itemsets"], strict=True)
    sets = [(-round(share * len(transactions)), tuple(sorted(items))) for share, items in counted]
    ordered = sorted(one for one in sets if len(one[1]) >= sizes[0])
    return {tuple(names[codes[item]] for item in items): -support for support, items in ordered}


def mining_frame(transactions: Transactions, codes: np.ndarray) -> Any:
    """Which record holds which of the items, as the library wants it: one boolean column per item."""
    import pandas as pd

    column = np.full(len(transactions.names), -1, dtype=np.int64)
    column[codes] = np.arange(len(codes))
    rows, places = np.repeat(np.arange(len(transactions)), transactions.lengths), column[transactions.items]
    held = np.zeros((len(transactions), len(codes)), dtype=bool)
    held[rows[places >= 0], places[places >= 0]] = True
    return pd.DataFrame(held)


def rank_preservation(
    original: Transactions, published: Transactions, top: dict[Itemset, int], top_after: dict[Itemset, int]
) -> RankPreservation:
    """How the ``top`` sets of the original fare in the published data, whose own top sets are ``top_after``."""
    after = supports(published, top)
    before, then = np.array(list(top.values())), np.array([after[one] for one in top])
    staying = len(top.keys() & top_after.keys())
    return RankPreservation(len(top), staying, _spearman(before, then), _ratio(before, then))


def _spearman(before: np.ndarray, after: np.ndarray) -> float:
    if len(set(before.tolist())) < 2 or len(set(after.tolist())) < 2:
        return 1.0 if len(set(before.tolist())) < 2 else 0.0
    return float(scipy.stats.spearmanr(before, after).statistic)


def _ratio(before: np.ndarray, after: np.ndarray) -> float:
    high = np.maximum(before, after)
    ratios: Sequence[float] = (np.minimum(before, after)[high > 0] / high[high > 0]).tolist()
    return float(np.mean(ratios)) if len(ratios) else 1.0


def mining_library() -> Any:
    """mlxtend's frequent patterns, if it is installed."""
    try:
        from mlxtend import frequent_patterns
    except ImportError:
        raise SettingsRefused(
            "frequent sets", ["sets of more than two items need the 'sets' extra: pip install 'federated-anon[sets]'"]
        ) from None
    return frequent_patterns
