"""Many points of Curve25519 raised with one secret: in processes of their own, since X25519 keeps the interpreter lock.

Workers are plain child processes that read all points, then write all results. They are ended with the call, whatever
ends it; one whose parent is gone notices between two chunks and ends too. The secret goes through a pipe, never
through an argument or the environment.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import BinaryIO

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

POINT_BYTES = 32
LEAST = 4000
"""Points below which a worker would take longer to start than to work."""
_CHUNK = 2048
_LOW_ORDER = bytes(POINT_BYTES)


def raised(points: bytes, secret: bytes, workers: int) -> bytes:
    """X25519 (RFC 7748) of every point of 32 bytes; zeros where a point has a low order. The order is kept."""
    count = len(points) // POINT_BYTES
    if workers < 2 or count < LEAST:
        return b"".join(_raised(points, secret))
    size = -(-count // workers) * POINT_BYTES
    return _by_workers([points[start : start + size] for start in range(0, len(points), size)], secret)


def _by_workers(parts: Sequence[bytes], secret: bytes) -> bytes:
    with ExitStack() as stack:
        processes = [stack.enter_context(_worker()) for _ in parts]
        for process, part in zip(processes, parts, strict=True):
            _stream(process.stdin).write(secret + part)
            _stream(process.stdin).close()
        results = [_stream(process.stdout).read() for process in processes]
    if list(map(len, results)) != list(map(len, parts)):
        raise RuntimeError("a worker that raises points ended early")
    return b"".join(results)


def _stream(stream: object) -> BinaryIO:
    """A pipe of a process; it is there, since it was asked for."""
    return stream  # type: ignore[return-value]


@contextmanager
def _worker() -> Iterator[subprocess.Popen[bytes]]:
    """A child process that knows the same modules as this one; it does not outlive the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "federated_anon.crypto.ladder", str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        yield process
    finally:
        process.kill()
        with suppress(BrokenPipeError):
            _stream(process.stdin).close()
        _stream(process.stdout).close()
        process.wait()


def _raised(points: bytes, secret: bytes) -> Iterator[bytes]:
    own = X25519PrivateKey.from_private_bytes(secret)
    for start in range(0, len(points), POINT_BYTES):
        try:
            yield own.exchange(X25519PublicKey.from_public_bytes(points[start : start + POINT_BYTES]))
        except ValueError:
            yield _LOW_ORDER


def _serve(parent: int) -> None:
    """A worker's whole life."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the parent ends its workers.
    content = sys.stdin.buffer.read()
    secret, points = content[:POINT_BYTES], content[POINT_BYTES:]
    found: list[bytes] = []
    for start in range(0, len(points), _CHUNK * POINT_BYTES):
        if os.getppid() != parent:
            return
        found.extend(_raised(points[start : start + _CHUNK * POINT_BYTES], secret))
    sys.stdout.buffer.write(b"".join(found))


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
