"""The profile of a holder's own columns for the report, as its policy allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from federated_anon.profiles import After, Before, profile_of, unit_heights
from federated_anon.seeds import stream
from federated_anon.study import Study
from nodes.block import Block
from nodes.memory import Released
from nodes.settings import HolderSettings
from nodes.training import LocalMap


@dataclass(frozen=True, slots=True)
class Told:
    """A profile as it leaves, and what the ledger says of it."""

    text: str
    note: str


def profiled(
    block: Block, released: Released, current: LocalMap | None, study: Study, settings: HolderSettings
) -> Told:
    """The profile as JSON; empty where the policy keeps it."""
    if not settings.policy.share_profile:
        return Told("", "the policy keeps the profile of the columns")
    k = study.privacy.k
    found = profile_of(
        Before(block.encoding, block.table, block.points),
        After(released.representatives, released.groups),
        k,
        stream(study.seed, "profile", settings.name),
        _heights(current, k) if study.exposure == "open" else (),
    )
    return Told(found.model_dump_json(), f"profile of {len(found.columns)} columns, counts of at least {k}")


def _heights(current: LocalMap | None, k: int) -> tuple[float | None, ...]:
    if current is None:
        return ()
    hits = np.bincount(current.units, minlength=current.grid.units)
    return unit_heights(current.grid, current.codebook, hits, k)
