"""Keep, revert or stop a collaboration, from Davies-Bouldin values: decide apart from doing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from federated_anon.messages.payloads import Candidate

MARGIN = 1e-9


class Verdict(StrEnum):
    """What happens to a holder's candidate map."""

    KEEP = "keep"
    REVERT = "revert"


@dataclass(frozen=True, slots=True)
class Judgement:
    """One holder's candidate in one round, and what the gate said of it."""

    round: int
    holder: str
    before: float
    after: float
    strengths: tuple[float, ...]
    verdict: Verdict


def decide(before: float, after: float, *, margin: float = MARGIN) -> Verdict:
    """Keep a new map only if its Davies-Bouldin index falls; a collapsed map scores infinity and never passes."""
    return Verdict.KEEP if after < before - margin else Verdict.REVERT


def judge(candidate: Candidate, *, needs_harmless: bool) -> Verdict:
    """The gate's verdict on a candidate; where information loss counts, the holder's own word counts too."""
    if needs_harmless and not candidate.harmless:
        return Verdict.REVERT
    return decide(candidate.before, candidate.after)
