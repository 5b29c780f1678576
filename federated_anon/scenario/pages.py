"""Played scenarios for people: one table, and a picture per figure; as Markdown and as one HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from federated_anon.report import Finding, Listing, Section, Table, Verdict, figure, page
from federated_anon.report.drawing import BLUE, ORANGE, SOFT, WIDE
from federated_anon.scenario.plan import ScenarioFile

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RELEASED = "released"


@dataclass(frozen=True, slots=True)
class Shown:
    """How one figure is shown."""

    title: str
    short: str
    scale: float
    says: str


SHOWN = {
    "information_loss": Shown("Information lost, %", "lost", 1.0, "Lower is better."),
    "accuracy": Shown(
        "Accuracy of a tree, %", "tree", 100.0, "Trained on the release, tested on the originals; higher is better."
    ),
    "linkage_bound": Shown(
        "Linkage risk, %", "risk", 100.0, "At most this share is linked by who knows every quasi-identifier."
    ),
    "coordinator_linkage": Shown(
        "Linkage by the coordinator, %",
        "seen",
        100.0,
        "With the holders' own data beside what it saw; in sealed exposure no more than the release tells.",
    ),
    "bytes": Shown("Sent by holders, KiB", "", 1 / 1024, "All replies of all holders."),
    "rounds": Shown("Steps asked", "", 1.0, "Each one round trip to the holders concerned."),
    "seconds": Shown("Seconds", "s", 1.0, "All holders in one process on one core."),
}


def result_table(plan: ScenarioFile, rows: Sequence[Mapping[str, Any]]) -> Table:
    """All plays with their figures."""
    lines = []
    for play, row in zip(plan.plays, rows, strict=True):
        figures = [_shown(row.get(name), one.scale) for name, one in SHOWN.items()]
        lines.append((play.name, play.told, row["ending"], row.get("k_reached") or "–", *figures))
    titles = [one.title for one in SHOWN.values()]
    return Table(("scenario", "what", "ending", "k", *titles), tuple(lines))


def short_rows(plan: ScenarioFile, rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """All plays as rows for a terminal, under a header."""
    named = {name: one for name, one in SHOWN.items() if one.short}
    lines = [("scenario", "(figures in %)", *(one.short for one in named.values()))]
    for play, row in zip(plan.plays, rows, strict=True):
        figures = [str(_shown(row.get(name), one.scale)) for name, one in named.items()]
        lines.append((play.name, play.told, *(figures if row["ending"] == RELEASED else ("none",))))
    return lines


def _shown(value: Any, scale: float) -> Any:
    if value is None:
        return "–"
    scaled = value * scale
    return round(scaled, 1) if abs(scaled) >= 10 else round(scaled, 2)


def html(plan: ScenarioFile, rows: Sequence[Mapping[str, Any]]) -> str:
    """The whole page."""
    released = sum(row["ending"] == RELEASED for row in rows)
    refused = [
        Finding("note", f"{play.name}, {play.told}: no release ({row['ending']}). {row.get('reason', '')}")
        for play, row in zip(plan.plays, rows, strict=True)
        if row["ending"] != RELEASED
    ]
    verdict = Verdict(
        "good" if not refused else "note", f"{released} of {len(rows)} plays end in a release.", findings=tuple(refused)
    )
    pictures = tuple(picture(name, plan, rows) for name in SHOWN if any(row.get(name) is not None for row in rows))
    sections = (
        Section(
            "All plays",
            "plays",
            "Every scenario with every combination of what was swept.",
            (Listing("Plays", result_table(plan, rows)),),
        ),
        Section("Pictures", "pictures", "A bar per play; a play without a release has none.", pictures),
    )
    return page(f"Scenarios: {plan.name}", sections, verdict=verdict, subtitle=f"settings {plan.digest[:16]}")


def picture(name: str, plan: ScenarioFile, rows: Sequence[Mapping[str, Any]]) -> Any:
    """One figure of all plays as bars."""
    shown = SHOWN[name]
    names = [f"{play.name}, {play.told}" for play in plan.plays]
    values = [None if row.get(name) is None else row[name] * shown.scale for row in rows]
    table = Table(("play", shown.title), tuple((n, _shown(v, 1.0)) for n, v in zip(names, values, strict=True)))
    height = 0.8 + 0.28 * len(names)
    bars = partial(_bars, names, values, plan)
    return figure(name, shown.title, shown.says, bars, table, size=(WIDE[0], height), wide=True)


def _bars(names: Sequence[str], values: Sequence[float | None], plan: ScenarioFile, axes: Axes) -> None:
    places = range(len(names))
    colours = [ORANGE if play.exposure == "sealed" else BLUE for play in plan.plays]
    axes.barh(list(places), [value or 0.0 for value in values], color=colours, height=0.7)
    axes.set_yticks(list(places), names)
    axes.invert_yaxis()
    axes.grid(axis="x")
    axes.grid(visible=False, axis="y")
    for place, value in zip(places, values, strict=True):
        text = " no release" if value is None else f" {_shown(value, 1.0)}"
        axes.text(value or 0.0, place, text, va="center", fontsize=8, color=SOFT)


def markdown(plan: ScenarioFile, rows: Sequence[Mapping[str, Any]]) -> str:
    """The table as Markdown."""
    table = result_table(plan, rows)
    lines = [
        f"# Scenarios: {plan.name}",
        "",
        "| " + " | ".join(table.columns) + " |",
        "|" + " --- |" * len(table.columns),
    ]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in table.rows]
    return "\n".join(lines) + "\n"
