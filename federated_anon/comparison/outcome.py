"""What a finished sweep says: means over seeds, and ranks over tables and k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from federated_anon.comparison.plan import REFERENCES, Sweep
from federated_anon.utility.combined import combined_utility, scores
from federated_anon.utility.ranking import Ranking, rank

LOSS, SEPARABILITY = "information_loss", "held_out"
MEASURES = {
    SEPARABILITY: ("Held-out separability (mean of tree, linear, boosted)", True),
    LOSS: ("Information loss", False),
    "structural_median": ("Structural utility, median column", True),
    "correlation_error": ("Correlation error", False),
    "linked": ("Records linked", False),
}
"""What methods are ranked by: a title, and whether more is better."""

Key = tuple[str, int, int]
"""Table, k, holders: one case in which methods are ranked."""


@dataclass(frozen=True, slots=True)
class Standings:
    """Means over seeds by method and case, rankings by measure, scores, and which cells could not be."""

    means: dict[str, dict[tuple[str, str, int, int], float]]
    rankings: dict[str, Ranking]
    scores: dict[str, float]
    ranked: tuple[str, ...]
    below_k: tuple[str, ...]
    impossible: tuple[str, ...]
    cases: tuple[Key, ...]

    def mean(self, measure: str, table: str, method: str, k: int, holders: int) -> float | None:
        """A figure's mean over seeds, or nothing."""
        return self.means.get(measure, {}).get((table, method, k, holders))


def standings(sweep: Sweep, results: pa.Table) -> Standings:
    """Rank the methods that reached k wherever they were tried, over the cases that all of them have."""
    rows = results.to_pylist()
    impossible = tuple(f"{_named(row)}: {row['error']}" for row in rows if row.get("error"))
    whole = [row for row in rows if not row.get("error")]
    below = tuple(m for m in sweep.methods if any(r["method"] == m and r["k_reached"] < r["k"] for r in whole))
    ranked = tuple(method for method in sweep.methods if method not in below)
    means = {name: _means(whole, name) for name in _numeric(whole)}
    cases = _common(means.get(LOSS, {}), sweep, ranked)
    rankings = {
        name: found
        for name, (_, more_is_better) in MEASURES.items()
        if (found := _ranking(means.get(name, {}), ranked, cases, more_is_better)) is not None
    }
    return Standings(means, rankings, _scores(means, ranked, cases), ranked, below, impossible, cases)


def _named(row: dict[str, Any]) -> str:
    return f"{row['table']}, {row['method']}, k={row['k']}, {row['holders']} holders, seed {row['seed']}"


def _numeric(rows: Sequence[dict[str, Any]]) -> list[str]:
    fixed = {"table", "method", "k", "holders", "seed", "error"}
    return sorted({n for row in rows for n, v in row.items() if n not in fixed and isinstance(v, int | float)})


def _means(rows: Sequence[dict[str, Any]], name: str) -> dict[tuple[str, str, int, int], float]:
    found: dict[tuple[str, str, int, int], list[float]] = {}
    for row in rows:
        if row.get(name) is not None:
            found.setdefault((row["table"], row["method"], row["k"], row["holders"]), []).append(float(row[name]))
    return {key: float(np.mean(values)) for key, values in found.items()}


def _common(means: dict[tuple[str, str, int, int], float], sweep: Sweep, methods: Sequence[str]) -> tuple[Key, ...]:
    cases = [(name, k, holders) for name, _, _ in sweep.tables for k in sweep.ks for holders in sweep.holders]
    return tuple((t, k, h) for t, k, h in cases if all((t, method, k, h) in means for method in methods))


def _ranking(
    means: dict[tuple[str, str, int, int], float], methods: Sequence[str], cases: Sequence[Key], more_is_better: bool
) -> Ranking | None:
    """Ranks over all cases; k and holders of one table are not independent, so tables alone make significance."""
    measure_cases = [(t, k, h) for t, k, h in cases if all((t, m, k, h) in means for m in methods)]
    tables = len({table for table, _, _ in measure_cases})
    if len(methods) < 2 or len(measure_cases) < 2:
        return None
    matrix = np.array([[means[(t, m, k, h)] for m in methods] for t, k, h in measure_cases])
    return rank(methods, matrix, more_is_better, independent=tables)


def _scores(
    means: dict[str, dict[tuple[str, str, int, int], float]], methods: Sequence[str], cases: Sequence[Key]
) -> dict[str, float]:
    """Score of the papers: combined utility (held-out separability and structure, halves) against the best, summed."""
    shape, honest = means.get("structural_median", {}), means.get(SEPARABILITY, {})
    if not methods or not cases or not honest:
        return {}
    utility = {
        m: {f"{t} {k} {h}": combined_utility(honest[(t, m, k, h)], shape[(t, m, k, h)]) for t, k, h in cases}
        for m in methods
    }
    return scores(utility)


def references(sweep: Sweep) -> tuple[str, ...]:
    """Rows beside the ranking."""
    return REFERENCES if sweep.label else REFERENCES[1:]
