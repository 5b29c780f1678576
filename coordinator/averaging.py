"""Agreement of maps in sealed exposure: averages over groups are passed on, and the gate keeps what helps."""

from __future__ import annotations

import numpy as np

from coordinator.course import Ask, Course, everyone
from coordinator.gate import Judgement, judge
from federated_anon.errors import MessageRefused
from federated_anon.messages import Step
from federated_anon.messages.averaged import Adopt, Average, Consult
from federated_anon.sealed import NestedPartition
from federated_anon.study import Study


def agreed_maps(study: Study, partition: NestedPartition) -> Course[tuple[Judgement, ...]]:
    """As many rounds as the study allows and keep at least one candidate."""
    judgements: tuple[Judgement, ...] = ()
    for number in range(study.rounds):
        verdicts = yield from _round(study, len(partition.parents) + 1, number)
        judgements += verdicts
        if not any(one.verdict == "keep" for one in verdicts):
            break
    return judgements


def _round(study: Study, groups: int, number: int) -> Course[tuple[Judgement, ...]]:
    told = yield Ask(Step.AVERAGE, everyone(study, Average(number)))
    for name, reply in told.items():
        if len(reply.units) != groups:
            raise MessageRefused(f"'{name}' told {len(reply.units)} averages of {groups} groups")
    requests = {
        name: Consult(number, np.stack([told[other].units for other in study.holders if other != name]))
        for name in study.holders
    }
    tried = yield Ask(Step.CONSULT, requests)
    verdicts = tuple(
        Judgement(number, name, one.before, one.after, (), judge(one, needs_harmless=True))
        for name, one in tried.items()
    )
    yield Ask(
        Step.ADOPT,
        {one.holder: Adopt(number, one.verdict == "keep") for one in verdicts},
        news=tuple(
            f"averages of {groups} groups, {one.holder}: Davies-Bouldin {one.before:.4g} -> {one.after:.4g}, "
            f"{one.verdict}"
            for one in verdicts
        ),
    )
    return verdicts
