"""The report's data: what the release keeps, what was lost, how holders collaborated. No times, no raw values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from coordinator.assembly import Release, Roster
from coordinator.grouping import Grouped
from federated_anon.messages.payloads import Coded, Evaluated
from federated_anon.privacy import indices_linkage
from federated_anon.study import Study

if TYPE_CHECKING:
    from coordinator.protocol import Maps


@dataclass(frozen=True, slots=True)
class Facts:
    """What the study's course left behind that the report tells."""

    records: int
    maps: Maps
    codes: Mapping[str, Coded]
    proposal: Grouped
    merges: int


def report_of(
    study: Study, roster: Roster, release: Release, facts: Facts, losses: Mapping[str, Evaluated]
) -> dict[str, Any]:
    """Everything the report says, as plain data; the same study on the same data gives the same bytes."""
    return {
        "study": study.digest,
        "name": study.name,
        "method": study.method,
        "exposure": study.exposure,
        "caveats": caveats(study, facts),
        "records": facts.records,
        "groups": release.groups,
        "k": study.privacy.k,
        "k_reached": release.reached.k,
        "diversity_reached": release.reached.diversity,
        "closeness_reached": release.reached.closeness,
        "information_loss_percent": information_loss(losses),
        "columns": column_losses(release, losses),
        "grouping": facts.proposal.route,
        "merging_rounds": facts.merges,
        "coordinator_view_linkage": indices_linkage([code.cells for code in facts.codes.values()]),
        "holders": holder_facts(study, roster, release, facts),
        "rounds": [asdict(judgement) for judgement in facts.maps.judgements],
        "seed": study.seed,
        "software": version("federated-anon"),
    }


def caveats(study: Study, facts: Facts) -> list[str]:
    """What a reader must know about the method before trusting a figure."""
    found = [study.preset.caveat] if study.preset.caveat else []
    if study.method == "k-tca":
        found.append(f"As published, this run would have reached k = {facts.proposal.published_k}.")
    if study.exposure == "open":
        found.append(
            "Open exposure: the coordinator sees every record's cell index at every holder and is trusted with it."
        )
    return found


def information_loss(losses: Mapping[str, Evaluated]) -> float:
    """100 SSE / SST over all holders' quasi-identifiers, in the encoding of distances."""
    squared = sum(float(loss.squared_error.sum()) for loss in losses.values())
    total = sum(float(loss.total_squares.sum()) for loss in losses.values())
    return 100.0 * squared / total if total else 0.0


def column_losses(release: Release, losses: Mapping[str, Evaluated]) -> list[dict[str, Any]]:
    """Every published column with its owner, role and kind, and its own loss if it is a quasi-identifier."""
    percent = {
        name: 100.0 * squared / total if total else 0.0
        for loss in losses.values()
        for name, squared, total in zip(loss.names, loss.squared_error, loss.total_squares, strict=True)
    }
    return [
        {
            "name": column.name,
            "holder": column.holder,
            "role": column.role.value,
            "kind": column.kind.value,
            "levels": list(column.levels),
            "type": str(release.table.schema.field(column.name).type),
            "information_loss_percent": percent.get(column.name),
        }
        for column in release.columns
    ]


def holder_facts(study: Study, roster: Roster, release: Release, facts: Facts) -> dict[str, Any]:
    """Per holder: its identity, its map's validity, whether partners' codes serve it, its cells."""
    return {
        name: {
            "identity": identity.hex(),
            "davies_bouldin": facts.maps.validity[name],
            "grid": [facts.maps.grid.rows, facts.maps.grid.cols],
            "cells": len(facts.codes[name].prototypes),
            "uses_partners_codes": len(facts.codes[name].coefficients) > 0,
            "veiled_groups": release.veiled[name],
        }
        for name, identity in zip(study.holders, roster.identities, strict=True)
    }
