"""The transcript of a sealed study: kept with the run, and audited against what the holders signed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from coordinator.argmax import last_round, opened_winners
from federated_anon.arrays import Weights
from federated_anon.errors import GuaranteeBroken, MessageRefused, VerificationFailed
from federated_anon.ledger import Entry
from federated_anon.messages import Message, Step, decode
from federated_anon.messages.payloads import REPLIES
from federated_anon.privacy import smallest_class
from federated_anon.sealed import Level, SplitRules, Transcript, joint_classes
from federated_anon.sealed.transcript import packed_gains
from federated_anon.study import Study

KEPT = frozenset({Step.PROPOSE, Step.SPLIT, Step.DISASSOCIATE})
"""Steps whose replies speak of single records, decide who does, or are the release itself."""


def is_kept(study: Study, step: Step, number: int) -> bool:
    """Whether a round's replies are kept; of comparisons those of the last round of a level, which tell who wins."""
    if step is not Step.COMPARE:
        return step in KEPT
    return (number + 1) % (last_round(study, 0) + 1) == 0


def name_of(step: Step, level: int, holder: str) -> str:
    """The file that keeps one reply."""
    return f"{level:03d}-{step.value}-{holder}.arrow"


def audit_transcript(folder: Path, study: Study, records: int, ledgers: Mapping[str, Sequence[Entry]]) -> int:
    """The smallest class of records that all per-record messages together leave alike; at least k, or it raises.

    Every reply must be there, and be the one that its holder signed into the ledger.
    """
    count = 1 + max((entry["round"] for entry in _sent(ledgers, Step.PROPOSE)), default=-1)
    levels = tuple(_level(folder, study, ledgers, number) for number in range(count - 1))
    transcript = Transcript(records, SplitRules(study.privacy.k), levels)
    try:
        smallest = smallest_class(joint_classes(transcript))
    except (MessageRefused, GuaranteeBroken) as error:
        raise VerificationFailed(f"transcript: {error}") from None
    if smallest < study.privacy.k:
        raise VerificationFailed(f"transcript: {smallest} records can be told apart, k is {study.privacy.k}")
    return smallest


def _level(folder: Path, study: Study, ledgers: Mapping[str, Sequence[Entry]], number: int) -> Level:
    if study.collaboration.winner == "secure":
        gains = _compared(folder, study, ledgers, number)
    else:
        told = _round(folder, study, ledgers, Step.PROPOSE, number)
        gains = [one.gains for one in told.values()]
    sides = [_signed(folder, ledgers[holder], holder, Step.SPLIT, number) for holder in study.holders]
    bits = tuple(one.payload.bits if one else b"" for one in sides)
    return Level(tuple(map(packed_gains, gains)), bits)


def _compared(folder: Path, study: Study, ledgers: Mapping[str, Sequence[Entry]], number: int) -> list[Weights]:
    """Who won, from the shares that the holders signed, as gains of one and zero."""
    told = _round(folder, study, ledgers, Step.COMPARE, last_round(study, number))
    try:
        won = opened_winners(study, told, told[study.holders[0]].groups)
    except MessageRefused as error:
        raise VerificationFailed(f"transcript: {error}") from None
    return [(won == place).astype(float) for place in range(len(study.holders))]


def _round(
    folder: Path, study: Study, ledgers: Mapping[str, Sequence[Entry]], step: Step, number: int
) -> dict[str, Any]:
    """What every holder said in one round; each must have said something."""
    told = {holder: _signed(folder, ledgers[holder], holder, step, number) for holder in study.holders}
    if silent := [holder for holder, one in told.items() if one is None]:
        raise VerificationFailed(f"ledger of '{silent[0]}': no answer to '{step}', round {number}")
    return {holder: one.payload for holder, one in told.items() if one is not None}


def _signed(folder: Path, entries: Sequence[Entry], holder: str, step: Step, number: int) -> Message | None:
    """The reply as its holder signed it; None if the holder sent none."""
    hashes = {e["reply"] for e in entries if e["sent"] and e["step"] == step and e["round"] == number}
    if not hashes:
        return None
    path = folder / name_of(step, number, holder)
    try:
        content = path.read_bytes()
        reply = decode(content, REPLIES)
    except (OSError, MessageRefused):
        raise VerificationFailed(f"transcript: '{path.name}' is missing or cannot be read") from None
    if hashlib.sha256(content).hexdigest() not in hashes:
        raise VerificationFailed(f"transcript: '{path.name}' is not what '{holder}' signed")
    return reply


def _sent(ledgers: Mapping[str, Iterable[Entry]], step: Step) -> list[Entry]:
    return [entry for entries in ledgers.values() for entry in entries if entry["sent"] and entry["step"] == step]
