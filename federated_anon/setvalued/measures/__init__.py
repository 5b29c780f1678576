"""What disassociation costs and what it leaves to an attacker: supports, itemsets, ranks, re-identification."""

from __future__ import annotations

from federated_anon.setvalued.measures.association import (
    Association,
    associations,
    items_kept,
    relative_association_error,
)
from federated_anon.setvalued.measures.distance import private_tree_edit_distance
from federated_anon.setvalued.measures.itemsets import RankPreservation, frequent_itemsets, rank_preservation, top_pairs
from federated_anon.setvalued.measures.reidentification import Reidentification, reidentification
from federated_anon.setvalued.measures.rules import Rule, RulesKept, association_rules, rules_kept
from federated_anon.setvalued.measures.supports import expected_supports, supports, visible_supports

__all__ = [
    "Association",
    "RankPreservation",
    "Reidentification",
    "Rule",
    "RulesKept",
    "association_rules",
    "associations",
    "expected_supports",
    "frequent_itemsets",
    "items_kept",
    "private_tree_edit_distance",
    "rank_preservation",
    "reidentification",
    "relative_association_error",
    "rules_kept",
    "supports",
    "top_pairs",
    "visible_supports",
]
