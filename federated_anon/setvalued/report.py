"""What a run tells about itself: a public part from what is published, and a private one that needs the original."""

from __future__ import annotations

from collections import Counter
from math import comb
from typing import Any

import numpy as np

from federated_anon.setvalued.chunks import Disassociated
from federated_anon.setvalued.measures import items_kept, rank_preservation, supports, top_pairs
from federated_anon.setvalued.safety import exposed
from federated_anon.setvalued.transactions import Transactions
from federated_anon.setvalued.verifier import rare_combinations

TOP_PAIRS = 50
"""Pairs whose supports and ranks a report lists."""
RANKED = 17
"""Pairs whose ranks are compared, as many as in Table 5 of Awad et al. 2020."""
MOST_WORK = 20_000_000
"""Combinations to look at when rare ones are counted; more would keep people waiting."""


def public_report(form: Disassociated, table: Transactions | None) -> dict[str, Any]:
    """Sizes, supports and pairs of what is published."""
    chunks = [chunk for cluster in form.clusters for chunk in cluster.chunks]
    report: dict[str, Any] = {
        "people": form.people,
        "clusters": len(form.clusters),
        "cluster_sizes": histogram(cluster.size for cluster in form.clusters),
        "chunks_per_cluster": histogram(len(cluster.chunks) for cluster in form.clusters),
        "items_per_chunk": histogram(len(chunk.items) for chunk in chunks),
        "records_per_chunk": histogram(len(chunk.records) for chunk in chunks),
        "terms_per_cluster": histogram(len(cluster.terms) for cluster in form.clusters),
        "occurrences": form.kept,
        "clusters_open_to_cover_problem": len(exposed(form)),
        "supports": dict(zip(form.names, published_supports(form), strict=True)),
    }
    if table is not None:
        report["reassociated"] = {
            "records": len(table),
            "top_pairs": [{"items": list(pair), "support": n} for pair, n in top_pairs(table, TOP_PAIRS).items()],
            "rare_combinations": rare_count(table, form.k, form.m),
        }
    return report


def private_report(original: Transactions, form: Disassociated, table: Transactions | None) -> dict[str, Any]:
    """What needs the original to be known: exact supports before, and what became of its most frequent pairs."""
    before = top_pairs(original, TOP_PAIRS)
    report: dict[str, Any] = {
        "private": True,
        "records": len(original),
        "empty_records": int((original.lengths == 0).sum()),
        "occurrences": len(original.items),
        "items_kept": items_kept(original, form),
        "supports_before": dict(zip(original.names, original.supports.tolist(), strict=True)),
        "supports_after": dict(zip(form.names, published_supports(form), strict=True)),
        "top_pairs_before": [{"items": list(pair), "support": n} for pair, n in before.items()],
    }
    if table is not None:
        after = supports(table, before)
        ranked = dict(list(before.items())[:RANKED])
        kept = rank_preservation(original, table, ranked, top_pairs(table, RANKED))
        report["pairs"] = [
            {"items": list(pair), "before": n, "after": after[pair], "rank_before": place + 1, "rank_after": rank}
            for place, ((pair, n), rank) in enumerate(zip(before.items(), ranks([*after.values()]), strict=True))
        ]
        report["top_pairs"] = {
            "pairs": kept.sets,
            "still_top": kept.staying,
            "rank_correlation": kept.correlation,
            "ratio": kept.ratio,
        }
    return report


def published_supports(form: Disassociated) -> list[int]:
    """How often each item is in record chunks."""
    held = (item for one in form.clusters for chunk in one.chunks for record in chunk.records for item in record)
    return np.bincount(np.fromiter(held, np.int64), minlength=len(form.names)).tolist()


def rare_count(table: Transactions, k: int, m: int) -> int | None:
    """Combinations of at most ``m`` items that a table holds fewer than ``k`` times; None where counting takes long."""
    lengths, records = np.unique(table.lengths, return_counts=True)
    work = sum(comb(length, m) * count for length, count in zip(lengths.tolist(), records.tolist(), strict=True))
    if work > MOST_WORK:
        return None
    return sum(1 for _ in rare_combinations(table, k, m))


def ranks(supports_: list[int]) -> list[int]:
    """Rank of each support among them, 1 for the largest; equal ones share the better rank."""
    ordered = sorted(supports_, reverse=True)
    return [ordered.index(one) + 1 for one in supports_]


def histogram(values: Any) -> dict[str, int]:
    """How often each number occurs, by rising number."""
    return {str(value): count for value, count in sorted(Counter(values).items())}
