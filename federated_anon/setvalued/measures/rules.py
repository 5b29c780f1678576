"""Association rules before and after; they need the ``sets`` extra (mlxtend)."""

from __future__ import annotations

from dataclasses import dataclass

from federated_anon.setvalued.measures.itemsets import frequent_itemsets
from federated_anon.setvalued.measures.supports import Itemset, supports
from federated_anon.setvalued.transactions import Transactions


@dataclass(frozen=True, slots=True)
class Rule:
    """Whoever has the items ``body`` has ``head`` too: in ``support`` records, in this share of those with the body."""

    body: Itemset
    head: str
    support: int
    confidence: float


@dataclass(frozen=True, slots=True)
class RulesKept:
    """Rules of the original: how many still pass the thresholds, and how far their confidence moved on average."""

    before: int
    after: int
    kept: int
    confidence_error: float


def association_rules(transactions: Transactions, minimum: int, confidence: float, most: int = 3) -> tuple[Rule, ...]:
    """Rules of up to ``most`` items, in at least ``minimum`` records and with at least this confidence."""
    singles = {(name,): int(n) for name, n in zip(transactions.names, transactions.supports, strict=True)}
    known = singles | frequent_itemsets(transactions, minimum, (2, most))
    rules = [
        Rule(body, head, known[whole], known[whole] / known[body])
        for whole in known
        for head in whole
        if (body := tuple(item for item in whole if item != head))
    ]
    strong = (rule for rule in rules if rule.confidence >= confidence)
    return tuple(sorted(strong, key=lambda rule: (-rule.support, rule.body, rule.head)))


def rules_kept(
    original: Transactions, published: Transactions, minimum: int, confidence: float, most: int = 3
) -> RulesKept:
    """The original's rules, looked for in the published data."""
    before = association_rules(original, minimum, confidence, most)
    after = {(rule.body, rule.head) for rule in association_rules(published, minimum, confidence, most)}
    bodies = supports(published, {rule.body for rule in before})
    whole = supports(published, {(*rule.body, rule.head) for rule in before})
    errors = [
        abs(rule.confidence - (whole[(*rule.body, rule.head)] / bodies[rule.body] if bodies[rule.body] else 0.0))
        for rule in before
    ]
    kept = sum((rule.body, rule.head) in after for rule in before)
    return RulesKept(len(before), len(after), kept, sum(errors) / len(errors) if errors else 0.0)
