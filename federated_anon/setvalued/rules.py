"""Utility rules: sets of items that analysis needs together, who holds them, and how many should stay together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from math import ceil

import numpy as np

from federated_anon.errors import SettingsRefused
from federated_anon.setvalued.transactions import Transactions

Rule = tuple[int, ...]
"""Codes of the items of one utility rule."""

ROUNDING = 1e-9
"""A share of a support that misses a whole number by less than this is that number."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """Who holds which rule. ``holders[i]``: rows that contain rule ``i``; ``rules[row]``: the rules it contains.

    ``targets[i]`` people should share the clusters of rule ``i``: ``beta`` of its support, and k if there are so many.
    """

    holders: tuple[list[int], ...]
    rules: dict[int, tuple[int, ...]]
    targets: tuple[int, ...]

    @classmethod
    def of(cls, transactions: Transactions, rules: Sequence[Rule], beta: float, k: int) -> Holdings:
        """Holdings of the rules among the records."""
        rows = np.repeat(np.arange(len(transactions)), transactions.lengths)
        of_item = {item: rows[transactions.items == item] for item in {item for rule in rules for item in rule}}
        holders = tuple(reduce(np.intersect1d, [of_item[item] for item in rule]).tolist() for rule in rules)
        held: dict[int, tuple[int, ...]] = {}
        for index, own in enumerate(holders):
            for row in own:
                held[row] = (*held.get(row, ()), index)
        return cls(holders, held, tuple(target(len(own), beta, k) for own in holders))

    def reached(self, clusters: Sequence[Collection[int]]) -> int:
        """Records in the clusters of their rules, counted up to each rule's target: what ants and flow maximise."""
        return sum(min(len(own), wanted) for own, wanted in zip(clusters, self.targets, strict=True))


def target(support: int, beta: float, k: int) -> int:
    r"""Records that should share a rule's clusters: :math:`\max(\lceil \beta s \rceil, k)`, at most its support."""
    return min(max(ceil(beta * support - ROUNDING), k if support >= k else 0), support)


def coded(rules: Sequence[Collection[object]], names: Sequence[str]) -> tuple[Rule, ...]:
    """Rules as codes; empty rules and unknown items are refused together, in one ``SettingsRefused``.

    An item named twice in a rule counts once, a rule told twice counts once.
    """
    code = {name: index for index, name in enumerate(names)}
    told = [[str(item) for item in rule] for rule in rules]
    faults = [f"rule {number} is empty" for number, rule in enumerate(told, 1) if not rule]
    for number, rule in enumerate(told, 1):
        if strange := sorted(set(rule) - code.keys()):
            faults.append(f"rule {number} names items that no record has: {', '.join(strange)}")
    if faults:
        raise SettingsRefused("utility rules", faults)
    return tuple(dict.fromkeys(tuple(sorted({code[item] for item in rule})) for rule in told))
