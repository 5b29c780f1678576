"""Carries out what ``protocol`` decides, over any set of holders: send to all, gather, checkpoint, recover."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from coordinator.checkpoints import Checkpoints
from coordinator.course import Ask
from coordinator.holders import Holders
from coordinator.protocol import Outcome, conduct
from coordinator.sets import SetOutcome
from coordinator.transcripts import is_kept, name_of
from federated_anon.errors import Code, HolderRefused, MessageRefused
from federated_anon.messages import COORDINATOR, VERSION, Envelope, Message, Step, decode, encode
from federated_anon.messages.payloads import REPLIES, Refused
from federated_anon.study import Study

TIMEOUT = 3600.0
LOST_MEMORY = frozenset({Code.OUT_OF_ORDER})


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a study stands: the step about to be asked, of whom, and what is new."""

    number: int
    step: Step
    holders: tuple[str, ...]
    news: tuple[str, ...]


def silent(progress: Progress) -> None:
    """A listener that does not care."""


@dataclass(frozen=True, slots=True)
class _Done:
    """A step that was carried out: what was asked, and the replies as bytes."""

    ask: Ask
    replies: Mapping[str, bytes]


class Driver:
    """Drives one study to its outcome."""

    def __init__(
        self,
        study: Study,
        holders: Holders,
        *,
        secret: bytes,
        listen: Callable[[Progress], None] = silent,
        timeout: float = TIMEOUT,
        checkpoints: Checkpoints | None = None,
        first_sequence: int = 1,
    ) -> None:
        self._study, self._holders, self._secret, self._listen = study, holders, secret, listen
        self._timeout, self._checkpoints = timeout, checkpoints
        self._sequence = first_sequence
        self._done: list[_Done] = []
        self.bytes_received: dict[str, int] = dict.fromkeys(study.holders, 0)

    def run(self) -> Outcome | SetOutcome:
        """All steps, from the first that no checkpoint has."""
        course = conduct(self._study, self._secret)
        ask = next(course)
        while True:
            try:
                ask = course.send(self._carry_out(ask))
            except StopIteration as end:
                outcome: Outcome | SetOutcome = end.value
                return replace(outcome, transcript=self._transcript())

    def _transcript(self) -> dict[str, bytes]:
        """The replies that a sealed run keeps for its auditor."""
        return {
            name_of(done.ask.step, done.ask.requests[name].round, name): reply
            for done in self._done
            for name, reply in done.replies.items()
            if is_kept(self._study, done.ask.step, getattr(done.ask.requests[name], "round", 0))
        }

    def _carry_out(self, ask: Ask) -> dict[str, Any]:
        number = len(self._done)
        self._listen(Progress(number, ask.step, tuple(ask.requests), ask.news))
        stored = self._checkpoints.load(number, ask.step, ask.requests) if self._checkpoints else None
        replies = stored or self._asked(ask)
        if self._checkpoints and not stored:
            self._checkpoints.save(number, ask.step, replies)
        self._done.append(_Done(ask, replies))
        for name, reply in replies.items():
            self.bytes_received[name] += len(reply)
        return {name: self._opened(name, ask.step, reply).payload for name, reply in replies.items()}

    def _asked(self, ask: Ask) -> dict[str, bytes]:
        """Ask all; a holder that lost its memory is led through its earlier steps, once, and asked again."""
        replies = self._exchange(ask.step, ask.requests)
        lost = {name for name, reply in replies.items() if self._has_lost_memory(name, ask.step, reply)}
        for name in lost:
            self._rewind(name)
        replies |= self._exchange(ask.step, {name: ask.requests[name] for name in lost})
        for name, reply in replies.items():
            self._require_answered(name, ask.step, reply)
        return {name: reply for name, reply in replies.items() if reply is not None}

    def _exchange(self, step: Step, requests: Mapping[str, Any]) -> dict[str, bytes | None]:
        if not requests:
            return {}
        self._sequence += 1
        envelope = Envelope(VERSION, self._study.digest, step, COORDINATOR, self._sequence)
        content = {name: encode(Message(envelope, payload)) for name, payload in requests.items()}
        return self._holders.ask(content, self._timeout)

    def _has_lost_memory(self, name: str, step: Step, reply: bytes | None) -> bool:
        if reply is None:
            return True
        payload = self._opened(name, step, reply).payload
        return isinstance(payload, Refused) and payload.code in LOST_MEMORY and bool(self._done)

    def _rewind(self, name: str) -> None:
        """Ask a holder all it was asked before; every step is repeatable, so it must answer as it did."""
        for done in self._done:
            if name not in done.ask.requests or done.ask.step is Step.CLOSE:
                continue
            reply = self._exchange(done.ask.step, {name: done.ask.requests[name]})[name]
            self._require_answered(name, done.ask.step, reply)
            if self._content(name, done.ask.step, reply) != self._content(name, done.ask.step, done.replies[name]):
                raise MessageRefused(f"'{name}' came back with other data: it answers '{done.ask.step}' differently")

    def _content(self, name: str, step: Step, reply: bytes | None) -> bytes:
        """A reply without its sequence, for comparison."""
        opened = self._opened(name, step, reply or b"")
        envelope = Envelope(VERSION, self._study.digest, step, name, 0)
        return encode(Message(envelope, opened.payload))

    def _require_answered(self, name: str, step: Step, reply: bytes | None) -> None:
        if reply is None:
            raise HolderRefused(name, step, Code.LATE)
        payload = self._opened(name, step, reply).payload
        if isinstance(payload, Refused):
            raise HolderRefused(name, step, Code(payload.code) if payload.code in set(Code) else Code.FAULT)

    def _opened(self, name: str, step: Step, reply: bytes) -> Message:
        message = decode(reply, REPLIES)
        envelope = message.envelope
        if envelope.sender != name:
            raise MessageRefused(f"a reply of '{envelope.sender}' came from '{name}'", Code.WRONG_SENDER)
        is_expected = envelope.study == self._study.digest and envelope.step is step
        if not is_expected and not isinstance(message.payload, Refused):
            raise MessageRefused(f"'{name}' answered another study or step", Code.OTHER_STUDY)
        return message
