"""How often calls are let in: a limit that slows a caller down, safe to share between threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class RateLimit:
    """A bucket of one minute's calls that fills again as time goes by; who comes too often waits.

    An honest caller is only slowed: turned away, it would start its study anew and call even more often.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = float(per_minute), clock
        self._left, self._seen = float(per_minute), clock()
        self._lock = threading.Lock()

    def delay(self) -> float:
        """Seconds to wait before one more call, which is counted at once."""
        with self._lock:
            now = self._clock()
            self._left = min(self._most, self._left + (now - self._seen) * self._most / 60) - 1
            self._seen = now
            return max(0.0, -self._left * 60 / self._most)


class Tally:
    """How many refusals an entry of the ledger stands for: each its own at first, then one per minute for all since.

    Whoever sends garbage without end must not fill the disk of the one who records it. ``burst`` entries per kind, and
    one more for each minute gone by.
    """

    def __init__(self, burst: int = 100, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst, self._clock = burst, clock
        self._kinds: dict[str, tuple[float, float, int]] = {}

    def due(self, kind: str) -> int:
        """How many refusals to record now; 0 if this one waits for others."""
        now = self._clock()
        left, seen, waiting = self._kinds.get(kind, (float(self._burst), now, 0))
        left = min(float(self._burst), left + (now - seen) / 60)
        if left < 1:
            self._kinds[kind] = left, now, waiting + 1
            return 0
        self._kinds[kind] = left - 1, now, 0
        return waiting + 1
