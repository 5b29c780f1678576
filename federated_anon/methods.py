"""The presets of the papers and our own: which strategy stands at each of the four places of a study."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal, get_args


class Grouping(StrEnum):
    """How the coordinator turns coded records into groups."""

    SEARCH = "search"
    GLOBAL_MAP = "global-map"
    CONSTRAINED_MAP = "constrained-map"
    MDAV = "mdav"
    VARIABLE_MDAV = "v-mdav"
    MAXIMUM_DISTANCE = "md"
    TFRP = "tfrp"
    HAC = "hac"
    KMEANS = "kmeans"
    JOINT_CELLS = "joint-cells"


@dataclass(frozen=True, slots=True)
class Preset:
    """One method: how holders collaborate and code, how the coordinator groups, and what to tell the user.

    ``labels`` says whether it needs a column of labels, ``density`` whether a holder's units are cells of its columns'
    densities, in place of the units of a map.
    """

    grouping: Grouping
    cells: bool = True
    side_information: bool = False
    rounds: int = 0
    align: str = "none"
    labels: bool = False
    density: bool = False
    caveat: str = ""


MethodName = Literal[
    "best", "k-tca", "c-tca", "mdav", "v-mdav", "md", "tfrp", "hac", "kmeans", "k-tca++", "c-tca++", "kde", "kde++"
]
METHODS: tuple[str, ...] = get_args(MethodName)
"""Every method by its name; ``PRESETS[name].labels`` says which need labels."""

ALIASES = {"k-cmvm": "k-tca", "constrained-cmvm": "c-tca"}
"""Other names of the papers for the same method."""

K_TCA = Preset(
    Grouping.GLOBAL_MAP,
    cells=False,
    rounds=3,
    align="lead",
    caveat=(
        "k-TCA as published promises no k: its groups are the units of a global map, whatever their size. "
        "Units below k are dissolved here before anything is released."
    ),
)
C_TCA = Preset(
    Grouping.CONSTRAINED_MAP,
    cells=False,
    rounds=3,
    align="lead",
    caveat=(
        "C-TCA as published lets mixture codes leave a holder; they give back the exact record, so only unit "
        "indices leave here. Large units are split into groups of k to 2k-1, which the paper does not do."
    ),
)

KDE = Preset(
    Grouping.JOINT_CELLS,
    cells=False,
    density=True,
    caveat=(
        "Recoding by column densities promises no k: its groups are the combinations of cells that occur. Cells below "
        "k are merged here, at each holder before they leave and once more over all holders."
    ),
)

PRESETS: dict[str, Preset] = {
    "best": Preset(Grouping.SEARCH, side_information=True, rounds=1, align="match"),
    "k-tca": K_TCA,
    "c-tca": C_TCA,
    "mdav": Preset(Grouping.MDAV),
    "v-mdav": Preset(Grouping.VARIABLE_MDAV),
    "md": Preset(Grouping.MAXIMUM_DISTANCE),
    "tfrp": Preset(Grouping.TFRP),
    "hac": Preset(Grouping.HAC),
    "kmeans": Preset(Grouping.KMEANS),
    "k-tca++": replace(K_TCA, labels=True),
    "c-tca++": replace(C_TCA, labels=True),
    "kde": KDE,
    "kde++": replace(KDE, labels=True),
}


def resolved(method: Any) -> Any:
    """The method behind another name of it; whatever else comes stays as it is."""
    return ALIASES.get(method, method) if isinstance(method, str) else method


def listed() -> str:
    """All names for a line of help."""
    others = ", ".join(f"{alias} = {name}" for alias, name in ALIASES.items())
    return f"{', '.join(METHODS[:-1])} or {METHODS[-1]} ({others})"
