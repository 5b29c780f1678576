"""A study from enrolment to the signed end, as a pure state machine: no Ray, no clock, no files.

``conduct`` is a generator: it yields what to ask, is sent the replies, and returns the outcome. The same study and
the same replies lead through the same steps, which is what makes a study resumable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coordinator.alignment import Overlap, matched
from coordinator.assembly import Release, Roster, assembled, roster_of
from coordinator.course import Ask, Course, everyone
from coordinator.grouping import grouped
from coordinator.intersection import blinded_lists, tagged, traced_positions
from coordinator.open import coded, mapped, refined
from coordinator.report import Facts, open_facts, report_of, sealed_facts
from coordinator.sealed import split_down
from coordinator.sets import SetOutcome, conduct_sets
from federated_anon.arrays import Labels
from federated_anon.errors import DataRefused, GuaranteeBroken, MessageRefused
from federated_anon.ladder import joined, order_by_place, top_rung
from federated_anon.messages import Step
from federated_anon.messages.payloads import Align, CheckGroups, Close, Enrol, Evaluate, MakeRelease, Share
from federated_anon.sealed import laddered
from federated_anon.som.validity import group_centres
from federated_anon.study import Study


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished study: the release, its report data, each holder's ledger, and the kept replies by file name."""

    release: Release
    report: dict[str, Any]
    ledgers: Mapping[str, tuple[str, ...]]
    transcript: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Proposal:
    """Groups that holders are about to check, in an order along which they may be joined; what the report tells."""

    groups: Labels
    facts: Callable[[Release, int], Facts]


def conduct(study: Study, secret: bytes) -> Course[Outcome | SetOutcome]:
    """A whole study, in the exposure that its holders agreed on; ``secret`` is the coordinator's own."""
    if study.kind == "set-valued":
        return (yield from conduct_sets(study, aligned))
    roster = yield from enrolled(study)
    overlap = yield from aligned(study, roster)
    is_sealed = study.exposure == "sealed"
    proposal = yield from sealed_proposal(study, overlap, secret) if is_sealed else open_proposal(study, overlap)
    groups, merges = yield from constrained(study, proposal)
    release = yield from released(study, roster, groups, secret)
    return (yield from closed(study, roster, release, proposal.facts(release, merges)))


def open_proposal(study: Study, overlap: Overlap) -> Course[Proposal]:
    """Groups formed by the coordinator from the holders' codes, numbered so that neighbours are close."""
    maps = yield from refined(study, (yield from mapped(study, overlap)))
    codes, corrections = yield from coded(study, maps)
    found = grouped(study, codes, corrections, maps.labels)

    def facts(release: Release, merges: int) -> Facts:
        return open_facts(study, maps, codes, found, release, merges)

    return Proposal(order_by_place(group_centres(found.points, found.labels))[found.labels], facts)


def sealed_proposal(study: Study, overlap: Overlap, secret: bytes) -> Course[Proposal]:
    """Groups formed by the holders' own splits, numbered along their tree."""
    splits = yield from split_down(study, overlap, secret)

    def facts(release: Release, merges: int) -> Facts:
        return sealed_facts(study, splits, release, merges)

    return Proposal(laddered(splits.partition), facts)


def enrolled(study: Study) -> Course[Roster]:
    """All holders accept the study; their keys and columns are known from here on."""
    replies = yield Ask(Step.ENROL, everyone(study, Enrol(study.text)))
    return roster_of(study, replies)


def aligned(study: Study, roster: Roster) -> Course[Overlap]:
    """Holders agree on a key that the coordinator relays but cannot read, and align their people under it."""
    relay = Share(study.holders, roster.identities, roster.agreements, roster.signatures)
    shared = yield Ask(Step.SHARE, everyone(study, relay))
    wrapped = shared[study.holders[0]].wrapped
    if len(wrapped) != len(study.holders):
        raise MessageRefused(f"'{study.holders[0]}' did not wrap the study's key for every holder")
    requests = {name: Align(key) for name, key in zip(study.holders, wrapped, strict=True)}
    replies = yield Ask(Step.ALIGN, requests)
    if study.alignment.method == "ecdh":
        lists = yield from blinded_lists(study)
        return (yield from traced_positions(study, lists, require_overlap(study, tagged(lists))))
    return require_overlap(study, matched({name: reply.pseudonyms for name, reply in replies.items()}))


def require_overlap(study: Study, overlap: Overlap) -> Overlap:
    """The overlap, or ``DataRefused`` if too few people are in it."""
    least = max(study.alignment.minimum_overlap, study.privacy.k)
    if overlap.records < least:
        raise DataRefused(
            f"the holders have {overlap.records} people in common, at least {least} are needed: are the ids "
            "spelled alike (case and spaces do not matter), and is k at most the number of people?"
        )
    return overlap


def constrained(study: Study, proposal: Proposal) -> Course[tuple[Labels, int]]:
    """Holders check size, l-diversity and t-closeness, and say once which groups to join; gives the groups joined."""
    request = CheckGroups(0, proposal.groups.astype(np.int32))
    replies = yield Ask(Step.CONSTRAIN, everyone(study, request))
    count = int(proposal.groups.max()) + 1
    for name, reply in replies.items():
        if len(reply.heights) != count:
            raise MessageRefused(f"'{name}' told {len(reply.heights)} heights of {count} groups")
    heights = np.max([reply.heights for reply in replies.values()], axis=0)
    if heights.max() > top_rung(count):
        raise GuaranteeBroken("l, t or a wish cannot be reached: the whole table as one group does not keep it")
    return joined(heights)[proposal.groups], int(heights.max())


def released(study: Study, roster: Roster, groups: Labels, secret: bytes) -> Course[Release]:
    """Representatives and shuffled values from every holder, assembled and verified."""
    requests = {name: MakeRelease(groups.astype(np.int32), roster.published(name)) for name in study.holders}
    blocks = yield Ask(Step.RELEASE, requests)
    return assembled(study, roster, groups, blocks, secret)


def closed(study: Study, roster: Roster, release: Release, facts: Facts) -> Course[Outcome]:
    """What was lost, as each holder measured it; then every holder signs the digest of release and report."""
    losses = yield Ask(Step.EVALUATE, everyone(study, Evaluate()))
    report = report_of(study, roster, release, facts, losses)
    endings = yield Ask(Step.CLOSE, everyone(study, Close(release.endorsement(report))))
    return Outcome(release, report, {name: reply.ledger for name, reply in endings.items()}, {})
