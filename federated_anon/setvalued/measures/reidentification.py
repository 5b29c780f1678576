"""Somebody knows m items of a person and looks for that person's record in a table of sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from federated_anon.privacy.linkage import Rate, wilson
from federated_anon.setvalued.measures.supports import Postings
from federated_anon.setvalued.transactions import Transactions

ATTACKED = 5000
"""People that are attacked at most; the interval says what this sample means."""


@dataclass(frozen=True, slots=True)
class Reidentification:
    """The attack on one table; ``known`` items of each of ``attacked`` people were known.

    ``found``: some record fits. ``few``: fewer than k fit, but one does. ``disclosed``: a record picked at random among
    those that fit is, item by item, the person's own (whoever it came from): its other items are then known.
    """

    known: int
    attacked: int
    found: Rate
    few: Rate
    disclosed: Rate


def reidentification(
    original: Transactions, published: Transactions, known: int, k: int, rng: Generator
) -> Reidentification:
    """Attack ``published`` with ``known`` random items of people of ``original`` who have more than that.

    On the original itself it says what is at stake. A re-associated table holds combinations by chance, so ``few`` need
    not be 0 there; ``disclosed`` says what that is worth.
    """
    targets = np.flatnonzero(original.lengths > known)
    if len(targets) > ATTACKED:
        targets = np.sort(rng.choice(targets, ATTACKED, replace=False))
    fitting, few, disclosed = 0, 0, 0.0
    postings, records = Postings(published), _named(published)
    for target in targets.tolist():
        whole = tuple(original.names[item] for item in original.record(target))
        knows = tuple(whole[place] for place in np.sort(rng.choice(len(whole), known, replace=False)))
        candidates = postings.records(knows)
        fitting += len(candidates) > 0
        few += 0 < len(candidates) < k
        same = sum(records[place] == frozenset(whole) for place in candidates.tolist())
        disclosed += same / len(candidates) if len(candidates) else 0.0
    count = len(targets)
    return Reidentification(known, count, _rate(fitting, count), _rate(few, count), _rate(disclosed, count))


def _named(transactions: Transactions) -> list[frozenset[str]]:
    names = transactions.names
    return [frozenset(names[item] for item in record) for record in transactions]


def _rate(successes: float, trials: int) -> Rate:
    return wilson(successes, trials) if trials else Rate(0.0, 0.0, 0.0)
