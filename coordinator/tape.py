"""A transport that remembers what went by: for simulations whose messages are attacked afterwards, and for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from federated_anon.messages import Step, decode
from federated_anon.messages.payloads import REQUESTS


class Tape:
    """Passes requests on to holders in this process (whatever has ``answer``), and keeps them with the replies."""

    def __init__(self, holders: Mapping[str, Any]) -> None:
        self.holders = dict(holders)
        self.requests: list[tuple[str, Step, bytes]] = []
        self.replies: list[tuple[str, bytes]] = []

    def ask(self, requests: Mapping[str, bytes], timeout: float) -> dict[str, bytes | None]:
        """Pass on and remember."""
        found: dict[str, bytes | None] = {}
        for name, request in requests.items():
            self.requests.append((name, decode(request, REQUESTS).envelope.step, request))
            reply = self.holders[name].answer(request)
            self.replies.append((name, reply))
            found[name] = reply
        return found
