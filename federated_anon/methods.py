"""The presets of the papers and our own: which strategy stands at each of the four places of a study."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Grouping(StrEnum):
    """How the coordinator turns coded records into groups."""

    SEARCH = "search"
    GLOBAL_MAP = "global-map"
    CONSTRAINED_MAP = "constrained-map"


@dataclass(frozen=True, slots=True)
class Preset:
    """One method: how holders collaborate and code, how the coordinator groups, and what to tell the user."""

    cells: bool
    side_information: bool
    rounds: int
    align: str
    grouping: Grouping
    caveat: str = ""


PRESETS: dict[str, Preset] = {
    "best": Preset(cells=True, side_information=True, rounds=1, align="match", grouping=Grouping.SEARCH),
    "k-tca": Preset(
        cells=False,
        side_information=False,
        rounds=3,
        align="lead",
        grouping=Grouping.GLOBAL_MAP,
        caveat=(
            "k-TCA as published promises no k: its groups are the units of a global map, whatever their size. "
            "Units below k are dissolved here before anything is released."
        ),
    ),
    "c-tca": Preset(
        cells=False,
        side_information=False,
        rounds=3,
        align="lead",
        grouping=Grouping.CONSTRAINED_MAP,
        caveat=(
            "C-TCA as published lets mixture codes leave a holder; they give back the exact record, so only unit "
            "indices leave here. Large units are split into groups of k to 2k-1, which the paper does not do."
        ),
    ),
}
