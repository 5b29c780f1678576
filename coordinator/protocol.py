"""The steps of a study and their order, as a pure state machine: no Ray, no clock, no files.

``conduct`` is a generator: it yields what to ask, is sent the replies, and returns the outcome. The same study and
the same replies lead through the same steps, which is what makes a study resumable.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from coordinator.alignment import Overlap, matched
from coordinator.assembly import Release, Roster, assembled, roster_of
from coordinator.gate import Judgement, judge
from coordinator.grouping import Grouped, grouped, merged
from coordinator.report import Facts, report_of
from federated_anon.arrays import Labels
from federated_anon.errors import DataRefused, GuaranteeBroken, MessageRefused
from federated_anon.messages import Step
from federated_anon.messages.codec import encode_payload
from federated_anon.messages.payloads import (
    Align,
    CheckGroups,
    Close,
    Coded,
    Collaborate,
    Correct,
    Corrected,
    Enrol,
    Evaluate,
    MakeCode,
    MakeRelease,
    Mapped,
    Settle,
    Share,
    TrainMap,
)
from federated_anon.som import Grid, link_strength, match_units
from federated_anon.study import Study

NONE = np.zeros(0, dtype=np.int32)
MOST_MERGES = 20


@dataclass(frozen=True, slots=True)
class Ask:
    """One step: a request per holder concerned, and what is new since the last one, for people to read."""

    step: Step
    requests: Mapping[str, Any]
    news: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished study: the release, its report data, and each holder's ledger."""

    release: Release
    report: dict[str, Any]
    ledgers: Mapping[str, tuple[str, ...]]


T = TypeVar("T")
Course = Generator[Ask, Mapping[str, Any], T]


@dataclass(frozen=True, slots=True)
class Maps:
    """All holders' activations and validity, and how they came to be."""

    grid: Grid
    units: Mapping[str, Labels]
    validity: Mapping[str, float]
    judgements: tuple[Judgement, ...] = field(default=())


def conduct(study: Study) -> Course[Outcome]:
    """A whole study in open exposure, from enrolment to the signed end."""
    roster = yield from enrolled(study)
    overlap = yield from aligned(study, roster)
    maps = yield from trained(study, overlap)
    for number in range(study.rounds if len(study.holders) > 1 else 0):
        maps, kept = yield from collaborated(study, maps, number)
        if not kept:
            break
    codes, corrections = yield from coded(study, maps)
    proposal = grouped(study, codes, corrections)
    groups, merges = yield from constrained(study, proposal)
    release = yield from released(study, roster, groups)
    return (yield from closed(study, roster, release, Facts(overlap.records, maps, codes, proposal, merges)))


def everyone(study: Study, payload: Any) -> dict[str, Any]:
    """The same request for all holders."""
    return dict.fromkeys(study.holders, payload)


def enrolled(study: Study) -> Course[Roster]:
    """All holders accept the study; their keys and columns are known from here on."""
    replies = yield Ask(Step.ENROL, everyone(study, Enrol(study.text)))
    return roster_of(study, replies)


def aligned(study: Study, roster: Roster) -> Course[Overlap]:
    """Holders agree on a key that the coordinator relays but cannot read, and send pseudonyms under it."""
    relay = Share(study.holders, roster.identities, roster.agreements, roster.signatures)
    shared = yield Ask(Step.SHARE, everyone(study, relay))
    wrapped = shared[study.holders[0]].wrapped
    if len(wrapped) != len(study.holders):
        raise MessageRefused(f"'{study.holders[0]}' did not wrap the study's key for every holder")
    requests = {name: Align(key) for name, key in zip(study.holders, wrapped, strict=True)}
    replies = yield Ask(Step.ALIGN, requests)
    overlap = matched({name: reply.pseudonyms for name, reply in replies.items()})
    least = max(study.alignment.minimum_overlap, study.privacy.k)
    if overlap.records < least:
        raise DataRefused(
            f"the holders have {overlap.records} people in common, at least {least} are needed: are the ids "
            "spelled alike (case and spaces do not matter), and is k at most the number of people?"
        )
    return overlap


def trained(study: Study, overlap: Overlap) -> Course[Maps]:
    """Local maps on the common grid, aligned as the study says."""
    grid = grid_of(study, overlap.records)
    lead, rest = study.holders[0], study.holders[1:]

    def request(name: str, units: Labels) -> TrainMap:
        return TrainMap(overlap.positions[name], grid.rows, grid.cols, units)

    if study.collaboration.align != "lead" or not rest:
        replies = dict((yield Ask(Step.MAP, {name: request(name, NONE) for name in study.holders})))
    else:
        replies = dict((yield Ask(Step.MAP, {lead: request(lead, NONE)})))
        replies |= yield Ask(Step.MAP, {name: request(name, replies[lead].units) for name in rest})
    maps = maps_of(study, grid, replies, overlap.records)
    if study.collaboration.align == "match" and rest and study.rounds:
        maps = yield from matched_maps(study, maps)
    return maps


def grid_of(study: Study, records: int) -> Grid:
    """The study's own grid, or one that fits the number of records."""
    if study.map.rows is not None and study.map.cols is not None:
        return Grid(study.map.rows, study.map.cols)
    return Grid.for_records(records, study.map.scale)


def maps_of(study: Study, grid: Grid, replies: Mapping[str, Mapped], records: int) -> Maps:
    """The replies as maps, after a look at their shape."""
    for name, reply in replies.items():
        if len(reply.units) != records or reply.units.min() < 0 or reply.units.max() >= grid.units:
            raise MessageRefused(f"the activations of '{name}' do not fit the grid and the records")
    ordered = {name: replies[name] for name in study.holders}
    return Maps(
        grid,
        {name: reply.units for name, reply in ordered.items()},
        {name: reply.davies_bouldin for name, reply in ordered.items()},
    )


def matched_maps(study: Study, maps: Maps) -> Course[Maps]:
    """Renumber every map's units so that they agree best with the first holder's."""
    lead, rest = study.holders[0], study.holders[1:]
    orders = {name: match_units(maps.units[lead], maps.units[name], maps.grid) for name in rest}
    replies = yield Ask(Step.SETTLE, {name: Settle(-1, False, order) for name, order in orders.items()})
    units = {**maps.units, **{name: reply.units for name, reply in replies.items()}}
    return Maps(maps.grid, units, maps.validity)


def collaborated(study: Study, maps: Maps, number: int) -> Course[tuple[Maps, bool]]:
    """One round: every holder tries a candidate map against its partners' activations; the gate keeps or reverts."""
    links = {name: strengths(study, maps, name) for name in study.holders}
    candidates = yield Ask(
        Step.COLLABORATE,
        {
            name: Collaborate(number, links[name], np.stack([maps.units[p] for p in partners(study, name)]))
            for name in study.holders
        },
        news=tuple(f"{name}: Davies-Bouldin {value:.3f}" for name, value in maps.validity.items()),
    )
    verdicts = tuple(
        Judgement(
            number,
            name,
            candidate.before,
            candidate.after,
            tuple(float(link) for link in links[name]),
            judge(candidate, needs_harmless=study.method == "best"),
        )
        for name, candidate in candidates.items()
    )
    settled = yield Ask(
        Step.SETTLE,
        {one.holder: Settle(number, one.verdict == "keep", NONE) for one in verdicts},
        news=tuple(
            f"round {number + 1}, {one.holder}: Davies-Bouldin {one.before:.3f} -> {one.after:.3f}, {one.verdict}"
            for one in verdicts
        ),
    )
    records = len(next(iter(maps.units.values())))
    after = maps_of(study, maps.grid, settled, records)
    history = Maps(after.grid, after.units, after.validity, maps.judgements + verdicts)
    return history, any(one.verdict == "keep" for one in verdicts)


def partners(study: Study, holder: str) -> tuple[str, ...]:
    """All other holders, in the order of the roster."""
    return tuple(name for name in study.holders if name != holder)


def strengths(study: Study, maps: Maps, holder: str) -> np.ndarray:
    """The strength of each link to ``holder``, clipped to what the study allows."""
    radius = study.collaboration.radius
    raw = [link_strength(maps.units[holder], maps.units[name], maps.grid, radius) for name in partners(study, holder)]
    return np.clip(np.array(raw), 0.0, study.collaboration.strength)


def coded(study: Study, maps: Maps) -> Course[tuple[dict[str, Coded], dict[str, Corrected]]]:
    """Every holder's code; with side information in turn, each seeing the codes before it, then corrected by all."""
    if not study.uses_side_information or len(study.holders) == 1:
        replies = yield Ask(Step.CODE, everyone(study, MakeCode(())))
        return dict(replies), {}
    codes: dict[str, Coded] = {}
    for name in study.holders:
        before = tuple(encode_payload(code) for code in codes.values())
        codes |= yield Ask(Step.CODE, {name: MakeCode(before)})
    whole = tuple(encode_payload(codes[name]) for name in study.holders)
    corrections = yield Ask(Step.CORRECT, everyone(study, Correct(whole)))
    return codes, dict(corrections)


def constrained(study: Study, proposal: Grouped) -> Course[tuple[Labels, int]]:
    """Holders check size, l-diversity and t-closeness; failing groups join their nearest until none fails."""
    groups = proposal.labels
    for number in range(MOST_MERGES):
        request = CheckGroups(number, groups.astype(np.int32))
        replies = yield Ask(Step.CONSTRAIN, everyone(study, request))
        failing = np.logical_or.reduce([reply.failing for reply in replies.values()])
        if not failing.any():
            return groups, number
        if groups.max() == 0:
            raise GuaranteeBroken("l or t cannot be reached: the whole table as one group does not keep it")
        groups = merged(groups, failing, proposal.points)
    raise GuaranteeBroken(f"l or t was not reached after merging groups {MOST_MERGES} times")


def released(study: Study, roster: Roster, groups: Labels) -> Course[Release]:
    """Representatives and shuffled values from every holder, assembled and verified."""
    requests = {name: MakeRelease(groups.astype(np.int32), roster.published(name)) for name in study.holders}
    blocks = yield Ask(Step.RELEASE, requests)
    return assembled(study, roster, groups, blocks)


def closed(study: Study, roster: Roster, release: Release, facts: Facts) -> Course[Outcome]:
    """What was lost, as each holder measured it; then every holder signs the digest of release and report."""
    losses = yield Ask(Step.EVALUATE, everyone(study, Evaluate()))
    report = report_of(study, roster, release, facts, losses)
    endings = yield Ask(Step.CLOSE, everyone(study, Close(release.endorsement(report))))
    return Outcome(release, report, {name: reply.ledger for name, reply in endings.items()})
