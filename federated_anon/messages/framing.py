"""A message of any size over a stream: its length is announced, its bytes follow in pieces.

The announcement lets a receiver refuse a message before it comes, and tell one that was cut off from a short one.
"""

from __future__ import annotations

from collections.abc import Iterator

PIECE = 2**20
_ANSWER = b"federated-anon 1 answer "
HELLO = "federated-anon 1 hello"
"""The action that asks who serves: its reply is JSON, see ``Hello``."""


def announcement(content: bytes) -> bytes:
    """What is said before a request is sent."""
    return _ANSWER + str(len(content)).encode()


def announced_length(command: bytes) -> int | None:
    """The length of the request that will follow, or None if this announces no request."""
    digits = command.removeprefix(_ANSWER)
    is_number = command.startswith(_ANSWER) and digits.isdigit() and len(digits) <= 18
    return int(digits) if is_number else None


def pieces(content: bytes) -> Iterator[memoryview]:
    """The bytes in order, at most ``PIECE`` at a time, without a copy."""
    view = memoryview(content)
    return (view[start : start + PIECE] for start in range(0, len(view), PIECE))
