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
