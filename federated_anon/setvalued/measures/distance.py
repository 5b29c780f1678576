"""Tree edit distance between two data sets. PRIVATE: it is measured against the original and must not be published.

A data set is an ordered tree: a root, and below it one chain per record, the records in lexicographic order (Awad et
al. 2020, section 3.2). Whoever knows the distance and all records but one can try out the last one, so the number
stays with the owner of the data, as the original does.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from federated_anon.microaggregation.compiled import compiled
from federated_anon.setvalued.transactions import Transactions, in_order

Numbers = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class _Forest:
    """Chains in lexicographic order: ``words`` are the distinct ones in a row, ``chains`` says which one each is."""

    starts: Numbers
    words: Numbers
    chains: Numbers


def private_tree_edit_distance(one: Transactions, other: Transactions) -> int:
    r"""Fewest insertions, deletions and renamings of nodes that turn one tree into the other. Private: see above.

    Two nodes of a chain are ancestor and descendant, nodes of two chains are not, so every mapping pairs chains one to
    one and in order. The distance is the alignment of the two sequences of records,

    .. math:: d_{ij} = \min\{d_{i-1,j-1} + L(a_i, b_j),\; d_{i-1,j} + |a_i|,\; d_{i,j-1} + |b_j|\},

    with :math:`L` the Levenshtein distance of two sorted records. One row of memory; time is the product of the two
    numbers of records. Empty records are no chains. Items are compared by name.
    """
    names = in_order({*one.names, *other.names})
    place = {name: number for number, name in enumerate(names)}
    left, right = _forest(one, place), _forest(other, place)
    return int(_aligned(left.starts, left.words, left.chains, right.starts, right.words, right.chains, len(names)))


def _forest(transactions: Transactions, place: dict[str, int]) -> _Forest:
    rank = np.array([place[name] for name in transactions.names], dtype=np.int64)
    codes, bounds = rank[transactions.items].tolist(), transactions.offsets.tolist()
    chains = sorted(tuple(sorted(codes[a:b])) for a, b in pairwise(bounds) if b > a)
    distinct = sorted(set(chains))
    number = {word: i for i, word in enumerate(distinct)}
    starts = np.zeros(len(distinct) + 1, dtype=np.int32)
    np.cumsum([len(word) for word in distinct], out=starts[1:])
    words = np.array([item for word in distinct for item in word], dtype=np.int32)
    return _Forest(starts, words, np.array([number[chain] for chain in chains], dtype=np.int32))


@compiled
def _aligned(
    starts: Numbers, words: Numbers, chains: Numbers, others: Numbers, letters: Numbers, partners: Numbers, items: int
) -> int:
    """Alignment of two sequences of words; the costs of a word are kept while its neighbours are the same."""
    count, distinct = len(partners), len(others) - 1
    lengths = np.empty(count, dtype=np.int32)
    row = np.zeros(count + 1, dtype=np.int32)
    for j in range(count):
        lengths[j] = others[partners[j] + 1] - others[partners[j]]
        row[j + 1] = row[j] + lengths[j]
    costs, spread = np.empty(distinct, dtype=np.int32), np.empty(count, dtype=np.int32)
    buffer = np.empty(_longest(others) + 1, dtype=np.int32)
    places = np.full(items, -1, dtype=np.int32)
    last = -1
    for chain in chains:
        own = words[starts[chain] : starts[chain + 1]]
        if chain != last:
            _compare(own, places, others, letters, costs, buffer)
            for j in range(count):
                spread[j] = costs[partners[j]]
            last = chain
        _advance(row, spread, lengths, len(own))
    return row[count]


@compiled
def _advance(row: Numbers, costs: Numbers, lengths: Numbers, length: int) -> None:
    """The next row of the alignment in place of the last one."""
    before, row[0] = row[0], row[0] + length
    left = row[0]
    for j in range(len(costs)):
        above = row[j + 1]
        best = min(before + costs[j], above + length)
        left = min(best, left + lengths[j])
        row[j + 1] = left
        before = above


@compiled
def _compare(own: Numbers, places: Numbers, others: Numbers, letters: Numbers, costs: Numbers, buffer: Numbers) -> None:
    """Distance of one word to all; words with at most one item in common need no table.

    ``places`` is -1 for every item, and is so again at the end.
    """
    for i in range(len(own)):
        places[own[i]] = i
    n = len(own)
    for word in range(len(costs)):
        start, end = others[word], others[word + 1]
        shared, here, there = 0, 0, 0
        for j in range(start, end):
            if places[letters[j]] >= 0:
                shared, here, there = shared + 1, places[letters[j]], j - start
        m = end - start
        if shared == 0:
            costs[word] = max(n, m)
        elif shared == 1:
            costs[word] = max(here, there) + max(n - here, m - there) - 1
        else:
            costs[word] = _levenshtein(own, letters[start:end], buffer)
    for item in own:
        places[item] = -1


@compiled
def _longest(starts: Numbers) -> int:
    longest = 0
    for i in range(len(starts) - 1):
        longest = max(longest, starts[i + 1] - starts[i])
    return longest


@compiled
def _levenshtein(one: Numbers, other: Numbers, row: Numbers) -> int:
    """Edit distance of two rising sequences; what they share at either end is left out of account."""
    a, b, n, m = 0, 0, len(one), len(other)
    while a < n and b < m and one[a] == other[b]:
        a, b = a + 1, b + 1
    while n > a and m > b and one[n - 1] == other[m - 1]:
        n, m = n - 1, m - 1
    if n == a or m == b:
        return n - a + m - b
    for j in range(m - b + 1):
        row[j] = j
    for i in range(a, n):
        before, row[0] = row[0], i - a + 1
        for j in range(b, m):
            above = row[j - b + 1]
            best = before + (one[i] != other[j])
            row[j - b + 1] = min(best, row[j - b] + 1, above + 1)
            before = above
    return row[m - b]
