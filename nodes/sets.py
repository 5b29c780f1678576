"""The holder's steps on sets: only finished clusters leave, and only after the independent verifier has passed them."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from federated_anon.crypto.signing import require_signature
from federated_anon.errors import Code, DataRefused, MessageRefused, PolicyRefused, VerificationFailed
from federated_anon.messages import Step
from federated_anon.messages import set_payloads as p
from federated_anon.setvalued import Disassociated, Transactions, disassociate, disassociated, require_disassociated
from federated_anon.setvalued.formats import from_lists
from federated_anon.setvalued.nested import NOBODY, SetTree, best_supports, branches_of
from federated_anon.setvalued.parties import branch_statement, empty_form, without_unused
from federated_anon.setvalued.schema import to_json
from federated_anon.study import SetSettings, Study
from nodes.block import Records
from nodes.guard import Answer, Guard
from nodes.settings import HolderSettings

log = logging.getLogger(__name__)
SET_STEPS = frozenset({Step.GATHER, Step.COUNT, Step.BRANCH, Step.DISASSOCIATE})
SHARED_STEPS = frozenset({Step.ENROL, Step.SHARE, Step.ALIGN, Step.BLIND, Step.TRACE, Step.CLOSE})


@dataclass(frozen=True, slots=True)
class Sets:
    """The sets of the people that take part, in their common order if there is one."""

    transactions: Transactions


@dataclass(frozen=True, slots=True)
class Growing:
    """Where the joint tree stands: the round whose counts were told last."""

    tree: SetTree
    round: int


@dataclass(frozen=True, slots=True)
class SetsReleased:
    """The form that left."""

    form: Disassociated


def require_kind(step: Step, study: Study) -> None:
    """Raise unless the step belongs to the study's kind."""
    is_set = study.kind == "set-valued"
    fits = step in SET_STEPS | SHARED_STEPS if is_set else step not in SET_STEPS
    if not fits:
        raise PolicyRefused(f"step '{step}' is not one of a {study.kind} study", Code.POLICY_EXPOSURE)


def sets_of(records: Records, column: str) -> Transactions:
    """A set-valued column as transactions; a missing set is an empty one."""
    lists = records.sets[column].combine_chunks()
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    values = pc.list_flatten(lists).cast(pa.string())
    if values.null_count:
        raise DataRefused(f"column '{column}': {values.null_count} items inside sets are missing")
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return from_lists(pa.ListArray.from_arrays(pa.array(offsets), values))


class SetSteps:
    """One method per step on sets; what an earlier step left is recalled from the holder's memory."""

    def __init__(
        self,
        settings: HolderSettings,
        guard: Guard,
        recall: Callable[[type[Any]], Any],
        remember: Callable[[Any], None],
        common_rows: Callable[[np.ndarray], np.ndarray],
    ) -> None:
        self._settings, self._guard = settings, guard
        self._recall, self._remember, self._common_rows = recall, remember, common_rows
        self.steps: dict[Step, Callable[[Any], Answer]] = {
            Step.GATHER: self._gather,
            Step.COUNT: self._count,
            Step.BRANCH: self._branch,
            Step.DISASSOCIATE: self._disassociate,
        }

    def _asked(self) -> tuple[Study, SetSettings]:
        study: Study = self._recall(Study)
        if study.sets is None:
            raise PolicyRefused("the study does not say how sets leave", Code.POLICY_ROLE)
        return study, study.sets

    def _gather(self, request: p.Gather) -> Answer:
        """The people that take part: all, or those whom every holder has, in the common order."""
        study, asked = self._asked()
        records: Records = self._recall(Records)
        transactions = sets_of(records, records.sets.column_names[0])
        if asked.split == "items":
            rows = self._common_rows(request.positions)
            transactions = transactions.select(rows)
            self._remember(Growing(SetTree.whole(len(rows), study.privacy.k, asked.delta), -1))
        elif len(request.positions):
            raise MessageRefused("people of one holder each have no positions")
        self._guard.require_few_studies()
        self._remember(Sets(transactions))
        enough = len(transactions) >= study.privacy.k
        if not enough:
            log.warning("%d people, k is %d: none of them can leave", len(transactions), study.privacy.k)
        tells = asked.split == "items" or (self._settings.policy.tell_rows and enough)
        return Answer(p.Gathered(enough, len(transactions) if tells else -1))

    def _count(self, request: p.CountItems) -> Answer:
        """Apply the signed splits of the round before, and tell one number per node that is still open."""
        current = self._advanced(self._recall(Growing), request)
        self._remember(current)
        return Answer(p.ItemCounts(best_supports(self._recall(Sets).transactions, current.tree)))

    def _advanced(self, current: Growing, request: p.CountItems) -> Growing:
        if request.round == current.round:
            return current
        if request.round != current.round + 1:
            raise MessageRefused(f"round {request.round} after round {current.round}", Code.OUT_OF_ORDER)
        if request.round == 0:
            return Growing(current.tree, 0)
        holders = self._recall(Study).holders
        if len(request.branches) != len(holders) or len(request.signatures) != len(holders):
            raise MessageRefused("branches and signatures of every holder are needed, empty where it won nothing")
        if any(winner != NOBODY and not 0 <= winner < len(holders) for winner in request.winners.tolist()):
            raise MessageRefused("a winner that is no holder")
        self._require_signed(request)
        told = {place: np.frombuffer(part, np.uint8) for place, part in enumerate(request.branches) if part}
        return Growing(current.tree.split(request.winners.tolist(), told), request.round)

    def _require_signed(self, request: p.CountItems) -> None:
        """Splits are their winners' own: a coordinator that makes some up could put people together as it likes."""
        study: Study = self._recall(Study)
        for name, part, signature in zip(study.holders, request.branches, request.signatures, strict=True):
            if part:
                own = name == self._settings.name
                public = self._settings.identity.public if own else self._settings.partners.get(name, b"")
                statement = branch_statement(study.digest, name, request.round - 1, part)
                try:
                    require_signature(public, signature, statement, f"branches of '{name}'")
                except VerificationFailed as error:
                    raise PolicyRefused(str(error), Code.ROSTER) from None

    def _branch(self, request: p.Branch) -> Answer:
        """Who has the items that split the nodes won; this is what the owner's policy allows by a joint tree."""
        current: Growing = self._recall(Growing)
        study, _ = self._asked()
        if request.round != current.round:
            raise MessageRefused(f"round {request.round}, counts were told of {current.round}", Code.OUT_OF_ORDER)
        opened, nodes = set(current.tree.open_nodes), request.nodes.tolist()
        if nodes != sorted(set(nodes)) or not opened.issuperset(nodes) or len(nodes) != len(request.bounds):
            raise MessageRefused("nodes that are not open, or not in order")
        members, transactions = current.tree.members(nodes), self._recall(Sets).transactions
        parts = [
            branches_of(transactions, current.tree, members[node], bound)
            for node, bound in zip(nodes, request.bounds.tolist(), strict=True)
        ]
        told = np.concatenate([np.zeros(0, dtype=np.uint8), *parts]).tobytes()
        statement = branch_statement(study.digest, self._settings.name, request.round, told)
        return Answer(p.Branched(told, self._settings.identity.sign(statement)))

    def _disassociate(self, request: p.Disassociate) -> Answer:
        """Chunks of the own items in finished clusters; one form per version of the data."""
        study, asked = self._asked()
        if request.round != 0:
            raise MessageRefused("a set-valued study has one column of sets here")
        transactions = self._recall(Sets).transactions
        form = without_unused(self._formed(transactions, study, asked))
        require_disassociated(form)
        content = to_json(form)
        digest = hashlib.sha256(content).hexdigest()
        self._guard.require_first("partition", digest)
        self._remember(SetsReleased(form))
        column = self._recall(Records).sets.column_names[0]
        return Answer(p.Sets(column, content, len(transactions.items)), partition=digest)

    def _formed(self, transactions: Transactions, study: Study, asked: SetSettings) -> Disassociated:
        k, least = study.privacy.k, asked.least(study.privacy.k)
        if asked.split == "people":
            if len(transactions) < k:
                return empty_form(k, asked.m)
            return disassociate(transactions, k, asked.m, asked.delta, least)
        tree = self._recall(Growing).tree
        if tree.open_nodes:
            raise MessageRefused("nodes are still open", Code.OUT_OF_ORDER)
        return disassociated(transactions, tree.clusters(least), k, asked.m)
