"""Which method is better over many tables: Friedman's test, and Nemenyi's critical difference.

Demšar (2006), "Statistical comparisons of classifiers over multiple data sets", JMLR 7, 1-30.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from federated_anon.errors import DataRefused

Scores = NDArray[np.float64]
"""(cases, methods): one figure of each method on each case."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Mean ranks (1 is best), Friedman's statistic and p, and the difference of ranks that is not chance."""

    methods: tuple[str, ...]
    mean_ranks: tuple[float, ...]
    statistic: float
    p_value: float
    critical_difference: float
    cases: int

    def rank_of(self, method: str) -> float:
        """The mean rank of one method."""
        return self.mean_ranks[self.methods.index(method)]

    @property
    def best_first(self) -> tuple[tuple[str, float], ...]:
        """Methods with their mean ranks, best first."""
        return tuple(sorted(zip(self.methods, self.mean_ranks, strict=True), key=lambda pair: pair[1]))


def ranks(scores: Scores, higher_is_better: bool) -> Scores:
    """(cases, methods): rank in each case, 1 the best; equals share their mean rank."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(-scores if higher_is_better else scores, axis=1))


def rank(
    methods: Sequence[str],
    scores: Scores,
    higher_is_better: bool = True,
    alpha: float = 0.05,
    independent: int | None = None,
) -> Ranking:
    r"""Compare methods over cases by their ranks.

    .. math:: CD = \frac{q_\alpha}{\sqrt 2} \sqrt{\frac{m (m + 1)}{6 n}}

    with q the studentized range over m methods and n cases. Where several cases come from one table (its k, say) they
    are not independent: ``independent`` then says how many tables there are, which stands for n in the difference and
    scales the statistic, while mean ranks are over all cases. Two methods and two cases are the least.
    """
    if scores.ndim != 2 or scores.shape[1] != len(methods) or min(scores.shape) < 2 or not np.isfinite(scores).all():
        raise DataRefused(f"ranks need numbers of 2 methods and 2 cases at least, got {scores.shape}")
    from scipy.stats import chi2, studentized_range

    count, cases = scores.shape[1], independent or len(scores)
    placed = ranks(scores, higher_is_better)
    statistic = _friedman(placed) * cases / len(scores)
    width = float(studentized_range.ppf(1 - alpha, count, np.inf)) / np.sqrt(2)
    return Ranking(
        tuple(methods),
        tuple(float(mean) for mean in placed.mean(axis=0)),
        statistic,
        float(chi2.sf(statistic, count - 1)),
        float(width * np.sqrt(count * (count + 1) / (6 * cases))),
        cases,
    )


def cliques(found: Ranking) -> list[tuple[str, ...]]:
    """The widest runs of methods, best first, whose mean ranks differ by less than the critical difference."""
    ordered = found.best_first
    runs: list[tuple[int, int]] = []
    for start, (_, first) in enumerate(ordered):
        end = max(i for i, (_, other) in enumerate(ordered) if other - first < found.critical_difference)
        if end > start and not any(begun <= start and end <= ended for begun, ended in runs):
            runs.append((start, end))
    return [tuple(name for name, _ in ordered[start : end + 1]) for start, end in runs]


def nemenyi_p(found: Ranking) -> NDArray[np.float64]:
    """(methods, methods): chance of a difference of mean ranks at least as large, if all methods were alike."""
    from scipy.stats import studentized_range

    means, count = np.array(found.mean_ranks), len(found.methods)
    gap = np.abs(means[:, None] - means) / np.sqrt(count * (count + 1) / (6 * found.cases))
    chance = np.asarray(studentized_range.sf(gap * np.sqrt(2), count, np.inf))
    np.fill_diagonal(chance, 1.0)
    return chance


def _friedman(placed: Scores) -> float:
    """Friedman's chi-square of ranks, corrected for ties; all tied scores 0."""
    cases, count = placed.shape
    spread = float(np.square(placed - (count + 1) / 2).sum() / (cases * (count - 1)))
    between = float(cases * np.square(placed.mean(axis=0) - (count + 1) / 2).sum())
    return between / spread if spread > 0 else 0.0
