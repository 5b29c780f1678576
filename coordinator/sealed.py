"""Sealed exposure as a course of steps: levels of splits, each group split by the holder that gains most from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from coordinator.alignment import Overlap
from coordinator.argmax import secure_winners
from coordinator.averaging import agreed_maps
from coordinator.course import Ask, Course, everyone
from coordinator.gate import Judgement
from federated_anon.arrays import Weights
from federated_anon.errors import MessageRefused
from federated_anon.messages import Step
from federated_anon.messages.payloads import Propose, Seat, Split
from federated_anon.sealed import NestedPartition, SplitRules, apply, open_groups, winners
from federated_anon.sealed.agreement import is_due
from federated_anon.study import Study


@dataclass(frozen=True, slots=True)
class Splits:
    """The finished partition, level by level how many splits each holder won, and how maps agreed."""

    partition: NestedPartition
    levels: tuple[Mapping[str, int], ...]
    judgements: tuple[Judgement, ...] = ()


NOBODY = np.zeros(0, dtype=np.int32)


def split_down(study: Study, overlap: Overlap, secret: bytes) -> Course[Splits]:
    """From one group of everyone to groups of k to 2k-1; one round of two steps per level."""
    yield Ask(Step.SEAT, {name: Seat(overlap.positions[name]) for name in study.holders})
    rules, partition = SplitRules(study.privacy.k), NestedPartition.whole(overlap.records)
    level, won = 0, NOBODY
    levels: list[Mapping[str, int]] = []
    bits: tuple[bytes, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    agrees = study.sealed.proposer == "map" and len(study.holders) > 1
    while len(opened := open_groups(partition, rules.k)):
        told = yield Ask(
            Step.PROPOSE,
            everyone(study, Propose(level, won, bits)),
            news=(f"level {level}: {len(opened)} groups of {2 * rules.k} or more are split",) if level % 5 == 0 else (),
        )
        if study.collaboration.winner == "secure":
            won = (yield from secure_winners(study, level, len(opened), secret)).astype(np.int32)
        else:
            won = winners([_fitting(name, told[name].gains, len(opened)) for name in study.holders]).astype(np.int32)
        names = {
            name: opened[won == place].astype(np.int32)
            for place, name in enumerate(study.holders)
            if (won == place).any()
        }
        sides = yield Ask(Step.SPLIT, {name: Split(level, groups) for name, groups in names.items()})
        bits = tuple(sides[name].bits if name in sides else b"" for name in study.holders)
        if agrees and is_due(partition, rules):
            judgements, agrees = (yield from agreed_maps(study, partition)), False
        partition = apply(partition, won, bits, rules)
        levels.append({name: int((won == place).sum()) for place, name in enumerate(study.holders)})
        level += 1
    if level:  # Every holder applies the last splits too; nothing is open, so nothing is told.
        yield Ask(Step.PROPOSE, everyone(study, Propose(level, won, bits)))
    return Splits(partition, tuple(levels), judgements)


def _fitting(name: str, gains: Weights, count: int) -> Weights:
    if len(gains) != count:
        raise MessageRefused(f"'{name}' told {len(gains)} gains for {count} open groups")
    return gains
