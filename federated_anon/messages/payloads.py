"""What each step carries, as frozen values; ``codec`` turns them into Arrow bytes and back.

Arrays are one-dimensional unless their name says matrix. A ``Table`` travels as Arrow inside Arrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from federated_anon.messages import averaged, relayed, set_payloads
from federated_anon.messages.envelope import Step
from federated_anon.messages.fields import Flags as Flags
from federated_anon.messages.fields import Floats as Floats
from federated_anon.messages.fields import IntMatrix as IntMatrix
from federated_anon.messages.fields import Ints as Ints
from federated_anon.messages.fields import Matrix as Matrix
from federated_anon.messages.fields import Octets as Octets
from federated_anon.messages.fields import Singles as Singles
from federated_anon.messages.fields import Table as Table
from federated_anon.messages.fields import Words as Words


@dataclass(frozen=True, slots=True)
class Enrol:
    """The study as canonical JSON; the holder checks it against its own policy."""

    study: str


@dataclass(frozen=True, slots=True)
class Enrolled:
    """A holder joins: its keys (signed), its columns (levels as JSON lists); ``rows`` is -1 unless its policy tells."""

    identity: bytes
    agreement: bytes
    signature: bytes
    names: tuple[str, ...]
    roles: tuple[str, ...]
    kinds: tuple[str, ...]
    levels: tuple[str, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class Share:
    """All holders' keys, relayed."""

    holders: tuple[str, ...]
    identities: tuple[bytes, ...]
    agreements: tuple[bytes, ...]
    signatures: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Shared:
    """From the first holder of the roster: the study's key, wrapped for each partner; empty from the others."""

    wrapped: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Align:
    """The wrapped key for this holder; empty for the first."""

    wrapped: bytes


@dataclass(frozen=True, slots=True)
class Aligned:
    """The set of pseudonyms, packed (``crypto.compact``); empty where blinded points align the records."""

    pseudonyms: bytes


@dataclass(frozen=True, slots=True)
class TrainMap:
    """The common people as positions in this holder's sorted pseudonyms, the grid, and the lead's units if any."""

    positions: Ints
    rows: int
    cols: int
    lead: Ints


@dataclass(frozen=True, slots=True)
class Mapped:
    """The map's activations (unit per record, no unit below k) and its Davies-Bouldin index."""

    units: Ints
    davies_bouldin: float


@dataclass(frozen=True, slots=True)
class Collaborate:
    """Partners' activations, one row each, with the strength of each link."""

    round: int
    strengths: Floats
    units: IntMatrix


@dataclass(frozen=True, slots=True)
class Candidate:
    """Davies-Bouldin of the map as it is and as it would become, and whether the holder's own loss allows it."""

    before: float
    after: float
    harmless: bool


@dataclass(frozen=True, slots=True)
class Settle:
    """The gate's verdict on the candidate; ``order`` renumbers the units (empty: as they are)."""

    round: int
    keep: bool
    order: Ints


@dataclass(frozen=True, slots=True)
class TellLabels:
    """Asks for the study's labels, as far as their owner's policy lets them go."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A class number per record; empty from everyone but the owner of the labels."""

    labels: Ints


@dataclass(frozen=True, slots=True)
class Refine:
    """The owner's labels, relayed, by which a holder refines its map."""

    labels: Ints


@dataclass(frozen=True, slots=True)
class Refit:
    """Unit per record of the refined map, no unit below k."""

    units: Ints


@dataclass(frozen=True, slots=True)
class MakeCode:
    """Asks for the code of this holder's block; ``codes`` are the encoded ``Coded`` of those before it."""

    codes: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Coded:
    """A holder's code: cell per record, cell means (>= k records each), and what partners' codes predict.

    With side information the means are of residuals; ``coefficients`` and ``strength`` rebuild the prediction
    (both empty without).
    """

    cells: Ints
    prototypes: Matrix
    coefficients: Matrix
    strength: Singles


@dataclass(frozen=True, slots=True)
class Correct:
    """Asks for a correction of this holder's code from all partners' codes, given in the order of coding."""

    codes: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Corrected:
    """Coefficients on partners' features and their strength per record; empty where it would not help."""

    coefficients: Matrix
    strength: Singles


@dataclass(frozen=True, slots=True)
class Seat:
    """Sealed: the common people as positions in this holder's sorted pseudonyms."""

    positions: Ints


@dataclass(frozen=True, slots=True)
class Seated:
    """Sealed: how many people take part, as this holder counts them."""

    records: int


@dataclass(frozen=True, slots=True)
class Propose:
    """Sealed: the splits of the level before (winner per open group, each holder's bits); none at the first level."""

    round: int
    winners: Ints
    bits: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Proposed:
    """Sealed: per open group, how far this holder's best split would lower the error of its own columns.

    Empty where a secure argmax finds the winners.
    """

    gains: Singles


@dataclass(frozen=True, slots=True)
class Split:
    """Sealed: the groups, by name, whose split this holder won."""

    round: int
    groups: Ints


@dataclass(frozen=True, slots=True)
class Sides:
    """Sealed: one bit per record of the groups won, packed: the only thing said of single records."""

    bits: bytes


@dataclass(frozen=True, slots=True)
class CheckGroups:
    """Group per record, counted from 0 so that neighbours in number may be joined; proposed once (``round`` is 0)."""

    round: int
    groups: Ints


@dataclass(frozen=True, slots=True)
class GroupVerdict:
    """Per group: how high it must stand on the ladder so that l and t of this holder's sensitive columns are kept.

    One above the top says that no height helps.
    """

    heights: Octets


@dataclass(frozen=True, slots=True)
class MakeRelease:
    """The final groups, and the columns wanted."""

    groups: Ints
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """Representatives, one row per group; sensitive and kept values, one row per record, shuffled inside groups."""

    representatives: Table
    values: Table
    veiled: int


@dataclass(frozen=True, slots=True)
class Evaluate:
    """Asks for what was lost on the holder's own columns."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Squared error and total squares per quasi-identifier, in the encoding of distances.

    Where the study asks for the total alone: the two sums over all own columns, masked, and nothing else. ``profile``
    is a ``Profile`` as JSON; empty where the holder's policy keeps it.
    """

    names: tuple[str, ...]
    squared_error: Floats
    total_squares: Floats
    masked: Words
    profile: str


@dataclass(frozen=True, slots=True)
class Close:
    """The digest of the whole release, for the holder to sign into its ledger."""

    release: bytes


@dataclass(frozen=True, slots=True)
class Closed:
    """The holder's ledger of this study."""

    ledger: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """A refusal: its code and nothing more."""

    code: str


REQUESTS: dict[Step, type[Any]] = {
    **set_payloads.REQUESTS,
    Step.ENROL: Enrol,
    Step.SHARE: Share,
    Step.ALIGN: Align,
    Step.BLIND: relayed.Blind,
    Step.TRACE: relayed.Trace,
    Step.MAP: TrainMap,
    Step.COLLABORATE: Collaborate,
    Step.SETTLE: Settle,
    Step.LABEL: TellLabels,
    Step.REFINE: Refine,
    Step.CODE: MakeCode,
    Step.CORRECT: Correct,
    Step.SEAT: Seat,
    Step.PROPOSE: Propose,
    Step.COMPARE: relayed.Compare,
    Step.SPLIT: Split,
    Step.AVERAGE: averaged.Average,
    Step.CONSULT: averaged.Consult,
    Step.ADOPT: averaged.Adopt,
    Step.CONSTRAIN: CheckGroups,
    Step.RELEASE: MakeRelease,
    Step.EVALUATE: Evaluate,
    Step.CLOSE: Close,
}

REPLIES: dict[Step, type[Any]] = {
    **set_payloads.REPLIES,
    Step.ENROL: Enrolled,
    Step.SHARE: Shared,
    Step.ALIGN: Aligned,
    Step.BLIND: relayed.Blinded,
    Step.TRACE: relayed.Traced,
    Step.MAP: Mapped,
    Step.COLLABORATE: Candidate,
    Step.SETTLE: Mapped,
    Step.LABEL: Labelled,
    Step.REFINE: Refit,
    Step.CODE: Coded,
    Step.CORRECT: Corrected,
    Step.SEAT: Seated,
    Step.PROPOSE: Proposed,
    Step.COMPARE: relayed.Compared,
    Step.SPLIT: Sides,
    Step.AVERAGE: averaged.Averaged,
    Step.CONSULT: Candidate,
    Step.ADOPT: averaged.Adopted,
    Step.CONSTRAIN: GroupVerdict,
    Step.RELEASE: Block,
    Step.EVALUATE: Evaluated,
    Step.CLOSE: Closed,
}
