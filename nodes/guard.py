"""The one way out of a holder: policy check, ledger entry on disk, then bytes.

The ledger also pins the study's transcript: a step that was answered once is answered again only for the very same
request, so a coordinator that changes one record and asks again learns a code and nothing else.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import hashlib
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from federated_anon.arrays import Labels
from federated_anon.crypto.agreement import derive
from federated_anon.errors import (
    Code,
    FederatedAnonError,
    GuaranteeBroken,
    MessageRefused,
    PolicyRefused,
    VerificationFailed,
)
from federated_anon.ledger import Ledger, budget_spent, released_partitions, studies_answered, verified_entries
from federated_anon.messages import COORDINATOR, VERSION, Envelope, Message, decode, encode
from federated_anon.messages.codec import encode_payload
from federated_anon.messages.envelope import Step
from federated_anon.messages.payloads import REQUESTS, Refused
from federated_anon.privacy import require_k
from nodes.limits import Tally
from nodes.settings import HolderSettings

log = logging.getLogger(__name__)
NO_STUDY = "0" * 64
FIRST = frozenset({Step.BLIND, Step.MAP, Step.SEAT, Step.GATHER})
"""The first step of each exposure that is about values, and of the alignment that tests partners' lists."""
UNRECORDED = frozenset({Code.STORAGE, Code.VERIFICATION})
"""Refusals because of the ledger itself: an entry after a gap would hide the gap."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A payload that is about to leave, and what the ledger must say about it beyond its size and hash."""

    payload: Any
    partition: str = ""
    cells: str = ""
    note: str = ""
    spent: tuple[float, float] = (0.0, 0.0)  # Epsilon and delta.
    once: bool = False  # Masked: another answer, of other data too, would show the difference of the two.


class Guard:
    """Opens requests and lets answers out; owns the ledger of the study under way."""

    def __init__(self, settings: HolderSettings) -> None:
        self._settings = settings
        self._ledger: Ledger | None = None
        self._data_version = ""
        self._last = 0
        self._lock = threading.RLock()
        self._heads: dict[str, tuple[int, str]] = {}
        self._tally, self._door_tally = Tally(), Tally()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """One request at a time, over threads and over processes with the same ledger: checks must not race."""
        with self._lock, contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError):  # Without a folder no entry can be written, so no reply leaves either.
                self._settings.ledger.mkdir(parents=True, exist_ok=True, mode=0o700)
                handle = stack.enter_context((self._settings.ledger / ".lock").open("a"))
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def open(self, content: bytes) -> Message:
        """The request behind ``content``: well formed, from the coordinator, of this study, not seen before."""
        request = decode(content, REQUESTS, largest=self._settings.policy.largest_message)
        envelope = request.envelope
        if envelope.sender != COORDINATOR:
            raise MessageRefused("requests come from the coordinator", Code.WRONG_SENDER)
        if envelope.step is not Step.ENROL and (self._ledger is None or envelope.study != self._ledger.study):
            known = self._ledger is not None
            raise MessageRefused("not the study under way", Code.OTHER_STUDY if known else Code.OUT_OF_ORDER)
        self._require_not_rolled_back(envelope.study)
        last = self._last_sequence(envelope.study)
        if envelope.sequence <= last:
            raise MessageRefused(f"sequence {envelope.sequence}, the last was {last}", Code.REPLAYED)
        return request

    def begin(self, study: str, data_version: str) -> None:
        """A study was accepted: from now on its ledger is the one that is written."""
        ledger = Ledger(self._settings.ledger, study, self._settings.name, self._settings.identity)
        verified_entries(ledger.lines(), study, self._settings.name, self._settings.identity.public)
        self._last = self._last_sequence(study)
        self._ledger = ledger
        self._data_version = keyed_version(self._settings, data_version)

    def require_unchanged(self, request: Message) -> None:
        """Raise unless this step (and round) was never answered, or answered for the same request."""
        for entry in self._entries(request.envelope.study):
            same_step = entry["step"] == request.envelope.step and entry["round"] == _round(request.payload)
            was_answered = entry["sent"] and entry["data_version"] == self._data_version
            if same_step and was_answered and entry["asked"] != _asked(request):
                raise PolicyRefused("this step was answered for another request", Code.CHANGED_REQUEST)

    def require_few_studies(self) -> None:
        """Raise if other studies have begun with this data version: every study's scalars tell more of it."""
        policy = self._settings.policy
        if not policy.one_release_per_data_version or self._ledger is None:
            return
        others = studies_answered(self._settings.ledger, self._data_version, FIRST) - {self._ledger.study}
        if len(others) >= policy.most_studies:
            raise PolicyRefused(
                f"this version of the data has served {len(others)} other studies; new data, or a decision of the "
                "data owner (most_studies), is needed",
                Code.SECOND_PARTITION,
            )

    def require_first(self, kind: str, digest: str) -> None:
        """Raise if this data version has ever left in another partition (two partitions give records away)."""
        if not self._settings.policy.one_release_per_data_version:
            return
        before = released_partitions(self._settings.ledger, self._data_version, kind)
        if before - {digest}:
            raise PolicyRefused(
                f"this version of the data has already left in other {kind}; new data, or a decision of the "
                "data owner (one_release_per_data_version), is needed",
                Code.SECOND_PARTITION,
            )

    def require_budget(self, spent: tuple[float, float]) -> None:
        """Raise if this study and the others that used this data version would spend more than the policy allows."""
        if not any(spent):
            return
        policy, study = self._settings.policy, self._ledger.study if self._ledger else ""
        others = budget_spent(self._settings.ledger, self._data_version, study)
        epsilon, delta = (sum(pair) for pair in zip(others, spent, strict=True))
        if epsilon > (policy.most_epsilon or 0.0) * (1 + 1e-9) or delta > policy.most_delta * (1 + 1e-9):
            raise PolicyRefused(f"other studies have spent {others[0]} of epsilon, {others[1]} of delta", Code.BUDGET)

    def release(self, request: Message, answer: Answer) -> bytes:
        """Write the ledger entry, then hand out the bytes it describes."""
        self._require_same_answer(request, answer)
        reply = self._reply(request.envelope, answer.payload)
        self._record(request, reply, sent=type(answer.payload).__name__, answer=answer)
        return reply

    def refuse(self, content: bytes, error: FederatedAnonError | None) -> bytes:
        """A reply that carries a code only; recorded if a study is under way and its ledger can be written.

        Nothing is raised: an exception would carry the text of the first fault with it to whoever called.
        """
        code = error.code if error else Code.FAULT
        request = self._readable(content)
        envelope = request.envelope if request else Envelope(VERSION, NO_STUDY, Step.ENROL, COORDINATOR, 0)
        reply = self._reply(envelope, Refused(code))
        if self._ledger is None:
            self.turn_away(code)
        elif code not in UNRECORDED and (count := self._tally.due(code)):
            try:
                self._record(request, reply, sent="", answer=Answer(None, note=_counted(code, count)))
            except Exception:
                log.exception("the refusal could not be recorded")
        return reply

    def turn_away(self, code: Code) -> None:
        """Record a refusal that belongs to no study: of a peer at the door, or before any study was accepted."""
        if code in UNRECORDED or not (count := self._door_tally.due(code)):
            return
        try:
            door = Ledger(self._settings.ledger, NO_STUDY, self._settings.name, self._settings.identity)
            door.append({**_blank(0), "note": _counted(code, count)})
        except Exception:
            log.exception("the refusal could not be recorded")

    def endorse(self, release: bytes) -> None:
        """Sign the digest of a finished release into the ledger."""
        if self._ledger is not None:
            self._ledger.append({**_blank(self._last), "step": Step.CLOSE.value, "note": f"endorsed {release.hex()}"})

    def ledger_lines(self) -> list[str]:
        """The ledger of the study under way."""
        return self._ledger.lines() if self._ledger else []

    def _reply(self, envelope: Envelope, payload: Any) -> bytes:
        head = Envelope(VERSION, envelope.study, envelope.step, self._settings.name, envelope.sequence)
        return encode(Message(head, payload))

    def _require_same_answer(self, request: Message, answer: Answer) -> None:
        """Raise if the same question had another answer: then steps between have changed what it is about."""
        if request.envelope.step is Step.CLOSE:  # It hands out the ledger, which grows.
            return
        given = _digest(answer.payload)
        for entry in self._entries(request.envelope.study):
            same_step = entry["step"] == request.envelope.step and entry["round"] == _round(request.payload)
            was_answered = entry["sent"] and (answer.once or entry["data_version"] == self._data_version)
            if same_step and was_answered and entry["answer"] != given:
                raise PolicyRefused("this step was answered otherwise before", Code.CHANGED_REQUEST)

    def _require_not_rolled_back(self, study: str) -> None:
        """Raise if the ledger on disk has lost what this process wrote."""
        size, head = self._heads.get(study, (0, ""))
        ledger = Ledger(self._settings.ledger, study, self._settings.name, self._settings.identity)
        last = ledger.entry_at(size) if ledger.size >= size else {}
        if size and (not last or last.get("hash") != head):
            raise VerificationFailed("the ledger is not the one that was written")

    def _readable(self, content: bytes) -> Message | None:
        try:
            return decode(content, REQUESTS, largest=self._settings.policy.largest_message)
        except FederatedAnonError:
            return None

    def _entries(self, study: str) -> Iterator[dict[str, Any]]:
        return Ledger(self._settings.ledger, study, self._settings.name, self._settings.identity).entries()

    def _last_sequence(self, study: str) -> int:
        if self._ledger is not None and self._ledger.study == study:
            return self._last
        return max((entry["sequence"] for entry in self._entries(study)), default=0)

    def _record(self, request: Message | None, reply: bytes, sent: str, answer: Answer) -> None:
        if self._ledger is None:
            return
        own = request is not None and request.envelope.study == self._ledger.study
        sequence = request.envelope.sequence if request and own else self._last
        entry = self._ledger.append(
            _blank(self._last)
            | {
                "step": request.envelope.step.value if request else "",
                "round": _round(request.payload) if request else 0,
                "sequence": sequence if sent else self._last,
                "asked": _asked(request) if request else "",
                "sent": sent,
                "fields": [field.name for field in fields(answer.payload)] if sent else [],
                "note": answer.note,
                "bytes": len(reply),
                "reply": hashlib.sha256(reply).hexdigest(),
                "answer": _digest(answer.payload) if sent else "",
                "data_version": self._data_version,
                "partition": answer.partition,
                "cells": answer.cells,
                "spent": list(answer.spent),
            }
        )
        self._heads[self._ledger.study] = self._ledger.size, entry["hash"]
        if sent:
            self._last = sequence


def keyed_version(settings: HolderSettings, data_version: str) -> str:
    """The name of a data version in the ledger, which is published: a plain digest would let readers try out values."""
    return derive(settings.identity.secret, "data version", data_version).hex()


def _blank(sequence: int) -> dict[str, Any]:
    """An entry that speaks of no message; what is said is filled in."""
    return {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
        "step": "",
        "round": 0,
        "sequence": sequence,
        "asked": "",
        "sent": "",
        "fields": [],
        "note": "",
        "bytes": 0,
        "reply": "",
        "answer": "",
        "data_version": "",
        "partition": "",
        "cells": "",
        "spent": [0.0, 0.0],
    }


def _counted(code: Code, count: int) -> str:
    return str(code) if count == 1 else f"{code} x {count}"


def _round(payload: Any) -> int:
    return int(getattr(payload, "round", 0))


def _asked(request: Message) -> str:
    """Digest of what was asked, whoever asked it the how-manieth time."""
    return _digest(request.payload)


def _digest(payload: Any) -> str:
    return hashlib.sha256(encode_payload(payload)).hexdigest()


def require_checked(checked: Labels, groups: Labels) -> None:
    """Raise unless ``groups`` only joins groups that were checked: refusals for l or t would be verdicts on others."""
    pairs = np.unique(np.stack([checked, groups]), axis=1).shape[1] if len(checked) == len(groups) else 0
    if pairs != int(checked.max()) + 1:
        raise PolicyRefused("these groups are not made of those checked before", Code.CHANGED_REQUEST)


def require_groups(groups: Labels, records: int, k: int) -> None:
    """Raise unless ``groups`` covers all common records with groups of at least ``k``, numbered without gaps."""
    if len(groups) != records or records == 0 or groups.min() < 0 or groups.max() >= records:
        raise MessageRefused("the groups do not fit the common records")
    sizes = np.bincount(groups)
    if sizes.min() == 0:
        raise MessageRefused("the groups are not numbered from 0 without gaps")
    try:
        require_k(groups, k)
    except GuaranteeBroken as error:
        raise PolicyRefused(str(error), Code.SMALL_GROUP) from None


def partition_digest(labels: Labels, canonical: np.ndarray, rows: int) -> str:
    """A name for a partition of people that depends on nothing else.

    ``canonical`` is each common record's place among all the holder's rows sorted by id; groups are numbered by
    first appearance in that order, absent people are -1.
    """
    placed = np.full(rows, -1, dtype=np.int64)
    placed[canonical] = labels
    _, first, inverse = np.unique(placed, return_index=True, return_inverse=True)
    order = np.empty(len(first), dtype=np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    renumbered = np.where(placed < 0, -1, order[inverse])
    return hashlib.sha256(np.ascontiguousarray(renumbered, dtype="<i8").tobytes()).hexdigest()
