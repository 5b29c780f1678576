"""What one step of a study leaves at a holder for the next."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from federated_anon.arrays import Labels
from nodes.training import LocalMap


@dataclass(frozen=True, slots=True)
class StudyKey:
    """The key that only the holders of the study share."""

    value: bytes


@dataclass(frozen=True, slots=True)
class Proposal:
    """A candidate map that waits for the gate's verdict."""

    round: int
    map: LocalMap


@dataclass(frozen=True, slots=True)
class Checked:
    """The groups that were checked, joined as far as this holder asks: a release may only join them further."""

    groups: Labels


@dataclass(frozen=True, slots=True)
class Released:
    """What was released: representatives, one row per group, and the groups."""

    representatives: pa.Table
    groups: Labels
