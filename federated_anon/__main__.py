"""``federated-anon``, also as ``python -m federated_anon``: light, so that signals are answered from the start."""

import os
import sys

from federated_anon.interruption import EXIT_CODE, INTERRUPTION


def main() -> None:
    """Entry point: no traceback ever reaches a user; each kind of fault has its exit code."""
    INTERRUPTION.install()
    from federated_anon.cli import command_line
    from federated_anon.shell import guarded

    code = guarded(command_line)
    INTERRUPTION.retire()
    if code == EXIT_CODE:
        leave(code)
    sys.exit(code)


def leave(code: int) -> None:
    """End at once: libraries that were interrupted at work may crash when the interpreter takes them down."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
