"""The report's data: what the release keeps, what was lost, how holders collaborated. No times, no raw values."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from coordinator.assembly import Release, Roster
from coordinator.coarser import classes_of, loss_by_k
from coordinator.gate import Judgement
from coordinator.grouping import Grouped
from coordinator.open import Maps
from coordinator.profiles import profiles_of
from coordinator.sealed import Splits
from federated_anon.arrays import Counts
from federated_anon.crypto.sums import from_fixed, total
from federated_anon.errors import MessageRefused
from federated_anon.messages.payloads import Coded, Evaluated
from federated_anon.methods import Grouping
from federated_anon.privacy import indices_linkage
from federated_anon.profiles.told import MOST_UNITS
from federated_anon.study import LabelSettings, Study

VERSIONS = ("jinja2", "matplotlib", "numpy", "pyarrow", "scipy")
"""Libraries on which the bytes of release and report depend."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the study's course left behind that the report tells; ``holders`` has plain data by name."""

    grouping: str
    merging_rounds: int
    coordinator_view_linkage: float
    caveats: tuple[str, ...]
    holders: Mapping[str, Mapping[str, Any]]
    rounds: tuple[Judgement, ...] = ()
    levels: tuple[Mapping[str, int], ...] = ()
    """Sealed: how many splits each holder won, level by level."""


def open_facts(
    study: Study, maps: Maps, codes: Mapping[str, Coded], found: Grouped, release: Release, merges: int
) -> Facts:
    """The facts of an open study: maps, codes, and how far the coordinator's view of the indices links people."""
    caveats = [study.preset.caveat] if study.preset.caveat else []
    if study.labels:
        caveats.append(labels_told(study.labels))
    if study.preset.grouping in (Grouping.GLOBAL_MAP, Grouping.JOINT_CELLS):
        caveats.append(f"As published, this run would have reached k = {found.published_k}.")
    caveats.append(
        "Open exposure: the coordinator sees every record's cell index at every holder and is trusted with it."
    )
    holders = {
        name: {
            "davies_bouldin": maps.validity[name],
            "model": "kde" if study.preset.density else study.model_of(name),
            "grid": [maps.grid.rows, maps.grid.cols],
            "hits": hits(maps, name, study.privacy.k),
            "cells": len(code.prototypes),
            "uses_partners_codes": len(code.coefficients) > 0,
            "veiled_groups": release.veiled[name],
        }
        for name, code in codes.items()
    }
    linkage = indices_linkage([code.cells for code in codes.values()])
    return Facts(found.route, merges, linkage, tuple(caveats), holders, maps.judgements)


def labels_told(labels: LabelSettings) -> str:
    """What a reader must know of a release that labels have shaped."""
    far = "their own" if labels.share == "records" else "the most frequent of their unit of at least k records"
    return (
        f"Labels were used: people's labels of '{labels.column}', {far}, went to the coordinator and to every holder "
        "and shaped the groups. A test of how well the release predicts these labels needs records that took no part."
    )


def hits(maps: Maps, holder: str, k: int) -> list[int]:
    """Records per unit of a holder's map, row by row; 0 for a unit below k, and none of a map too large to look at."""
    if maps.grid.units > MOST_UNITS:
        return []
    counts = np.bincount(maps.units[holder], minlength=maps.grid.units)
    return [int(count) if count >= k else 0 for count in counts]


def sealed_facts(study: Study, splits: Splits, release: Release, merges: int) -> Facts:
    """The facts of a sealed study: all that was said of single records is constant on the final splits."""
    final = splits.partition
    route = f"{len(final.parents)} nested splits"
    caveats = ("Sealed exposure: nobody learns more of a record than the final groups tell.",)
    nothing: dict[str, Mapping[str, Any]] = {name: {} for name in study.holders}
    linkage = indices_linkage([final.compact])
    return Facts(route, merges, linkage, caveats, nothing, splits.judgements, splits.levels)


def report_of(
    study: Study, roster: Roster, release: Release, facts: Facts, losses: Mapping[str, Evaluated]
) -> dict[str, Any]:
    """Everything the report says, as plain data; the same study on the same data gives the same bytes."""
    identities = dict(zip(study.holders, roster.identities, strict=True))
    columns = column_losses(release, losses)
    loss, classes = information_loss(study, losses), classes_of(release)
    return {
        "study": study.digest,
        "name": study.name,
        "method": study.method,
        "exposure": study.exposure,
        "labels": study.labels.model_dump(mode="json") if study.labels else None,
        "personal": study.privacy.personal,
        "caveats": [*facts.caveats, *personal_told(study.privacy.personal), *beyond_all(columns)],
        "records": release.table.num_rows,
        "parquet_sha256": hashlib.sha256(release.parquet()).hexdigest(),
        "groups": release.groups,
        "k": study.privacy.k,
        "k_reached": release.reached.k,
        "diversity_reached": release.reached.diversity,
        "closeness_reached": release.reached.closeness,
        "information_loss_percent": loss,
        "loss_by_k": loss_by_k(classes, loss, losses),
        "class_sizes": class_sizes(classes.sizes),
        "profiles": profiles_of(study, roster, release.table.num_rows, losses),
        "columns": columns,
        "grouping": facts.grouping,
        "merging_rounds": facts.merging_rounds,
        "coordinator_view_linkage": facts.coordinator_view_linkage,
        "holders": {name: {"identity": key.hex(), **facts.holders[name]} for name, key in identities.items()},
        "rounds": [asdict(judgement) for judgement in facts.rounds],
        "levels": [dict(level) for level in facts.levels],
        "settings": study.model_dump(mode="json"),
        "seed": study.seed,
        "software": version("federated-anon"),
        "versions": {name: version(name) for name in VERSIONS},
    }


def personal_told(column: str | None) -> list[str]:
    """What a reader must know of wishes: the table alone cannot show that they were kept."""
    told = "is in a group at least as large as their own wish, as the wishes' holder checked; wishes were not sent"
    return [f"Personal k ('{column}'): everybody {told}."] if column else []


def class_sizes(sizes: Counts) -> list[list[int]]:
    """How many classes of the release have how many records: pairs of size and number, rising."""
    return [[int(size), int(number)] for size, number in zip(*np.unique(sizes, return_counts=True), strict=True)]


def beyond_all(columns: list[dict[str, Any]]) -> list[str]:
    """A word on columns that lost more than all of their variance, which looks like a mistake and is none."""
    names = [c["name"] for c in columns if (c["information_loss_percent"] or 0.0) > 100]
    told = (
        "the most frequent value of a group is published, and it can lie farther from the others than their mean would"
    )
    return [f"More than 100 % lost ({', '.join(names)}): {told}."] if names else []


def information_loss(study: Study, losses: Mapping[str, Evaluated]) -> float:
    """100 SSE / SST over all holders' quasi-identifiers, in the encoding of distances."""
    masked = study.evaluation.losses == "total"
    if any((len(loss.masked), len(loss.names)) != (2, 0) for loss in losses.values()) and masked:
        raise MessageRefused("the study asks for the total loss alone, and a holder sent something else")
    squared, whole = _joint(study, losses) if masked else _added(losses)
    return 100.0 * squared / whole if whole else 0.0


def _added(losses: Mapping[str, Evaluated]) -> tuple[float, float]:
    """Squared error and total squares, added up."""
    squared = sum(float(loss.squared_error.sum()) for loss in losses.values())
    return squared, sum(float(loss.total_squares.sum()) for loss in losses.values())


def _joint(study: Study, losses: Mapping[str, Evaluated]) -> tuple[float, float]:
    """The same two sums where each holder's part stays hidden."""
    squared, whole = from_fixed(total({name: loss.masked for name, loss in losses.items()}, study.holders))
    return float(squared), float(whole)


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
