"""The report of a run: a pure function of the files in its folder, so that anybody can draw it again and compare."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from federated_anon import console
from federated_anon.errors import StorageFailed
from federated_anon.report import charts, teamwork
from federated_anon.report.page import Block, Figure, Listing, Prose, Section, Table, page
from federated_anon.report.verdict import verdict_of

PAGE, DATA, SIMULATED, EVALUATED = "report.html", "report.json", "simulation.json", "evaluation.json"

Report = Mapping[str, Any]
Ledgers = Mapping[str, Sequence[Mapping[str, Any]]]

WORDS = {
    "identity": "public keys",
    "pseudonyms": "pseudonyms of people",
    "units": "unit of each person on the map",
    "davies_bouldin": "quality of the map",
    "before": "quality of a proposed map",
    "cells": "cell of each person, means of cells of at least k",
    "coefficients": "coefficients of predictions",
    "wrapped": "wrapped keys, for other holders",
    "records": "number of people in common",
    "gains": "one gain per group",
    "bits": "one bit per person of the groups won",
    "failing": "which groups fail l or t",
    "representatives": "one row per group; sensitive and kept values, shuffled inside groups",
    "squared_error": "losses per column",
    "masked": "the loss, masked",
    "profile": "profile of the columns, counts of at least k",
    "ledger": "the ledger itself",
    "labels": "labels, as far as its policy shares them",
}
"""What a field of a message is, in words; each step is told by the fields that matter."""


def folder_page(folder: Path, with_evaluation: bool = True) -> str:
    """The report of the run in ``folder``; ``StorageFailed`` if its files cannot be read."""
    try:
        report = json.loads((folder / DATA).read_text(encoding="utf-8"))
        ledgers = {name: _entries(folder / "ledger" / f"{name}.jsonl") for name in report["holders"]}
        extra, measured = _optional(folder / SIMULATED), _optional(folder / EVALUATED) if with_evaluation else None
        return run_page(report, ledgers, extra, measured)
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        told = f"{type(error).__name__}: {error}"
        raise StorageFailed(f"'{folder}' is not a run that a report can be drawn from: {told}") from None


def _optional(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def opening(place: Path) -> str:
    """How to look at a page."""
    return f"Open it in a browser: {place.absolute().as_uri()}"


def _entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def run_page(
    report: Report,
    ledgers: Ledgers,
    simulated: Mapping[str, Any] | None = None,
    measured: Mapping[str, Any] | None = None,
) -> str:
    """The whole page; ``simulated`` is what only a simulation can measure, having all columns in one place.

    ``measured`` is what an evaluation against the originals found.
    """
    sent = {name: sum(int(entry["bytes"]) for entry in entries) for name, entries in ledgers.items()}
    sections = (
        _lost(report),
        _columns(report),
        _structure(report, simulated),
        _risk(report),
        _measured(measured or {}),
        _together(report),
        _learned(report, ledgers),
        _provenance(report),
    )
    return page(
        f"Report of {report['name']}",
        [section for section in sections if section.blocks],
        verdict=verdict_of(report, console.size(sum(sent.values()))),
        subtitle=f"{report['records']:,} people, {len(report['columns'])} columns of {len(report['holders'])} holders; "
        f"method {report['method']}, {report['exposure']} exposure"
        + ("; a simulation on one table" if simulated else ""),
        footer=f"Drawn by federated-anon {report['software']} from report.json and the ledgers. "
        f"Study {report['study']}.",
    )


def present(*blocks: Block | None) -> tuple[Block, ...]:
    """The blocks that there are."""
    return tuple(block for block in blocks if block is not None)


def _lost(report: Report) -> Section:
    intro = (
        "Information lost is the variance inside the groups as a share of all variance: 0 % is the original, "
        "100 % one row for everybody."
    )
    return Section(
        "What was lost", "lost", intro, present(charts.loss_against_k(report), charts.loss_by_column(report))
    )


def _columns(report: Report) -> Section:
    owners = {column["name"]: column["holder"] for column in report["columns"]}
    told = [column for profile in report["profiles"].values() if profile for column in profile["columns"]]
    figures = tuple(charts.column_change(c["name"], owners[c["name"]], c, n) for n, c in enumerate(told))
    kept = [name for name, profile in report["profiles"].items() if profile is None]
    intro = (
        "Grey bars are the people before, blue marks the release. Each holder counted its own columns: every bar "
        "stands for at least k people, the outermost are open-ended, and edges are round numbers, nobody's value."
    )
    if kept and report["settings"].get("evaluation", {}).get("losses") == "total":
        intro = "The study asks for the total loss alone, so holders told nothing of single columns."
    elif kept:
        intro += f" Kept by policy: {', '.join(kept)}."
    prose: tuple[Block, ...] = (Prose(("No holder told how its columns changed.",)),) if not figures else ()
    return Section("Columns before and after", "columns", intro, (*figures, *prose), small=True)


def _structure(report: Report, simulated: Mapping[str, Any] | None) -> Section:
    figures: list[Block] = []
    if simulated:
        intro = "A simulation has all columns in one place, so that what runs across holders is measured as well."
        if simulated.get("plane"):
            figures.append(charts.principal_plane(simulated["plane"]))
        if simulated.get("correlations"):
            told = simulated["correlations"]
            figures.append(charts.correlations("Correlations of all holders' columns", "correlations", told, ""))
    else:
        intro = (
            "Each holder measured its own columns. Nobody sees columns of two holders side by side, so nothing is "
            "told across holders."
        )
        for number, (name, profile) in enumerate(report["profiles"].items()):
            if profile and profile["correlations"]:
                told = profile["correlations"]
                figures.append(charts.correlations(f"Correlations: {name}", f"correlations-{number}", told, ""))
                figures.append(charts.components(f"components-{number}", name, told))
    return Section("Structure before and after", "structure", intro, tuple(figures))


def _risk(report: Report) -> Section:
    intro = "Linkage: somebody knows a person's own values and looks for the nearest published record."
    return Section("Risk that is left", "risk", intro, (charts.linkage(report), charts.group_sizes(report)))


def _measured(found: Mapping[str, Any]) -> Section:
    """Figures of an evaluation against the originals, as one table."""
    rows = tuple((name, _rounded(value)) for name, value in _flat(found) if not isinstance(value, list) and value != "")
    intro = "Measured against the originals by somebody who has them; signed by nobody."
    blocks = (Listing("", Table(("measure", "value"), rows)),) if rows else ()
    return Section("Evaluation", "evaluation", intro, blocks)


def _rounded(value: Any) -> Any:
    return f"{value:.4g}" if isinstance(value, float) else "–" if value is None else value


def _together(report: Report) -> Section:
    if report["exposure"] == "sealed":
        intro = (
            "Level by level, each group of 2k people or more is split by the holder that gains most from it; "
            "one bit per person is all that is said."
        )
        return Section("How the holders worked together", "together", intro, present(teamwork.splits(report)))
    maps: list[Figure | None] = [
        teamwork.map_of(number, name, facts, report["profiles"].get(name), report["k"])
        for number, (name, facts) in enumerate(report["holders"].items())
        if "hits" in facts
    ]
    intro = (
        "Each holder trains a map of its own columns; maps are drawn towards each other only where that makes "
        "them better."
    )
    return Section(
        "How the holders worked together",
        "together",
        intro,
        present(teamwork.rounds(report), teamwork.links(report), *maps),
    )


def _learned(report: Report, ledgers: Ledgers) -> Section:
    by_step = {name: _bytes_by_step(entries) for name, entries in ledgers.items()}
    rows = []
    hidden = "squared_error" if report["settings"]["evaluation"]["losses"] == "total" else "masked"
    for step, sent in _kinds(ledgers).items():
        fields = [field for field in sent if field != hidden]
        told = "; ".join(dict.fromkeys(WORDS[field] for field in fields if field in WORDS)) or ", ".join(fields)
        rows.append((step, told, console.size(sum(steps.get(step, 0) for steps in by_step.values()))))
    sealed = report["exposure"] == "sealed"
    parties = (
        (
            "coordinator",
            "pseudonyms, not ids; the final groups; "
            + (
                "of single people nothing beyond the groups"
                if sealed
                else "the cell of each person at each holder, and cell means"
            ),
        ),
        (
            "each holder",
            "how many people are in common; the groups; "
            + ("who won which split" if sealed else "the partners' cells and cell means; no id, no single value"),
        ),
        ("reader", "the release, this report and the ledgers"),
    )
    intro = (
        "Every byte that left a holder stands in a ledger that the holder signed; these figures are read from there."
    )
    blocks = (
        teamwork.bytes_told(by_step, console.size),
        Listing("Who has seen what", Table(("party", "has seen"), parties), wide=False),
        Listing("What was sent, step by step", Table(("step", "kinds", "bytes"), tuple(rows))),
    )
    return Section("Who learned what", "learned", intro, blocks)


def _bytes_by_step(entries: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for entry in entries:
        if entry["sent"]:
            found[entry["step"]] = found.get(entry["step"], 0) + int(entry["bytes"])
    return found


def _kinds(ledgers: Ledgers) -> dict[str, list[str]]:
    """Fields that were sent in each step, in the order of the steps."""
    found: dict[str, dict[str, None]] = {}
    for entries in ledgers.values():
        for entry in entries:
            if entry["sent"]:
                found.setdefault(entry["step"], {}).update(dict.fromkeys(entry["fields"]))
    return {step: list(fields) for step, fields in found.items()}


def _provenance(report: Report) -> Section:
    settings = tuple((name, value) for name, value in _flat(report["settings"]) if value is not None)
    hashes = (
        ("study", report["study"]),
        ("release.parquet", report["parquet_sha256"]),
        *((f"identity of {name}", facts["identity"]) for name, facts in report["holders"].items()),
    )
    versions = (("federated-anon", report["software"]), *report["versions"].items())
    how = (
        ("groups found by", report["grouping"]),
        ("rounds of mending for l and t", report["merging_rounds"]),
        ("seed", report["seed"]),
    )
    blocks = (
        Listing("Settings", Table(("setting", "value"), settings), wide=False),
        Listing("How, and with which software", Table(("what", "value"), (*how, *versions)), wide=False),
        Listing("Hashes and keys", Table(("of", "SHA-256 or public key"), hashes)),
    )
    return Section(
        "Settings, seed, versions, hashes",
        "provenance",
        "The same study on the same data gives the same bytes.",
        blocks,
    )


def _flat(settings: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """Settings within settings as one list of dotted names."""
    found: list[tuple[str, Any]] = []
    for name, value in settings.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{before}{name}.")
        else:
            found.append((before + name, ", ".join(map(str, value)) if _is_plain_list(value) else value))
    return found


def _is_plain_list(value: Any) -> bool:
    return isinstance(value, list) and not any(isinstance(one, list | dict) for one in value)
