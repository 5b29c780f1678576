"""What the steps on sets carry; the disassociated form travels as the JSON that is also published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from federated_anon.messages.envelope import Step
from federated_anon.messages.fields import Ints


@dataclass(frozen=True, slots=True)
class Gather:
    """Begins the work on sets: the common people as positions in the sorted pseudonyms; none if all people differ."""

    positions: Ints


@dataclass(frozen=True, slots=True)
class Gathered:
    """Whether this holder has k people at least; one that has not sends nothing more of them. People, or -1."""

    enough: bool
    people: int


@dataclass(frozen=True, slots=True)
class CountItems:
    """The splits of the round before: per open node its winner (-1: nobody), per holder its branches, signed."""

    round: int
    winners: Ints
    branches: tuple[bytes, ...]
    signatures: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ItemCounts:
    """Per open node: people with this holder's most frequent item that splits it; 0 if none does."""

    supports: Ints


@dataclass(frozen=True, slots=True)
class Branch:
    """The open nodes, by place, that this holder splits, and the support up to which each is its own to split."""

    round: int
    nodes: Ints
    bounds: Ints


@dataclass(frozen=True, slots=True)
class Branched:
    """Per record of the nodes won, in their order: 0 stays, others share the item of their branch. Signed."""

    branches: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class Disassociate:
    """Asks for the sets in chunks; there is one ``round``, 0."""

    round: int


@dataclass(frozen=True, slots=True)
class Sets:
    """The disassociated form, verified by its holder, and the item occurrences it stands for."""

    column: str
    form: bytes
    occurrences: int


REQUESTS: dict[Step, type[Any]] = {
    Step.GATHER: Gather,
    Step.COUNT: CountItems,
    Step.BRANCH: Branch,
    Step.DISASSOCIATE: Disassociate,
}

REPLIES: dict[Step, type[Any]] = {
    Step.GATHER: Gathered,
    Step.COUNT: ItemCounts,
    Step.BRANCH: Branched,
    Step.DISASSOCIATE: Sets,
}
