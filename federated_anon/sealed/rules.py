"""What all holders of a study agree on before they split: sizes, scores, and when a winner goes on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from federated_anon.arrays import Weights
from federated_anon.errors import SettingsRefused


@dataclass(frozen=True, slots=True)
class SplitRules:
    """Settings of sealed splitting; equal for all holders of a study.

    ``waste_free`` and ``near`` count in units of k. ``unseen`` is what a cut expects of the columns it does not see: so
    many times the squares of its own, spread evenly over the records; ``unseen_near`` the same for groups below
    ``near``, which few further splits will sort by those columns. A winner that splits off little goes on with the
    rest of a group while that has at least ``chain_from`` records, and of any group once few records are left to
    split. A group of more than ``sample`` records is searched on every s-th of its records in the holder's canonical
    order, and cut as a whole.
    """

    k: int
    directions: int = 5
    refinements: int = 4
    waste_free: int = 4
    least_dimension: int = 12
    unseen: float = 0.35
    unseen_near: float = 0.75
    near: int = 16
    chain_from: int = 8192
    sample: int = 8192

    def __post_init__(self) -> None:
        least = {"k": 2, "directions": 1, "refinements": 1, "waste_free": 0, "least_dimension": 1}
        least |= {"unseen": 0, "unseen_near": 0, "near": 0, "chain_from": 2, "sample": 64}
        faults = [f"{name} must be at least {low}" for name, low in least.items() if getattr(self, name) < low]
        if faults:
            raise SettingsRefused("rules of sealed splitting", faults)

    def shrinkage(self, records: int, columns: int) -> Weights:
        r"""(records // k + 1,) factors :math:`G^{-2/D}`, by which the SSE of a part falls once it is G groups.

        :math:`D = \max(D_0, \text{columns})` stands for the dimension that the groups will have to fill, where
        :math:`D_0` is ``least_dimension``; G = 0 never occurs and gets 1.
        """
        groups = np.maximum(np.arange(records // self.k + 1), 1)
        return np.asarray(groups ** (-2.0 / max(self.least_dimension, columns)), dtype=float)
