"""The head of every message: which version, study and step, from whom, the how-manieth."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

VERSION = 1
COORDINATOR = "coordinator"


class Step(StrEnum):
    """The steps of a study; each is one request to a holder and one reply from it."""

    ENROL = "enrol"
    SHARE = "share"
    ALIGN = "align"
    BLIND = "blind"
    TRACE = "trace"
    MAP = "map"
    COLLABORATE = "collaborate"
    SETTLE = "settle"
    LABEL = "label"
    REFINE = "refine"
    CODE = "code"
    CORRECT = "correct"
    SEAT = "seat"
    PROPOSE = "propose"
    COMPARE = "compare"
    SPLIT = "split"
    AVERAGE = "average"
    CONSULT = "consult"
    ADOPT = "adopt"
    GATHER = "gather"
    COUNT = "count"
    BRANCH = "branch"
    DISASSOCIATE = "disassociate"
    CONSTRAIN = "constrain"
    RELEASE = "release"
    EVALUATE = "evaluate"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class Envelope:
    """Who asks or answers which step of which study; ``sequence`` never falls or repeats within a study."""

    version: int
    study: str
    step: Step
    sender: str
    sequence: int


@dataclass(frozen=True, slots=True)
class Message:
    """An envelope and its payload (one of ``payloads``)."""

    envelope: Envelope
    payload: Any
