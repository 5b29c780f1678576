"""Ids as points of Curve25519, and the check of points that came from elsewhere.

A u coordinate belongs to the curve v^2 = u^3 + 486662 u^2 + u or to its twist, and stays there however often it is
raised: a set of which half lies on the twist would give away one bit per id. So only points of the curve are made and
accepted, by the Legendre symbol of the right-hand side. Bernstein (2006), Curve25519, PKC; RFC 7748.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from federated_anon.crypto.agreement import derive
from federated_anon.crypto.ladder import POINT_BYTES, raised
from federated_anon.errors import Code, MessageRefused
from federated_anon.microaggregation.compiled import compiled
from federated_anon.som.parallel import allowed_threads, map_chunks, slices

Curve: TypeAlias = NDArray[np.uint8]
"""(n, 32): one u coordinate per row, little end first."""

PRIME = 2**255 - 19
_A = 486662
_CHUNK = 4096
_PRIME_WORDS = np.frombuffer(PRIME.to_bytes(32, "little"), dtype="<u8").astype(np.uint64)


def hashed_points(ids: Sequence[str], key: bytes) -> Curve:
    """A point of the curve for each id: HMAC-SHA256 of counter and id, for the first counter that gives one.

    The key is the holders' own, so that the coordinator could not even hash a guess. Two tries on average.
    """
    secret, found = derive(key, "points"), np.zeros((len(ids), POINT_BYTES), dtype=np.uint8)
    waiting, texts, counter = np.arange(len(ids)), [text.encode() for text in ids], 0
    while len(waiting):
        head = counter.to_bytes(4, "little")
        digests = [hmac.digest(secret, head + texts[place], "sha256") for place in waiting]
        tried = np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, POINT_BYTES).copy()
        tried[:, -1] &= 0x7F
        fits = are_on_curve(tried)
        found[waiting[fits]] = tried[fits]
        waiting, counter = waiting[~fits], counter + 1
    return found


def are_on_curve(points: Curve) -> NDArray[np.bool_]:
    """(n,): which rows are the shortest spelling of a u coordinate on the curve, and not on its twist."""
    parts = map_chunks(lambda part: _on_curve(points[part]), slices(len(points), _CHUNK))
    return np.concatenate(parts) if parts else np.zeros(0, dtype=bool)


def _on_curve(points: Curve) -> NDArray[np.bool_]:
    content = points.tobytes()
    us = [int.from_bytes(content[i : i + 32], "little") for i in range(0, len(content), 32)]
    sides = b"".join((u * (u * (u + _A) + 1) % PRIME).to_bytes(32, "little") for u in us)
    words = np.frombuffer(sides, dtype="<u8").astype(np.uint64).reshape(-1, 4)
    short = np.fromiter((u < PRIME for u in us), dtype=bool, count=len(us))
    return np.asarray((_symbols(words, _PRIME_WORDS) == 1) & short)


@compiled
def _symbols(values: NDArray[np.uint64], prime: NDArray[np.uint64]) -> NDArray[np.int64]:
    """(n,): Jacobi symbols of ``values`` (n, 4 words, low first) over ``prime``, by the binary algorithm.

    Cohen (1993), A Course in Computational Algebraic Number Theory, algorithm 1.4.12.
    """
    result = np.empty(len(values), dtype=np.int64)
    for row in range(len(values)):
        a, n = values[row].copy(), prime.copy()
        sign = 1
        while a[0] | a[1] | a[2] | a[3]:
            while a[0] & np.uint64(1) == 0:
                _halve(a)
                rest = n[0] & np.uint64(7)
                if rest == 3 or rest == 5:
                    sign = -sign
            if _is_less(a, n):
                a, n = n, a
                if a[0] & np.uint64(3) == 3 and n[0] & np.uint64(3) == 3:
                    sign = -sign
            _subtract(a, n)
        is_one = n[0] == 1 and (n[1] | n[2] | n[3]) == 0
        result[row] = sign if is_one else 0
    return result


@compiled
def _halve(a: NDArray[np.uint64]) -> None:
    for word in range(3):
        a[word] = (a[word] >> np.uint64(1)) | (a[word + 1] << np.uint64(63))
    a[3] >>= np.uint64(1)


@compiled
def _is_less(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> bool:
    for word in range(3, -1, -1):
        if a[word] != b[word]:
            return bool(a[word] < b[word])
    return False


@compiled
def _subtract(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> None:
    borrow = np.uint64(0)
    for word in range(4):
        before = a[word]
        middle = before - b[word]
        a[word] = middle - borrow
        borrow = np.uint64((before < b[word]) | (middle < borrow))


def require_points(content: bytes, count: int) -> Curve:
    """The points behind ``content``: ``count`` of them, each on the curve, strictly rising as bytes; or a refusal."""
    if len(content) != count * POINT_BYTES:
        raise MessageRefused(f"expected {count} points, got {len(content)} bytes", Code.POINTS)
    points = np.frombuffer(content, dtype=np.uint8).reshape(-1, POINT_BYTES)
    if not _rises(points):
        raise MessageRefused("the points are not sorted, or one stands there twice", Code.POINTS)
    if not are_on_curve(points).all():
        raise MessageRefused("a point that is not on the curve", Code.POINTS)
    return points


def raised_points(points: Curve, secret: bytes) -> Curve:
    """All points raised with ``secret``, in their order; a point of low order is refused."""
    content = raised(points.tobytes(), secret, allowed_threads())
    found = np.frombuffer(content, dtype=np.uint8).reshape(-1, POINT_BYTES)
    if not found.any(axis=1).all():
        raise MessageRefused("a point of low order", Code.POINTS)
    return found


def sort_order(points: Curve) -> NDArray[np.int64]:
    """The positions that put points in rising order of their bytes."""
    words = _words(points)
    return np.lexsort((words[:, 3], words[:, 2], words[:, 1], words[:, 0]))


def _rises(points: Curve) -> bool:
    words = _words(points)
    later, earlier = words[1:], words[:-1]
    first = (later != earlier).argmax(axis=1)[:, None]
    return bool((np.take_along_axis(later, first, 1) > np.take_along_axis(earlier, first, 1)).all())


def _words(points: Curve) -> NDArray[np.uint64]:
    return points.reshape(-1).view(">u8").reshape(-1, 4).astype(np.uint64)
