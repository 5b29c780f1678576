"""A holder's end of agreement between maps in sealed exposure: group averages out, a candidate, the gate's verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from federated_anon.arrays import Labels, Points
from federated_anon.errors import Code, MessageRefused, PolicyRefused
from federated_anon.messages import Step
from federated_anon.messages.averaged import Adopt, Adopted, Average, Averaged, Consult
from federated_anon.messages.payloads import Candidate
from federated_anon.policy import require_round
from federated_anon.sealed import MapProposer
from federated_anon.sealed.agreement import Link, SealedMap, is_due, mean_units, tried
from federated_anon.study import Study
from nodes.guard import Answer
from nodes.sealing import Sealing
from nodes.settings import HolderSettings

AVERAGING = frozenset({Step.AVERAGE, Step.CONSULT, Step.ADOPT})
SCALARS = 8
"""People per Davies-Bouldin value that leaves, as in open exposure."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """One round at one level of splits: the map it started from, and the one that partners would make of it."""

    level: int
    round: int
    base: SealedMap
    candidate: SealedMap | None = None


class AveragingSteps:
    """The steps of agreement; groups are averaged at one level only, and asking again gives the same answer."""

    def __init__(self, settings: HolderSettings, recall: Callable[[Any], Any], remember: Callable[[Any], None]) -> None:
        self._settings, self._recall, self._remember = settings, recall, remember
        self.steps: dict[Step, Callable[[Any], Answer]] = {
            Step.AVERAGE: self._average,
            Step.CONSULT: self._consult,
            Step.ADOPT: self._adopt,
        }

    def _average(self, request: Average) -> Answer:
        sealing, proposer = self._standing(request.round)
        past = self._past()
        if not is_due(sealing.partition, sealing.rules) or (past and past.level != sealing.level):
            raise MessageRefused("groups are averaged at one level, when they are many enough", Code.OUT_OF_ORDER)
        if request.round not in ((past.round, past.round + 1) if past else (0,)):
            raise MessageRefused(f"round {request.round} is not the next one", Code.OUT_OF_ORDER)
        is_again = past is not None and past.round == request.round
        current = past if past and is_again else Agreement(sealing.level, request.round, proposer.map)
        self._remember(current)
        groups = proposer.in_order(sealing.partition.compact)
        return Answer(Averaged(mean_units(current.base.units, groups, current.base.grid).astype(np.int32)))

    def _consult(self, request: Consult) -> Answer:
        sealing, proposer = self._standing(request.round)
        current, study = self._current(request.round, sealing), self._recall(Study)
        groups, points = proposer.in_order(sealing.partition.compact), proposer.points
        count = int(groups.max()) + 1
        _require_averages(request.units, len(study.holders) - 1, count, current.base.grid.units)
        link = Link(study.collaboration.strength, study.collaboration.radius)
        found = tried(points, current.base, groups, list(request.units), link)
        self._remember(replace(current, candidate=found))
        return Answer(_judged(points, current.base, found, request.round))

    def _adopt(self, request: Adopt) -> Answer:
        sealing, proposer = self._standing(request.round)
        current = self._current(request.round, sealing)
        if current.candidate is None:
            raise MessageRefused("there is no candidate yet", Code.OUT_OF_ORDER)
        proposer.map = current.candidate if request.keep else current.base
        return Answer(Adopted(request.keep))

    def _standing(self, number: int) -> tuple[Sealing, MapProposer]:
        require_round(self._settings.policy, self._recall(Study), number)
        sealing: Sealing = self._recall(Sealing)
        if not isinstance(sealing.proposer, MapProposer):
            raise PolicyRefused("no maps in this study", Code.POLICY_METHOD)
        return sealing, sealing.proposer

    def _past(self) -> Agreement | None:
        try:
            found: Agreement = self._recall(Agreement)
        except MessageRefused:
            return None
        return found

    def _current(self, number: int, sealing: Sealing) -> Agreement:
        current: Agreement = self._recall(Agreement)
        if (current.round, current.level) != (number, sealing.level):
            raise MessageRefused(f"round {number} is not the one under way", Code.OUT_OF_ORDER)
        return current


def _judged(points: Points, before: SealedMap, after: SealedMap, number: int) -> Candidate:
    """Both maps' validity, and whether the own error allows the new one; nothing new where people are too few."""
    if (number + 2) * SCALARS > len(points):
        return Candidate(float("inf"), float("inf"), False)
    return Candidate(before.validity(points), after.validity(points), after.spread(points) <= before.spread(points))


def _require_averages(units: Labels, partners: int, groups: int, most: int) -> None:
    if units.shape != (partners, groups) or units.min() < 0 or units.max() >= most:
        raise MessageRefused("partners' averages do not fit the groups and the map")
