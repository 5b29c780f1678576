"""Points of Curve25519: on the curve and not on its twist, raised in any order, refused when they are not points."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

import federated_anon.crypto.ladder as ladder
from federated_anon.crypto.points import PRIME, are_on_curve, hashed_points, raised_points, require_points, sort_order
from federated_anon.errors import Code, MessageRefused

KEY = b"k" * 32
# RFC 7748, section 5.2: scalar, u coordinate, result.
VECTOR = (
    "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
    "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
    "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
)


def row(u: int) -> np.ndarray:
    return np.frombuffer(u.to_bytes(32, "little"), dtype=np.uint8).reshape(1, 32)


def euler(u: int) -> bool:
    """The same test by Euler's criterion."""
    return u < PRIME and pow(u**3 + 486662 * u**2 + u, (PRIME - 1) // 2, PRIME) == 1


@given(st.one_of(st.integers(0, 2**256 - 1), st.integers(PRIME - 40, PRIME + 18), st.integers(0, 40)))
def test_the_curve_is_told_from_its_twist(u):
    assert bool(are_on_curve(row(u))[0]) == euler(u)


def test_hashed_ids_lie_on_the_curve_and_stay_there():
    points = hashed_points([f"person {i}" for i in range(300)], KEY)
    assert all(euler(int.from_bytes(one.tobytes(), "little")) for one in points)
    assert are_on_curve(raised_points(points, b"s" * 32)).all()
    assert len(np.unique(points, axis=0)) == 300
    assert not (points == hashed_points([f"person {i}" for i in range(300)], b"l" * 32)).all(axis=1).any()


def test_raising_is_x25519_and_commutes():
    scalar, u, expected = map(bytes.fromhex, VECTOR)
    assert raised_points(np.frombuffer(u, dtype=np.uint8).reshape(1, 32), scalar).tobytes() == expected
    points = hashed_points(["a", "b", "c"], KEY)
    first, second = b"1" * 32, b"2" * 32
    one_way = raised_points(raised_points(points, first), second)
    assert np.array_equal(one_way, raised_points(raised_points(points, second), first))


def test_workers_give_the_same_bytes_as_this_process_and_are_gone(monkeypatch):
    points = hashed_points([str(i) for i in range(500)], KEY).tobytes()
    alone = ladder.raised(points, KEY, 1)
    monkeypatch.setattr(ladder, "LEAST", 10)
    assert ladder.raised(points, KEY, 3) == alone
    assert not [child for child in psutil.Process().children() if "ladder" in " ".join(child.cmdline())]


def spelled(points: np.ndarray) -> bytes:
    return points[sort_order(points)].tobytes()


def test_what_is_not_a_sorted_list_of_points_is_refused():
    points = hashed_points([str(i) for i in range(8)], KEY)
    twist = next(u for u in range(2, 99) if not euler(u))
    content = spelled(points)
    assert np.array_equal(require_points(content, 8), points[sort_order(points)])
    for wrong, count in [
        (content, 7),
        (content[:-1], 8),
        (content + bytes(32), 8),
        (content[32:] + content[:32], 8),
        (content[:32] * 2, 2),
        (spelled(np.vstack([points, row(twist)])), 9),
        (spelled(np.vstack([points, row(0)])), 9),
        (spelled(np.vstack([points, row(int.from_bytes(points[0].tobytes(), "little") + 2**255)])), 9),
    ]:
        with pytest.raises(MessageRefused) as refused:
            require_points(wrong, count)
        assert refused.value.code is Code.POINTS


@pytest.mark.parametrize("u", [0, 1, PRIME - 1])
def test_points_of_low_order_are_refused(u):
    with pytest.raises(MessageRefused, match="low order") as refused:
        raised_points(row(u), KEY)
    assert refused.value.code is Code.POINTS


SCRIPT = """
from federated_anon.crypto import ladder
from federated_anon.crypto.points import hashed_points
points = hashed_points([str(i) for i in range(2000)], b"k" * 32).tobytes() * 200
print("begun", flush=True)
ladder.raised(points, b"s" * 32, 2)
"""


@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_outlives_its_parent(way):
    parent = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert parent.stdout.readline() == b"begun\n"
    until = time.monotonic() + 20
    while len(workers := psutil.Process(parent.pid).children()) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    assert len(workers) == 2
    time.sleep(0.3)
    os.kill(parent.pid, way)
    parent.wait(20)
    parent.stdout.close()
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert alive == []
