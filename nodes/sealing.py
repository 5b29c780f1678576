"""A holder's end of sealed exposure: proposals that never leave, gains that do, and bits for the groups it won."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from federated_anon.arrays import Labels
from federated_anon.crypto.agreement import derive
from federated_anon.crypto.pseudonyms import pseudonyms
from federated_anon.crypto.signing import Identity
from federated_anon.errors import Code, MessageRefused, PolicyRefused
from federated_anon.messages.payloads import Propose
from federated_anon.sealed import MapProposer, NestedPartition, Proposer, SplitRules, apply, laddered
from federated_anon.study import Study
from nodes.block import Block
from nodes.identity import spelled

PROPOSERS: dict[str, type[Proposer]] = {"directions": Proposer, "map": MapProposer}


@dataclass(frozen=True, slots=True)
class Sealing:
    """Where the splitting stands: the level whose gains were told last, and the groups at it."""

    proposer: Proposer
    rules: SplitRules
    partition: NestedPartition
    level: int


def seated(block: Block, rows: np.ndarray, identity: Identity, study: Study) -> Sealing:
    """Everyone in one group; ties between equal records are broken by numbers that only this holder can compute."""
    secret = derive(identity.secret, "sealed order", study.digest)
    private = pseudonyms(spelled(block.records.ids.take(pa.array(rows))), secret, bits=64)
    rules, scratch = SplitRules(study.privacy.k), block.records.scratch
    proposer = PROPOSERS[study.sealed.proposer](block.points, private, rules, scratch.empty if scratch.folder else None)
    return Sealing(proposer, rules, NestedPartition.whole(len(rows)), -1)


def advanced(current: Sealing, request: Propose) -> Sealing:
    """The groups after the splits of the level before; a repeated request for the same level changes nothing."""
    if request.round == current.level:
        return current
    if request.round != current.level + 1:
        raise MessageRefused(f"level {request.round} after level {current.level}", Code.OUT_OF_ORDER)
    if request.round == 0:
        return Sealing(current.proposer, current.rules, current.partition, 0)
    partition = apply(current.partition, request.winners, request.bits, current.rules)
    current.proposer.advance()
    return Sealing(current.proposer, current.rules, partition, request.round)


def require_agreed(groups: Labels, partition: NestedPartition) -> None:
    """Raise unless the groups are those agreed on, in their order: anything else would tell more than the splits."""
    if not np.array_equal(groups, laddered(partition)):
        raise PolicyRefused("these are not the groups that were agreed on", Code.SECOND_PARTITION)
