"""What an attacker tried and how far it came, against what is promised and against guessing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from federated_anon.privacy.linkage import Rate

SLACK = 1.05
"""A measured share may exceed its bound by so much before the bound counts as broken: people are drawn, not counted."""


class Verdict(StrEnum):
    """How an attack ended."""

    HOLDS = "holds"
    BROKEN = "BROKEN"
    STATED = "stated"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attack: who, knowing what, after what, with which share of success.

    ``bound`` is what the product promises at most; None where it promises nothing, and says so (``stated``).
    ``baseline`` is the success of somebody who only guesses.
    """

    name: str
    attacker: str
    knows: str
    seeks: str
    success: Rate
    baseline: float
    bound: float | None

    @property
    def verdict(self) -> Verdict:
        """Broken only if an interval of twice the width lies above the bound: a lucky guess is no leak.

        The interval itself would be beaten by chance once in 40 attacks, and every study is attacked many times.
        """
        if self.bound is None:
            return Verdict.STATED
        lowest = self.success.value - 2 * (self.success.value - self.success.low)
        is_above = self.success.value > SLACK * self.bound and lowest > self.bound
        return Verdict.BROKEN if is_above else Verdict.HOLDS

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for machines."""
        return {
            "name": self.name,
            "attacker": self.attacker,
            "knows": self.knows,
            "seeks": self.seeks,
            "success": self.success.value,
            "interval": [self.success.low, self.success.high],
            "bound": self.bound,
            "baseline": self.baseline,
            "verdict": str(self.verdict),
        }


def exactly(share: float) -> Rate:
    """A share that was counted or computed, not drawn."""
    return Rate(share, share, share)
