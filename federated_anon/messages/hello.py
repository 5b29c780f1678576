"""What a service says of itself before any study: who it is, what it speaks, what time it has."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from federated_anon.errors import MessageRefused

LARGEST = 4096


@dataclass(frozen=True, slots=True)
class Hello:
    """A holder's name, the version of its messages and of its software, and its clock in seconds since 1970."""

    holder: str
    protocol: int
    version: str
    time: float

    def encoded(self) -> bytes:
        """As JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decoded(cls, content: bytes) -> Hello:
        """From JSON of exactly these fields, or ``MessageRefused``."""
        try:
            found = json.loads(content if len(content) <= LARGEST else b"")
            hello = cls(str(found["holder"]), int(found["protocol"]), str(found["version"]), float(found["time"]))
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
            raise MessageRefused("a service said something else than hello") from None
        if not hello.holder.isprintable() or not hello.version.isprintable():
            raise MessageRefused("a service said something else than hello")
        return hello
