"""The holder's steps of ECDH alignment: a ring in which every holder raises everybody's points with its own secret.

On the way out each list passes all holders, and each sends it on sorted by the points it has become, so that nobody can
follow a point past an honest holder. On the way back the positions of the common people pass the same holders in
the other direction, and each undoes its own sorting. Every hand-over is signed by its maker, so the coordinator
can neither add points nor ask for positions of its choice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from federated_anon.crypto.agreement import derive
from federated_anon.crypto.compact import packed, unpacked
from federated_anon.crypto.matching import common_positions
from federated_anon.crypto.points import Curve, hashed_points, raised_points, require_points, sort_order
from federated_anon.crypto.pseudonyms import sorted_set
from federated_anon.crypto.signing import require_signature
from federated_anon.errors import Code, MessageRefused, VerificationFailed
from federated_anon.messages.relayed import Blind, Blinded, Trace, Traced
from federated_anon.study import Study
from nodes.alignment import require_overlap
from nodes.settings import HolderSettings

TAG_BYTES = 8
NONE = np.zeros(0, dtype=np.int32)


@dataclass(frozen=True, slots=True)
class Passage:
    """What this holder did so far: per round how it sorted a list, and how many people each list has."""

    orders: Mapping[int, np.ndarray] = field(default_factory=dict)
    counts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Common:
    """Positions of the common people in the own list, as the partners traced them."""

    positions: np.ndarray


@dataclass(frozen=True, slots=True)
class Ring:
    """The roster as a ring, seen from one holder: in round r it has in hand the list of the holder r places before."""

    study: Study
    settings: HolderSettings

    @property
    def size(self) -> int:
        """How many holders there are, and how many rounds."""
        return len(self.study.holders)

    def neighbour(self, steps: int) -> str:
        """The holder so many places on."""
        return self.study.holders[(self.study.holders.index(self.settings.name) + steps) % self.size]

    def sign(self, way: str, owner: str, number: int, content: bytes) -> bytes:
        """This holder's signature under what it hands over."""
        return self.settings.identity.sign(handed(self.study.digest, way, owner, number, content))

    def require(self, signature: bytes, by: str, way: str, owner: str, number: int, content: bytes) -> None:
        """Raise unless ``by``, as pinned, handed over exactly this."""
        known = {self.settings.name: self.settings.identity.public, **self.settings.partners}
        try:
            require_signature(known[by], signature, handed(self.study.digest, way, owner, number, content), by)
        except VerificationFailed:
            raise MessageRefused(f"this is not what '{by}' handed over", Code.POINTS) from None


def handed(study: str, way: str, owner: str, number: int, content: bytes) -> bytes:
    """What is signed: which list, which way, after which round, and its digest."""
    head = f"federated-anon ring 1\x1f{study}\x1f{way}\x1f{owner}\x1f{number}\x1f"
    return head.encode() + hashlib.sha256(content).digest()


def blinded(request: Blind, ids: pa.Array, key: bytes, before: Passage, ring: Ring) -> tuple[Blinded, Passage]:
    """The own list (round 0) or the one that came, raised with this holder's secret, sorted and signed."""
    number, owner = request.round, ring.neighbour(-request.round)
    if not 0 <= number < ring.size or (number and number - 1 not in before.orders):
        raise MessageRefused(f"round {number} of the ring is not the next one", Code.OUT_OF_ORDER)
    counts = tuple(int(count) for count in request.counts)
    if number:
        require_counts(counts, before, ring, len(ids))
        ring.require(request.signature, ring.neighbour(-1), "blind", owner, number - 1, request.points)
        points = require_points(request.points, counts[ring.study.holders.index(owner)])
    else:
        points = hashed_points(ids.to_pylist(), key)
    raised = raised_points(points, derive(ring.settings.identity.secret, "ring", ring.study.digest))
    order, content = _tagged(raised) if number == ring.size - 1 else _sorted(raised)
    orders = {**before.orders, number: order.astype(np.int32)}
    return Blinded(content, ring.sign("blind", owner, number, content)), Passage(orders, counts)


def require_counts(counts: tuple[int, ...], before: Passage, ring: Ring, own: int) -> None:
    """Raise unless every list keeps the number of people it was declared with, the own one included."""
    mine = ring.study.holders.index(ring.settings.name)
    if len(counts) != ring.size or min(counts) < 1 or counts[mine] != own:
        raise MessageRefused("the numbers of people do not fit the roster or the own list", Code.POINTS)
    if before.counts and before.counts != counts:
        raise MessageRefused("a list has more or fewer people than before", Code.POINTS)


def _sorted(points: Curve) -> tuple[np.ndarray, bytes]:
    order = sort_order(points)
    return order, points[order].tobytes()


def _tagged(points: Curve) -> tuple[np.ndarray, bytes]:
    """The last holder's hand-over: equality is all that is asked of the points, so 8 bytes of their hash will do."""
    content = points.tobytes()
    digests = (hashlib.sha256(content[i : i + 32]).digest()[:TAG_BYTES] for i in range(0, len(content), 32))
    order, tags = sorted_set(np.frombuffer(b"".join(digests), dtype=">u8").astype(np.uint64))
    return order, packed(tags)


def traced(request: Trace, before: Passage, ring: Ring) -> tuple[Traced, Common | None]:
    """The positions of the common people before this holder sorted them; in the last round they are its own."""
    number, back = request.round, ring.size - 1 - request.round
    if ring.size - 1 not in before.orders or back not in before.orders:
        raise MessageRefused("the ring is not closed, or has no such round", Code.OUT_OF_ORDER)
    owner, order = ring.neighbour(-back), before.orders[back]
    positions = _positions(request, before, ring, owner)
    require_overlap(len(positions), ring.study, ring.settings)
    if positions.min() < 0 or positions.max() >= len(order) or len(np.unique(positions)) != len(positions):
        raise MessageRefused("positions outside the list, or one twice", Code.POINTS)
    if back == 0:
        return Traced(NONE, b""), Common(positions)
    found = order[positions]
    return Traced(found, ring.sign("trace", owner, number, _bytes(found))), None


def _positions(request: Trace, before: Passage, ring: Ring, owner: str) -> np.ndarray:
    if request.round:
        content = _bytes(request.positions)
        ring.require(request.signature, ring.neighbour(1), "trace", owner, request.round - 1, content)
        return request.positions
    return common_positions(_checked_tags(request, before, ring))[owner]


def _checked_tags(request: Trace, before: Passage, ring: Ring) -> dict[str, np.ndarray]:
    """Every list as the last holder of its way signed it, with as many people as were declared."""
    holders = ring.study.holders
    if len(request.tags) != ring.size or len(request.signatures) != ring.size:
        raise MessageRefused("the tags of some holders are missing", Code.POINTS)
    for place, (owner, content, signature) in enumerate(zip(holders, request.tags, request.signatures, strict=True)):
        ring.require(signature, holders[place - 1], "blind", owner, ring.size - 1, content)
    tags = {owner: unpacked(content) for owner, content in zip(holders, request.tags, strict=True)}
    if tuple(map(len, tags.values())) != before.counts:
        raise MessageRefused("a list has more or fewer people than were declared", Code.POINTS)
    return tags


def _bytes(positions: np.ndarray) -> bytes:
    return np.ascontiguousarray(positions, dtype="<i4").tobytes()
