"""Uncertainty and information gain of an adversary, in bits.

Wagner & Eckhoff (2018), "Technical privacy metrics: a systematic survey", ACM Computing Surveys 51(3), article 57:
metrics of uncertainty (section 5.1) and of information gain or loss (section 5.2).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Labels
from federated_anon.errors import DataRefused
from federated_anon.tally import Values, ranked, tally

Probabilities = NDArray[np.float64]
"""(m,): non-negative, summing to one."""


def shares(values: Values) -> Probabilities:
    """(m,): how often each distinct value occurs, missing last, as shares."""
    counts = np.bincount(ranked(values).positions)
    return counts[counts > 0] / counts.sum()


def entropy(p: Probabilities) -> float:
    r""":math:`H = - \sum_x p(x) \log_2 p(x)`: bits that the adversary lacks."""
    _require_probabilities(p)
    seen = p[p > 0]
    return float(-(seen * np.log2(seen)).sum()) + 0.0


def normalised_entropy(p: Probabilities) -> float:
    r""":math:`H / \log_2 |X|`, the degree of anonymity of Diaz et al. (2002); a set of one scores 0."""
    return entropy(p) / float(np.log2(len(p))) if len(p) > 1 else 0.0


def relative_entropy(true: Probabilities, estimate: Probabilities) -> float:
    r"""Kullback-Leibler divergence :math:`\sum_x p(x) \log_2 p(x) / q(x)`; infinite where q rules out what occurs."""
    _require_probabilities(true)
    _require_probabilities(estimate)
    if len(true) != len(estimate):
        raise DataRefused(f"two distributions over the same values are needed, got {len(true)} and {len(estimate)}")
    seen = true > 0
    if (estimate[seen] == 0).any():
        return float("inf")
    return float((true[seen] * np.log2(true[seen] / estimate[seen])).sum())


def cross_entropy(true: Probabilities, estimate: Probabilities) -> float:
    r""":math:`H(X^*) + D_{KL}(X^* \| X)`."""
    return entropy(true) + relative_entropy(true, estimate)


def conditional_entropy(values: Values, labels: Labels) -> float:
    r""":math:`H(V \mid E)`: bits left about a record's value when its group is known."""
    counted = tally(ranked(values).positions, labels)
    inside = counted.count / counted.sizes[counted.group]
    return float(-(counted.count * np.log2(inside)).sum() / len(labels)) + 0.0


def mutual_information(values: Values, labels: Labels) -> float:
    r""":math:`I(V; E) = H(V) - H(V \mid E)`: bits that a record's group tells of its value."""
    return max(entropy(shares(values)) - conditional_entropy(values, labels), 0.0)


def correlation(true: NDArray[np.float64], observed: NDArray[np.float64]) -> float:
    r"""Pearson's :math:`cov(X^*, Y) / \sigma_{X^*} \sigma_Y`; 0 where one of them is constant."""
    spread = float(true.std() * observed.std())
    return float(np.mean((true - true.mean()) * (observed - observed.mean()))) / spread if spread else 0.0


def histograms(before: NDArray[np.float64], after: NDArray[np.float64], bins: int = 20) -> tuple[Probabilities, ...]:
    """Both columns over equal bins of the first one's range (ends are open), each bin with half a record added.

    With the half record a divergence stays finite: an empty bin of the release rules nothing out.
    """
    edges = np.linspace(before.min(), before.max(), bins + 1)[1:-1]
    counts = [np.bincount(np.searchsorted(edges, one, side="right"), minlength=bins) + 0.5 for one in (before, after)]
    return tuple(one / one.sum() for one in counts)


def anonymity_sets(labels: Labels) -> NDArray[np.int64]:
    """(n,): how many records, each one's own included, cannot be told from it."""
    return np.bincount(labels)[labels]


def identification_entropy(labels: Labels) -> float:
    r"""Mean over people of :math:`\log_2 |AS_u|`: bits lacked by somebody who knows each one's group."""
    return float(np.log2(anonymity_sets(labels)).mean())


def guesses_needed(p: Probabilities | Sequence[float]) -> float:
    r"""Expected guesses until success, likeliest first: :math:`\sum_i i \, p_{(i)}` (Massey, 1994)."""
    ranked_down = np.sort(np.asarray(p, dtype=np.float64))[::-1]
    _require_probabilities(ranked_down)
    return float((np.arange(1, len(ranked_down) + 1) * ranked_down).sum())


def time_to_success(labels: Labels) -> float:
    r"""Mean over people of the guesses needed inside their group, :math:`(|AS_u| + 1) / 2`."""
    return float((anonymity_sets(labels) + 1).mean() / 2)


def _require_probabilities(p: Probabilities) -> None:
    if len(p) == 0 or (p < 0).any() or abs(float(p.sum()) - 1.0) > 1e-9:
        raise DataRefused("probabilities are at least one number, none below 0, summing to 1")
