"""How the coordinator reaches holders: bytes out, bytes back; it cannot tell which transport carries them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol


class Holders(Protocol):
    """All holders of a study behind one door."""

    def ask(self, requests: Mapping[str, bytes], timeout: float) -> dict[str, bytes | None]:
        """Send each holder its request, gather the replies; None from one that was lost on the way.

        Raises ``HolderLate`` naming every holder that did not answer within ``timeout`` seconds.
        """
        ...


@dataclass(frozen=True, slots=True)
class InProcess:
    """Holders in this very process, each any ``answer(bytes) -> bytes``, or None for one that is lost."""

    answers: Mapping[str, Callable[[bytes], bytes | None]]

    def ask(self, requests: Mapping[str, bytes], timeout: float) -> dict[str, bytes | None]:
        """One after the other."""
        return {name: self.answers[name](request) for name, request in requests.items()}
