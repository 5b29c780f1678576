"""What Ctrl-C and a polite end by signal do to a command: one ``KeyboardInterrupt``, then quiet for the clean-up."""

from __future__ import annotations

import signal
import time
from types import FrameType

EXIT_CODE = 130
GRACE = 10.0
"""Seconds in which further signals are ignored, so that an impatient second Ctrl-C does not stop the clean-up."""


class Interruption:
    """A signal handler. Until ``arm`` it only remembers, since libraries break when their import is interrupted."""

    def __init__(self) -> None:
        self.came = False
        self._is_armed = False
        self._last = float("-inf")

    def install(self) -> None:
        """Answer Ctrl-C and SIGTERM alike from now on."""
        signal.signal(signal.SIGINT, self)
        signal.signal(signal.SIGTERM, self)

    def arm(self) -> None:
        """Interrupt from now on; and at once, if a signal came before."""
        self._is_armed = True
        if self.came:
            self._interrupt()

    def retire(self) -> None:
        """All is done: signals that come while the interpreter ends are too late to matter."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """A signal came."""
        self.came = True
        if self._is_armed and time.monotonic() - self._last > GRACE:
            self._interrupt()

    def _interrupt(self) -> None:
        self._last = time.monotonic()
        raise KeyboardInterrupt


INTERRUPTION = Interruption()
