"""l-diversity: every group holds at least l well-represented values of a sensitive column.

Machanavajjhala, Kifer, Gehrke & Venkitasubramaniam (2007), ACM TKDD 1(1), article 3. Missing counts as one
value, as it does for k: a recipient sees it like any other.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Labels
from federated_anon.errors import DataRefused, GuaranteeBroken
from federated_anon.tally import Values, first_pair, ranked, tally

ROUNDING = 1e-9
"""The exponential of an entropy of l equal shares may miss l by this much."""


class Diversity(StrEnum):
    """How the values of a group are counted."""

    DISTINCT = "distinct"
    ENTROPY = "entropy"


def distinct_diversity(values: Values, labels: Labels) -> NDArray[np.int64]:
    """(g,): the number of distinct values in each group."""
    counted = tally(ranked(values).positions, labels)
    return np.bincount(counted.group, minlength=len(counted.sizes))


def entropy_diversity(values: Values, labels: Labels) -> NDArray[np.float64]:
    r"""(g,): the effective number of values in each group, the exponential of its Shannon entropy.

    .. math:: \exp \left( - \sum_v p_v \ln p_v \right)

    It is at most the number of distinct values, and compares with l as that number does. One value scores 1.
    """
    counted = tally(ranked(values).positions, labels)
    share = counted.count / counted.sizes[counted.group]
    return np.exp(-np.add.reduceat(share * np.log(share), first_pair(counted)))


def require_l(values: Values, labels: Labels, l: float, kind: str = Diversity.DISTINCT) -> None:  # noqa: E741
    """Raise ``GuaranteeBroken`` unless every group's diversity of the given kind is at least ``l``."""
    if len(values) == 0:
        raise DataRefused("l-diversity needs at least one record")
    measure = entropy_diversity if Diversity(kind) is Diversity.ENTROPY else distinct_diversity
    found = measure(values, labels)
    if (least := float(found.min())) < l - ROUNDING:
        failing = int((found < l - ROUNDING).sum())
        raise GuaranteeBroken(f"{kind} l-diversity: every group needs {l}, {failing} fail, the least has {least:.6g}")
