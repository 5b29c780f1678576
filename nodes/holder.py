"""``DataHolder.answer(request) -> reply``: one method per step; no Ray, and errors cross as codes only."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from federated_anon.columns import Role
from federated_anon.crypto.agreement import derive
from federated_anon.crypto.pseudonyms import shuffle_within
from federated_anon.encoding import group_loss
from federated_anon.errors import Code, FederatedAnonError, MessageRefused, PolicyRefused
from federated_anon.messages import Message, Step
from federated_anon.messages import payloads as p
from federated_anon.messages.relayed import Blind, Compare, Trace
from federated_anon.policy import require_columns, require_permitted, require_round
from federated_anon.som.parallel import single_blas_thread
from federated_anon.study import Study
from nodes.alignment import (
    People,
    Roster,
    checked_roster,
    common_rows,
    pseudonymised,
    unwrapped_key,
    wrapped_keys,
)
from nodes.averaging import AVERAGING, AveragingSteps
from nodes.block import Block, Records, lifted_groups, plain_types, read_records, require_kept
from nodes.comparison import Comparisons, Told, compared
from nodes.enrolment import enrolment
from nodes.guard import Answer, Guard, partition_digest, require_checked, require_groups
from nodes.intersection import Common, Passage, Ring, blinded, traced
from nodes.labels import refined, shared_labels
from nodes.memory import Checked, Proposal, Released, StudyKey
from nodes.noise import noised
from nodes.profiling import profiled
from nodes.sealing import Sealing, advanced, require_agreed, seated
from nodes.sets import SetsReleased, SetSteps, require_kind
from nodes.settings import HolderSettings
from nodes.totals import circle_of, masked_loss
from nodes.training import LocalCode, LocalMap, candidate, coded, corrected, opened_codes, renumbered, trained
from nodes.veil import Known, Veiled, veiled_representatives

log = logging.getLogger(__name__)
T = TypeVar("T")
SCALARS = 8
"""People per Davies-Bouldin value that leaves: as many values as people would be as many equations as unknowns."""


OPEN_STEPS = frozenset({Step.MAP, Step.COLLABORATE, Step.SETTLE, Step.LABEL, Step.REFINE, Step.CODE, Step.CORRECT})
RING_STEPS = frozenset({Step.BLIND, Step.TRACE})
SEALED_STEPS = frozenset({Step.SEAT, Step.PROPOSE, Step.COMPARE, Step.SPLIT}) | AVERAGING


class DataHolder:
    """One organisation's end of a study: the only object that sees its records."""

    def __init__(self, settings: HolderSettings) -> None:
        self._settings = settings
        self._guard = Guard(settings)
        self._memory: dict[type[Any], Any] = {}
        self._steps: dict[Step, Callable[[Any], Answer]] = {
            Step.SHARE: self._share,
            Step.ALIGN: self._align,
            Step.BLIND: self._blind,
            Step.TRACE: self._trace,
            Step.MAP: self._map,
            Step.COLLABORATE: self._collaborate,
            Step.SETTLE: self._settle,
            Step.LABEL: self._label,
            Step.REFINE: self._refine,
            Step.CODE: self._code,
            Step.CORRECT: self._correct,
            Step.SEAT: self._seat,
            Step.PROPOSE: self._propose,
            Step.COMPARE: self._compare,
            Step.SPLIT: self._split,
            Step.CONSTRAIN: self._constrain,
            Step.RELEASE: self._release,
            Step.EVALUATE: self._evaluate,
            Step.CLOSE: self._close,
            **AveragingSteps(settings, self._recall, self._remember).steps,
            **SetSteps(settings, self._guard, self._recall, self._remember, self._common_rows).steps,
        }

    def answer(self, request: bytes) -> bytes:
        """The whole boundary of a holder: bytes in, bytes out."""
        with self._guard.alone():
            return self._answered(request)

    def _answered(self, request: bytes) -> bytes:
        try:
            with single_blas_thread():
                return self._perform(self._guard.open(request))
        except FederatedAnonError as error:
            log.warning("step refused: %s", error)
            return self._guard.refuse(request, error)
        except Exception:
            log.exception("step failed")
            return self._guard.refuse(request, None)
        finally:
            self._settings.source.scratch.tidy()

    def refuse(self, error: FederatedAnonError) -> bytes:
        """A reply to something that never became a request, recorded like any other refusal."""
        with self._guard.alone():
            return self._guard.refuse(b"", error)

    def turn_away(self, code: Code) -> None:
        """Record somebody who never came in."""
        with self._guard.alone():
            self._guard.turn_away(code)

    def _perform(self, request: Message) -> bytes:
        if request.envelope.step is Step.ENROL:
            answer = self._enrol(request)
        else:
            require_kind(request.envelope.step, self._recall(Study))
            self._require_exposure(request.envelope.step)
            self._guard.require_unchanged(request)
            answer = self._steps[request.envelope.step](request.payload)
        return self._guard.release(request, answer)

    def _require_exposure(self, step: Step) -> None:
        """Steps of one exposure, or way of alignment, are not answered in a study of the other."""
        study = self._recall(Study)
        exposure = study.exposure
        if step in RING_STEPS and study.alignment.method != "ecdh":
            raise PolicyRefused(f"step '{step}' is not one of this alignment", Code.POLICY_METHOD)
        if step in (SEALED_STEPS if exposure == "open" else OPEN_STEPS):
            raise PolicyRefused(f"step '{step}' is not one of {exposure} exposure", Code.POLICY_EXPOSURE)

    def _recall(self, kind: type[T]) -> T:
        """What an earlier step left, or a refusal: the steps have an order."""
        if kind not in self._memory:
            raise MessageRefused(f"no {kind.__name__} yet: an earlier step is missing", Code.OUT_OF_ORDER)
        value: T = self._memory[kind]
        return value

    def _remember(self, value: Any) -> None:
        self._memory[type(value)] = value

    def _enrol(self, request: Message) -> Answer:
        """Check the study against the policy, read the data, and join with signed keys."""
        study = Study.from_text(request.payload.study)
        if study.digest != request.envelope.study:
            raise MessageRefused("the study is not the one its digest names", Code.OTHER_STUDY)
        if self._settings.name not in study.holders:
            raise PolicyRefused(f"'{self._settings.name}' is not a holder of this study", Code.ROSTER)
        columns = [c for c in self._settings.columns if c.name not in self._settings.policy.never_send]
        require_permitted(self._settings.policy, study, columns)
        records = read_records(self._settings)
        self._guard.begin(study.digest, records.version)
        self._guard.require_unchanged(request)
        self._guard.require_budget((study.release.epsilon, study.release.delta))
        self._memory = {}
        self._remember(study)
        self._remember(records)
        return Answer(enrolment(study, records, self._settings))

    def _share(self, request: p.Share) -> Answer:
        """Check the partners against the pinned identities; the first of the roster wraps the study's key."""
        study = self._recall(Study)
        roster = checked_roster(request, study, self._settings)
        self._remember(roster)
        return Answer(p.Shared(wrapped_keys(roster, study, self._settings)))

    def _align(self, request: p.Align) -> Answer:
        """The holders' key; and pseudonyms of all ids under it, sorted, unless blinded points align them."""
        key = unwrapped_key(request.wrapped, self._recall(Roster), self._recall(Study), self._settings)
        self._remember(StudyKey(key))
        if self._recall(Study).alignment.method == "ecdh":
            return Answer(p.Aligned(b""))
        people, sent = pseudonymised(self._recall(Records).ids, key)
        self._remember(people)
        return Answer(p.Aligned(sent))

    def _blind(self, request: Blind) -> Answer:
        """ECDH alignment, on the way out; it counts as a study of this data, since every run tests a partner's list."""
        self._guard.require_few_studies()
        before = self._recall(Passage) if request.round else Passage()
        ids, key = self._recall(Records).ids, self._recall(StudyKey).value
        reply, passage = blinded(request, ids, key, before, Ring(self._recall(Study), self._settings))
        self._remember(passage)
        return Answer(reply)

    def _trace(self, request: Trace) -> Answer:
        """ECDH alignment, on the way back; the last round tells this holder who of its people are common."""
        passage = self._recall(Passage)
        reply, common = traced(request, passage, Ring(self._recall(Study), self._settings))
        if common is not None:
            self._remember(People(passage.orders[0]))
            self._remember(common)
        return Answer(reply)

    def _common_rows(self, positions: np.ndarray) -> np.ndarray:
        """Table positions of the common people, as the way of alignment allows them."""
        study = self._recall(Study)
        known = self._recall(Common).positions if study.alignment.method == "ecdh" else None
        return common_rows(self._recall(People), positions, study, self._settings, known)

    def _map(self, request: p.TrainMap) -> Answer:
        """Train the local map on the common people."""
        study = self._recall(Study)
        rows = self._common_rows(request.positions)
        block = Block.of(self._recall(Records), rows)
        self._guard.require_few_studies()
        found = trained(block.points, request, study, self._settings.name)
        self._remember(block)
        self._remember(found)
        return Answer(p.Mapped(found.units.astype(np.int32), found.davies_bouldin))

    def _collaborate(self, request: p.Collaborate) -> Answer:
        """Try the map against the partners' activations; the candidate waits for the gate."""
        study, block, current = self._recall(Study), self._recall(Block), self._recall(LocalMap)
        require_round(self._settings.policy, study, request.round)
        proposal = candidate(block.points, current, request, study)
        if (request.round + 2) * SCALARS > len(block.points):  # Too few people for one more number about all of them.
            self._remember(Proposal(request.round, current))
            return Answer(p.Candidate(current.davies_bouldin, float("inf"), False))
        self._remember(Proposal(request.round, proposal))
        harmless = proposal.spread <= current.spread
        return Answer(p.Candidate(current.davies_bouldin, proposal.davies_bouldin, harmless))

    def _settle(self, request: p.Settle) -> Answer:
        """Keep or drop the candidate, or renumber the units to match a partner's."""
        current = self._recall(LocalMap)
        if request.keep or request.round != -1:
            require_round(self._settings.policy, self._recall(Study), request.round)
        if request.keep:
            proposal = self._recall(Proposal)
            if proposal.round != request.round:
                raise MessageRefused("there is no candidate of that round", Code.OUT_OF_ORDER)
            current = proposal.map
        if len(request.order):
            current = renumbered(current, request.order)
        self._remember(current)
        return Answer(p.Mapped(current.units.astype(np.int32), current.davies_bouldin))

    def _label(self, request: p.TellLabels) -> Answer:
        """The labels as the study shares them, if they are this holder's."""
        return Answer(p.Labelled(shared_labels(self._recall(Block), self._recall(LocalMap).units, self._recall(Study))))

    def _refine(self, request: p.Refine) -> Answer:
        """Refine the map by the labels."""
        block, study = self._recall(Block), self._recall(Study)
        found = refined(block.points, self._recall(LocalMap), request.labels, study, self._settings.name)
        self._remember(found)
        return Answer(p.Refit(found.units.astype(np.int32)))

    def _code(self, request: p.MakeCode) -> Answer:
        """Cells of at least k records and their means; once per version of the data."""
        study, block = self._recall(Study), self._recall(Block)
        partners = opened_codes(request.codes, len(block.points), study.privacy.k)
        if len(partners) not in (0, study.holders.index(self._settings.name)):
            raise MessageRefused("a code needs the codes of the holders before, or none")
        code = coded(block.points, self._recall(LocalMap), partners, study, self._settings.name)
        require_groups(code.payload.cells, len(block.points), study.privacy.k)
        digest = partition_digest(code.payload.cells, block.places, block.rows)
        self._guard.require_first("cells", digest)
        self._remember(code)
        return Answer(code.payload, cells=digest)

    def _correct(self, request: p.Correct) -> Answer:
        """What the partners' codes say about the own code's error, damped so that no record speaks for itself."""
        study, block, code = self._recall(Study), self._recall(Block), self._recall(LocalCode)
        place = study.holders.index(self._settings.name)
        codes = opened_codes(request.codes, len(block.points), study.privacy.k)
        if len(codes) != len(study.holders):
            raise MessageRefused("a correction needs the codes of all holders")
        whole, correction = corrected(block.points, code, codes, place)
        self._remember(whole)
        return Answer(correction)

    def _seat(self, request: p.Seat) -> Answer:
        """Sealed: the common people take their seats in one group."""
        study, records = self._recall(Study), self._recall(Records)
        rows = self._common_rows(request.positions)
        self._guard.require_few_studies()
        block = Block.of(records, rows)
        self._remember(block)
        identity = self._settings.identity
        self._remember(seated(block, rows, identity, study))
        return Answer(p.Seated(len(rows)))

    def _propose(self, request: p.Propose) -> Answer:
        """Sealed: apply the splits of the level before, and tell one number per group that can be split."""
        current = advanced(self._recall(Sealing), request)
        self._remember(current)
        gains = current.proposer.gains(current.partition).values
        if self._recall(Study).collaboration.winner == "gain":
            return Answer(p.Proposed(gains))
        self._remember(Told(current.level, gains))
        return Answer(p.Proposed(gains[:0]))

    def _compare(self, request: Compare) -> Answer:
        """Sealed: one round of the secure argmax; its masks serve one answer only, whatever the data."""
        study, key = self._recall(Study), self._recall(StudyKey).value
        if study.collaboration.winner != "secure":
            raise PolicyRefused("gains are told in this study, not compared", Code.POLICY_METHOD)
        circle = circle_of(self._recall(Roster), study, self._settings)
        past = self._memory.get(Comparisons, Comparisons())
        reply, rounds = compared(request, self._recall(Told), past, circle, key)
        self._remember(rounds)
        return Answer(reply, once=True)

    def _split(self, request: p.Split) -> Answer:
        """Sealed: the sides of the groups that this holder won; one study per version of the data."""
        current = self._recall(Sealing)
        if request.round != current.level:
            raise MessageRefused(f"level {request.round}, gains were told of {current.level}", Code.OUT_OF_ORDER)
        digest = hashlib.sha256(f"sealed {self._recall(Study).digest}".encode()).hexdigest()
        self._guard.require_first("cells", digest)
        return Answer(p.Sides(current.proposer.bits(request.groups)), cells=digest)

    def _constrain(self, request: p.CheckGroups) -> Answer:
        """Check sizes as counted here, and tell once which groups must be joined for the sensitive columns."""
        study, block = self._recall(Study), self._recall(Block)
        if request.round != 0:
            raise PolicyRefused(f"proposal {request.round}: groups are checked once", Code.POLICY_ROUNDS)
        require_groups(request.groups, len(block.points), study.privacy.k)
        if study.exposure == "sealed":
            require_agreed(request.groups, self._recall(Sealing).partition)
        lifted = lifted_groups(block, request.groups, study.privacy)
        self._remember(Checked(lifted.groups))
        return Answer(p.GroupVerdict(lifted.heights))

    def _release(self, request: p.MakeRelease) -> Answer:
        """Representatives and shuffled values of the final groups; one partition per version of the data."""
        study, block = self._recall(Study), self._recall(Block)
        published = block.records.published
        require_columns(self._settings.policy, request.columns, [column.name for column in published])
        require_groups(request.groups, len(block.points), study.privacy.k)
        require_checked(self._recall(Checked).groups, request.groups)
        require_kept(block, request.groups, study.privacy)
        digest = partition_digest(request.groups, block.places, block.rows)
        self._guard.require_first("partition", digest)
        wanted = [column for column in published if column.name in request.columns]
        quasi = [column for column in wanted if column.role is Role.QUASI]
        veil = veiled_representatives(block.table, quasi, request.groups, self._known(), self._settings.identity)
        spent = study.release.epsilon, study.release.delta
        if study.release.noise != "none":
            self._guard.require_budget(spent)
            secret = derive(self._settings.identity.secret, "noise", study.digest, block.records.version, digest)
            veil = Veiled(noised(block.table, quasi, request.groups, study.release, secret), 0)
        order = shuffle_within(request.groups, self._shuffle_key())
        others = [column.name for column in wanted if column.role is not Role.QUASI]
        self._remember(Released(veil.table, request.groups))
        values = plain_types(block.table.select(others).take(order))
        return Answer(p.Block(plain_types(veil.table), values, veil.groups), partition=digest, spent=spent)

    def _known(self) -> Known:
        """What has left before the release; in sealed exposure nothing that the groups do not tell themselves."""
        if self._recall(Study).exposure == "sealed":
            return Known(np.zeros(len(self._recall(Block).points), dtype=np.int64))
        code = self._recall(LocalCode)
        return Known(code.code.cells, code.features)

    def _shuffle_key(self) -> bytes:
        """The holders' key, so that columns of different holders stay related; or one no partner can undo."""
        if self._settings.policy.own_shuffle:
            return derive(self._settings.identity.secret, "own shuffle", self._recall(Study).digest)
        return self._recall(StudyKey).value

    def _evaluate(self, request: p.Evaluate) -> Answer:
        """What the release lost on the own quasi-identifiers."""
        block = self._recall(Block)
        released = self._recall(Released)
        losses = group_loss(block.encoding, block.table, released.representatives, released.groups)
        if (study := self._recall(Study)).evaluation.losses == "total":
            return masked_loss(losses, circle_of(self._recall(Roster), study, self._settings))
        told = profiled(block, released, self._memory.get(LocalMap), study, self._settings)
        return Answer(
            p.Evaluated(
                tuple(loss.name for loss in losses),
                np.array([loss.sse for loss in losses]),
                np.array([loss.sst for loss in losses]),
                np.zeros(0, dtype=np.uint64),
                told.text,
            ),
            note=told.note,
        )

    def _close(self, request: p.Close) -> Answer:
        """Sign the digest of the release into the ledger, and hand out the ledger of this study."""
        self._recall(SetsReleased if self._recall(Study).kind == "set-valued" else Released)
        if len(request.release) != 32:
            raise MessageRefused("a release is named by 32 bytes")
        self._guard.endorse(request.release)
        return Answer(p.Closed(tuple(self._guard.ledger_lines())))
