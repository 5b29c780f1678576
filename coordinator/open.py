"""Open exposure as a course of steps: local maps, gated collaboration, codes, groups at the coordinator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from coordinator.alignment import Overlap
from coordinator.course import Ask, Course, everyone
from coordinator.gate import Judgement, judge
from federated_anon.arrays import Labels
from federated_anon.errors import MessageRefused
from federated_anon.messages import Step
from federated_anon.messages.codec import encode_payload
from federated_anon.messages.payloads import (
    Coded,
    Collaborate,
    Correct,
    Corrected,
    MakeCode,
    Mapped,
    Refine,
    Settle,
    TellLabels,
    TrainMap,
)
from federated_anon.som import Grid, link_strength, match_units
from federated_anon.study import Study

NONE = np.zeros(0, dtype=np.int32)
MOST_MATCHED = 2048


@dataclass(frozen=True, slots=True)
class Maps:
    """All holders' activations and validity, how they came to be, and the labels that refined them, if any."""

    grid: Grid
    units: Mapping[str, Labels]
    validity: Mapping[str, float]
    judgements: tuple[Judgement, ...] = field(default=())
    labels: Labels = field(default_factory=NONE.copy, repr=False)


def mapped(study: Study, overlap: Overlap) -> Course[Maps]:
    """Local maps, and as many rounds of collaboration as keep at least one candidate."""
    maps = yield from trained(study, overlap)
    can_agree = len(study.holders) > 1 and (study.align != "match" or is_matchable(maps.grid))
    for number in range(study.rounds if can_agree else 0):
        maps, kept = yield from collaborated(study, maps, number)
        if not kept:
            break
    return maps


def trained(study: Study, overlap: Overlap) -> Course[Maps]:
    """Local maps on the common grid, aligned as the study says."""
    grid = grid_of(study, overlap.records)
    lead, rest = study.holders[0], study.holders[1:]

    def request(name: str, units: Labels) -> TrainMap:
        return TrainMap(overlap.positions[name], grid.rows, grid.cols, units)

    if study.align != "lead" or not rest:
        replies = dict((yield Ask(Step.MAP, {name: request(name, NONE) for name in study.holders})))
    else:
        replies = dict((yield Ask(Step.MAP, {lead: request(lead, NONE)})))
        replies |= yield Ask(Step.MAP, {name: request(name, replies[lead].units) for name in rest})
    maps = maps_of(study, grid, replies, overlap.records)
    if study.align == "match" and rest and study.rounds and is_matchable(grid):
        maps = yield from matched_maps(study, maps)
    return maps


def is_matchable(grid: Grid) -> bool:
    """Matching looks at all pairs of units; maps that are too large for it stay as they are, and do not agree."""
    return grid.units <= MOST_MATCHED


def grid_of(study: Study, records: int) -> Grid:
    """The study's own grid, or one that fits the number of records."""
    if study.preset.density:
        return Grid.with_units(records // study.privacy.k)
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
        news=tuple(f"{name}: Davies-Bouldin {value:.4g}" for name, value in maps.validity.items()),
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
            f"round {number + 1}, {one.holder}: Davies-Bouldin {one.before:.4g} -> {one.after:.4g}, {one.verdict}"
            for one in verdicts
        ),
    )
    records = len(next(iter(maps.units.values())))
    after = maps_of(study, maps.grid, settled, records)
    history = Maps(after.grid, after.units, after.validity, maps.judgements + verdicts)
    return history, any(one.verdict == "keep" for one in verdicts)


def refined(study: Study, maps: Maps) -> Course[Maps]:
    """The owner's labels, as far as it shares them, refine every holder's map; without labels the maps stay."""
    if not study.preset.labels:
        return maps
    told = yield Ask(Step.LABEL, everyone(study, TellLabels()))
    given = [reply.labels for reply in told.values() if len(reply.labels)]
    records = len(next(iter(maps.units.values())))
    if len(given) != 1 or len(given[0]) != records or given[0].min() < 0:
        raise MessageRefused("exactly one holder has the labels, one for each record")
    replies = yield Ask(Step.REFINE, everyone(study, Refine(given[0])))
    mapped = {name: Mapped(reply.units, maps.validity[name]) for name, reply in replies.items()}
    after = maps_of(study, maps.grid, mapped, records)
    return Maps(after.grid, after.units, after.validity, maps.judgements, given[0])


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
