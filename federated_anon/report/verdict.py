"""The verdict on a run in plain words: what is kept, which risk is left, what was lost, what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from federated_anon.report.page import Finding, Tile, Verdict

LITTLE, MUCH = 10.0, 30.0
"""Percent of information lost: little up to the first, much from the second on."""

Report = Mapping[str, Any]


def verdict_of(report: Report, size: str) -> Verdict:
    """The top of the page."""
    findings = (*_promises(report), *_risks(report), _loss(report), *(Finding("note", t) for t in report["caveats"]))
    broken = any(finding.tone == "bad" for finding in findings)
    people = f"{report['records']:,}"
    kept = f"Each of the {people} people is alike with at least {report['k_reached'] - 1} others."
    headline = "A promise of this study is not kept: do not publish." if broken else kept
    return Verdict("bad" if broken else "good", headline, _tiles(report, size), findings, _next(report, broken))


def at_most_linked(report: Report) -> float:
    """Expected share of people linked by somebody who knows every quasi-identifier: classes over records."""
    return sum(number for _, number in report["class_sizes"]) / max(report["records"], 1)


def _tiles(report: Report, size: str) -> tuple[Tile, ...]:
    lost = report["information_loss_percent"]
    return (
        Tile("Smallest group (k)", str(report["k_reached"]), f"asked for {report['k']}"),
        Tile("Information lost", f"{lost:.1f} %", f"of the variance, over {_quasi(report)} columns"),
        Tile(
            "Linked at most",
            f"{100 * at_most_linked(report):.1f} %",
            f"of people; the bound is {100 / report['k']:.0f} %",
        ),
        Tile("Left the holders", size, f"{len(report['holders'])} holders, {report['exposure']} exposure"),
    )


def _quasi(report: Report) -> int:
    return sum(column["role"] == "quasi-identifier" for column in report["columns"])


def _promises(report: Report) -> list[Finding]:
    wanted = report["settings"]["privacy"]
    k_kept = report["k_reached"] >= report["k"]
    found = [
        Finding(
            "good" if k_kept else "bad",
            f"k-anonymity is {'kept' if k_kept else 'broken'}: every combination of quasi-identifiers occurs "
            f"{report['k_reached']} times or more, {report['k']} was asked.",
        )
    ]
    for name, value in report["diversity_reached"].items():
        if wanted["l"] is not None:
            kept = value >= wanted["l"] - 1e-9
            state = "kept" if kept else "broken"
            told = f"l-diversity of {name} is {state}: {value:.3g}, at least {wanted['l']} was asked."
            found.append(Finding("good" if kept else "bad", told))
        elif value < 2:
            told = f"Some groups show a single value of {name}: whoever is in one has that value. No l was asked."
            found.append(Finding("note", told))
    for name, value in report["closeness_reached"].items():
        if wanted["t"] is not None:
            kept = value <= wanted["t"] + 1e-9
            state = "kept" if kept else "broken"
            told = f"t-closeness of {name} is {state}: {value:.3g}, at most {wanted['t']} was asked."
            found.append(Finding("good" if kept else "bad", told))
    return found


def _risks(report: Report) -> list[Finding]:
    most = at_most_linked(report)
    told = (
        f"Somebody who knows every quasi-identifier of everybody links {100 * most:.1f} % of people at most; guessing "
        f"links {100 / max(report['records'], 1):.2g} %, k promises {100 / report['k']:.3g} % or less."
    )
    return [Finding("good" if most <= 1 / report["k"] + 1e-12 else "bad", told)]


def _loss(report: Report) -> Finding:
    lost = report["information_loss_percent"]
    word = "Little" if lost <= LITTLE else "Much" if lost >= MUCH else "Some"
    measured = [c for c in report["columns"] if c["information_loss_percent"] is not None]
    worst = max(measured, key=lambda c: c["information_loss_percent"], default=None)
    most = f"; {worst['name']} lost most, {worst['information_loss_percent']:.1f} %" if worst else ""
    return Finding("note" if lost >= MUCH else "good", f"{word} information was lost: {lost:.1f} %{most}.")


def _next(report: Report, broken: bool) -> tuple[str, ...]:
    if broken:
        return ("Do not publish the release.", "Run the study again, and keep this folder for the inquiry.")
    steps = ["Check the run and its signatures: federated-anon verify RUN --pin HOLDER=KEY, with keys you know."]
    measured = [c for c in report["columns"] if (c["information_loss_percent"] or 0) >= MUCH]
    if measured:
        names = ", ".join(c["name"] for c in sorted(measured, key=lambda c: -c["information_loss_percent"])[:3])
        steps.append(f"If you need {names} more closely: give it a greater weight, or drop columns nobody needs.")
    if report["information_loss_percent"] >= MUCH:
        steps.append(
            f"If much less must be lost, agree on a k below {report['k']} before data have left; it is one release."
        )
    if report["exposure"] == "open":
        steps.append("If the coordinator is not to be trusted with cell indices, run the study with sealed exposure.")
    if report["diversity_reached"] and report["settings"]["privacy"]["l"] is None:
        steps.append("Sensitive columns are published: ask for l (values per group) or t (distance) in the study.")
    steps.append("Publish release.csv or release.parquet with this report. Do not release the same data a second time.")
    return tuple(steps)
