"""The shell around a command: whatever goes wrong becomes one message on stderr and an exit code."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import typer

from federated_anon import console
from federated_anon.errors import FederatedAnonError, HolderRefused, StorageFailed
from federated_anon.folders import reason
from federated_anon.hints import HINTS
from federated_anon.interruption import EXIT_CODE, INTERRUPTION

USAGE_ERROR: Any = typer.BadParameter.__mro__[2]  # The root of Typer's own errors, which it does not export.


def own_log() -> logging.Handler:
    """Where holders of this process log: nowhere, since an error says it all; or stderr, to look for faults."""
    return logging.StreamHandler(sys.stderr) if os.environ.get("FEDERATED_ANON_DEBUG") else logging.NullHandler()


def guarded(command: Callable[[], Any]) -> int:
    """Run a command; what goes wrong becomes one message on stderr and an exit code."""
    try:
        code = int(command() or 0)
        sys.stdout.flush()
    except USAGE_ERROR as error:
        error.show()
        return int(error.exit_code)
    except SystemExit as error:
        return stopped() if is_interruption(error) else int(error.code or 0)
    except BaseException as error:
        if is_interruption(error):
            return stopped()
        if os.environ.get("FEDERATED_ANON_DEBUG"):
            raise
        return explained(error)
    return stopped() if code == EXIT_CODE else code


def is_interruption(error: BaseException) -> bool:
    """Whether a signal is behind an error: libraries turn it into errors of their own, or into an exit."""
    is_exit = isinstance(error, SystemExit) and error.code == signal.SIGTERM
    return INTERRUPTION.came or is_exit or isinstance(error, KeyboardInterrupt | typer.Abort)


def stopped() -> int:
    """Tell that the command was interrupted."""
    console.errors.print("Interrupted; nothing unfinished is left.")
    return EXIT_CODE


def explained(error: BaseException) -> int:
    """Tell what went wrong and what to do, and choose the exit code."""
    if isinstance(error, FederatedAnonError):
        notes = [f"  {note}" for note in getattr(error, "__notes__", ())]
        hint = [f"  {HINTS[error.code]}"] if isinstance(error, HolderRefused) and not notes else []
        console.complain("Error:", "\n".join([str(error), *hint, *notes]))
        return error.exit_code
    if isinstance(error, OSError):
        close_output()
        place = f"'{error.filename}' " if error.filename else ""
        console.complain("Error:", f"{place}cannot be read or written: {reason(error)}")
        return StorageFailed.exit_code
    console.complain("Unexpected fault:", f"{type(error).__name__}; FEDERATED_ANON_DEBUG=1 shows where")
    return 1


def close_output() -> None:
    """Give up stdout if it cannot be written to, so that the interpreter does not try again at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
