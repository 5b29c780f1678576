"""A holder that restarts, vanishes, lags or lies at a given step, around a real one."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from federated_anon.messages import decode, encode
from federated_anon.messages.payloads import REPLIES, REQUESTS, Proposed
from federated_anon.scenario.plan import Trouble

Answer = Callable[[bytes], bytes]
INFLATED = 1e6


class Troubled:
    """``answer`` of a holder made by ``make``, with what its troubles do to it; None where it does not answer."""

    def __init__(self, make: Callable[[], Answer], troubles: Sequence[Trouble]) -> None:
        self._make, self._waiting = make, list(troubles)
        self._answer = make()
        self._is_gone = False
        self._last = b""

    def __call__(self, request: bytes) -> bytes | None:
        """The reply, as far as there is one."""
        if self._is_gone:
            return None
        step = decode(request, REQUESTS).envelope.step
        trouble = next((one for one in self._waiting if one.step is step), None)
        if trouble is None:
            self._last = self._answer(request)
            return self._last
        if trouble.does != "inflate":
            self._waiting.remove(trouble)
        return self._befallen(trouble, request)

    def _befallen(self, trouble: Trouble, request: bytes) -> bytes | None:
        if trouble.does == "vanish":
            self._is_gone = True
            return None
        if trouble.does == "restart":
            self._answer = self._make()
            return None
        if trouble.does == "lag":
            time.sleep(trouble.seconds)
        reply = self._answer(request)
        if trouble.does == "garbage":
            return hashlib.sha256(reply).digest() * 8
        if trouble.does == "replay":
            return self._last or reply
        return inflated(reply) if trouble.does == "inflate" else reply


def inflated(reply: bytes) -> bytes:
    """The same reply with larger gains than the truth; anything else as it is."""
    message = decode(reply, REPLIES)
    if not isinstance(message.payload, Proposed):
        return reply
    gains = (message.payload.gains * INFLATED).astype(message.payload.gains.dtype)
    return encode(replace(message, payload=replace(message.payload, gains=gains)))
