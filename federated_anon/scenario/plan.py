"""The scenario file (TOML): one table, what is common to all scenarios, and what each of them changes.

Every value under ``[common]`` and in a ``[[scenario]]`` may be a list: a scenario is played once per combination.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, get_args

from pydantic import Field, model_validator

from federated_anon.errors import SettingsRefused
from federated_anon.messages import Step
from federated_anon.sections import Section, checked, read_toml
from federated_anon.study import Exposure, Name

Deal = Literal["random", "together", "apart"]
Deed = Literal["restart", "vanish", "lag", "garbage", "replay", "inflate"]
MOST_PLAYS = 500


class Trouble(Section):
    """What a site does when it is first asked for a step; sites are counted from 1.

    ``restart`` loses its memory and comes back, ``vanish`` never answers again, ``lag`` is slow, ``garbage`` sends
    noise, ``replay`` sends its last reply again, ``inflate`` tells gains a million times too large (sealed).
    """

    site: int = Field(ge=1, le=64)
    step: Step
    does: Deed
    seconds: float = Field(default=1.0, ge=0, le=600)


class TableSettings(Section):
    """A file of yours, or generated people: columns that depend on hidden traits, and a label that does too."""

    file: str = ""
    label: str | None = None
    drop: tuple[str, ...] = ()
    people: int = Field(default=600, ge=10, le=5_000_000)
    columns: int = Field(default=12, ge=1, le=500)
    traits: int = Field(default=3, ge=1, le=50)


class Play(Section):
    """One scenario with one value for everything: what is played."""

    name: Name
    k: int = Field(default=5, ge=2)
    holders: int = Field(default=3, ge=1, le=50)
    exposure: Exposure = "open"
    method: str = "best"
    collaboration: bool = True
    overlap: float = Field(default=1.0, gt=0, le=1)
    deal: Deal = "random"
    skew: float = Field(default=0.0, ge=0, le=3)
    noise: float = Field(default=0.0, ge=0, le=10)
    missing: float = Field(default=0.0, ge=0, lt=1)
    seed: int = Field(default=0, ge=0)
    trouble: tuple[Trouble, ...] = ()

    @model_validator(mode="after")
    def _known_sites(self) -> Self:
        if strangers := [one.site for one in self.trouble if one.site > self.holders]:
            raise ValueError(f"scenario '{self.name}': site {strangers[0]} of {self.holders} holders")
        return self

    @property
    def told(self) -> str:
        """In words, what is not as it usually is."""
        fields = Play.model_fields
        odd = [axis for axis in AXES if axis != "exposure" and getattr(self, axis) != fields[axis].default]
        return ", ".join((self.exposure, *(f"{axis} {getattr(self, axis)}" for axis in odd)))


AXES = tuple(name for name in Play.model_fields if name not in {"name", "trouble"})


class ScenarioFile(Section):
    """A scenario file, checked: its table and all plays."""

    name: Name
    table: TableSettings = TableSettings()
    plays: tuple[Play, ...] = Field(min_length=1, max_length=MOST_PLAYS)

    def as_dict(self) -> dict[str, Any]:
        """Everything that decides the figures."""
        return self.model_dump(mode="json")

    def cells(self) -> tuple[Cell, ...]:
        """One per play."""
        return tuple(Cell(number, play.name) for number, play in enumerate(self.plays))

    @property
    def digest(self) -> str:
        """SHA-256 of what decides the figures."""
        return hashlib.sha256(json.dumps(self.as_dict(), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Cell:
    """A play's place in the file."""

    number: int
    scenario: str

    @property
    def name(self) -> str:
        """A name for its file."""
        return f"{self.number:03d}-{self.scenario}"


def load_scenario(path: Path | str) -> ScenarioFile:
    """Read and check a scenario file; all faults come in one ``SettingsRefused``."""
    path = Path(path)
    content = read_toml(path)
    common, scenarios = content.pop("common", {}), content.pop("scenario", [])
    faults = _shape_faults(common, scenarios)
    if faults:
        raise SettingsRefused(str(path), faults)
    plays = [play for one in scenarios for play in _combined({**common, **one})]
    if len(plays) > MOST_PLAYS:
        raise SettingsRefused(str(path), [f"{len(plays)} plays, at most {MOST_PLAYS}: sweep over less"])
    table = dict(content.get("table", {}))
    if table.get("file"):
        table["file"] = str((path.parent / table["file"]).absolute())
    return checked(ScenarioFile, {**content, "table": table, "plays": plays}, str(path))


def _shape_faults(common: Any, scenarios: Any) -> list[str]:
    if not isinstance(common, dict) or not isinstance(scenarios, list) or not scenarios:
        return ["needs at least one [[scenario]], and [common] as a section"]
    known = {*AXES, "trouble"}
    faults = [f"[common] unknown key '{key}'; known keys: {', '.join(sorted(known))}" for key in set(common) - known]
    for number, one in enumerate(scenarios):
        strange = set(one) - known - {"name"}
        faults += [f"[[scenario]] {number + 1}: unknown key '{key}'" for key in sorted(strange)]
        faults += [] if "name" in one else [f"[[scenario]] {number + 1}: 'name' is missing"]
        does = [trouble.get("does") for trouble in one.get("trouble", ()) if isinstance(trouble, dict)]
        faults += [
            f"[[scenario]] {number + 1}: does '{d}'; known: {', '.join(get_args(Deed))}"
            for d in does
            if d not in get_args(Deed)
        ]
    return faults


def _combined(values: dict[str, Any]) -> list[dict[str, Any]]:
    """One play per combination of the values that are lists."""
    swept = {key: value for key, value in values.items() if isinstance(value, list) and key != "trouble"}
    return [values | dict(zip(swept, chosen, strict=True)) for chosen in itertools.product(*swept.values())]
