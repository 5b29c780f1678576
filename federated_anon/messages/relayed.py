"""What holders say to each other through the coordinator, who passes it on and can neither read nor change it."""

from __future__ import annotations

from dataclasses import dataclass

from federated_anon.messages.fields import Ints


@dataclass(frozen=True, slots=True)
class Blind:
    """ECDH alignment, on the way out: the list of points that the holder before in the ring made, as it signed it.

    Round 0 asks for the own list, and carries nothing; from round 1 on ``counts`` are the people of every list.
    """

    round: int
    counts: Ints
    points: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class Blinded:
    """The list raised with this holder's secret, sorted and signed; in the last round packed tags of the points."""

    points: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class Trace:
    """ECDH alignment, on the way back: positions of the common people as the next holder in the ring signed them.

    Round 0 carries all holders' tags with the signatures of those who made them instead.
    """

    round: int
    tags: tuple[bytes, ...]
    signatures: tuple[bytes, ...]
    positions: Ints
    signature: bytes


@dataclass(frozen=True, slots=True)
class Traced:
    """Positions of the common people in the list as this holder received it, signed; none in the last round."""

    positions: Ints
    signature: bytes


@dataclass(frozen=True, slots=True)
class Compare:
    """Secure argmax: triples for the next layer of gates, and the sealed messages of all holders about the last one."""

    round: int
    seed: bytes
    correction: bytes
    partners: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """A message that only holders can open; in the last round of a level, the share of who wins each open group."""

    groups: int
    content: bytes
