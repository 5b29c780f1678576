"""How wrong, how sure and how successful an adversary is.

Wagner & Eckhoff (2018), ACM Computing Surveys 51(3), article 57: similarity, success probability, error, precision.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Labels, Points
from federated_anon.errors import DataRefused
from federated_anon.privacy.linkage import Rate, wilson

ROUNDING = 1e-12
"""A probability may miss 0, 1 or 1/n by this much."""


class Degree(StrEnum):
    """Reiter & Rubin (1998), ACM TISSEC 1(1), 66-92: from safe to exposed."""

    ABSOLUTE = "absolute privacy"
    BEYOND_SUSPICION = "beyond suspicion"
    PROBABLE_INNOCENCE = "probable innocence"
    POSSIBLE_INNOCENCE = "possible innocence"
    EXPOSED = "exposed"
    PROVABLY_EXPOSED = "provably exposed"


def degree_of_anonymity(p: float, people: int, delta: float = 0.1) -> Degree:
    """The degree of somebody whom the adversary names with probability ``p`` among ``people``."""
    if not 0.0 <= p <= 1.0 or people < 1:
        raise DataRefused(f"a probability and at least one person are needed, got {p} and {people}")
    if p == 0.0:
        return Degree.ABSOLUTE
    if p >= 1.0 - ROUNDING:
        return Degree.PROVABLY_EXPOSED
    if p <= 1.0 / people + ROUNDING:
        return Degree.BEYOND_SUSPICION
    if p <= 0.5:
        return Degree.PROBABLE_INNOCENCE
    return Degree.POSSIBLE_INNOCENCE if p < 1.0 - delta else Degree.EXPOSED


def mean_squared_error(true: Points, observed: Points) -> float:
    r""":math:`\frac{1}{n} \sum_i \lVert x_i - y_i \rVert^2`."""
    _require_rows(true, observed)
    return float(np.square(true - observed).sum() / len(true))


def normalised_variance(true: NDArray[np.float64], observed: NDArray[np.float64]) -> float:
    r""":math:`\sigma^2(X^* - Y) / \sigma^2(X^*)`; 0 is no noise. A constant column scores 0 or infinity."""
    noise, spread = float(np.var(true - observed)), float(np.var(true))
    if spread == 0.0:
        return 0.0 if noise == 0.0 else float("inf")
    return noise / spread


def success_rate(true: Points, observed: Points, threshold: float) -> Rate:
    """Share of records whose estimate lies within ``threshold`` of the truth (Euclidean), with its interval."""
    _require_rows(true, observed)
    near = np.sqrt(np.square(true - observed).sum(axis=1)) <= threshold
    return wilson(float(near.sum()), len(true))


def interval_width(values: NDArray[np.float64], labels: Labels, confidence: float = 0.95) -> NDArray[np.float64]:
    """(g,): width of the interval that holds the middle ``confidence`` of each group's true values.

    What somebody knows who knows all of a group but not which record is whose: narrow groups give values away.
    """
    tail = (1.0 - confidence) / 2
    order = np.argsort(labels, kind="stable")
    parts = np.split(values[order], np.cumsum(np.bincount(labels))[:-1])
    return np.array([float(np.diff(np.quantile(part, [tail, 1 - tail]))[0]) for part in parts])


def _require_rows(true: Points, observed: Points) -> None:
    if true.shape != observed.shape or len(true) == 0:
        raise DataRefused(f"as many estimates as truths are needed, got {observed.shape} for {true.shape}")
