"""A finished sweep for people: one Markdown page, one HTML page, both from the same tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from federated_anon.comparison.outcome import LOSS, MEASURES, SEPARABILITY, Standings
from federated_anon.comparison.pictures import draw_ranks
from federated_anon.comparison.plan import CENTRAL, ORIGINAL, Sweep
from federated_anon.report import Finding, Listing, Prose, Section, Table, Verdict, figure, page
from federated_anon.utility.ranking import Ranking

FLATTERS = (
    "Printed protocol: the papers cross-validate on the anonymised table itself. Records of one group are published "
    "alike and stand in training and test folds at once, so a tree reads a record's label off its own group; random "
    "codes per group score the same. Read it only beside the held-out figure, which trains on a release of the "
    "training folds and tests on originals that this release has never seen."
)
REFERENCE = (
    f"'{CENTRAL}' is MDAV on the joined table, which no holder has; '{ORIGINAL}' is no anonymisation. Both are "
    "references beside the ranking."
)


@dataclass(frozen=True, slots=True)
class Part:
    """A table under a title, with a sentence before it."""

    title: str
    says: str
    table: Table


def parts(sweep: Sweep, found: Standings) -> list[Part]:
    """All tables of the result."""
    shown = [ranks_part(name, ranking) for name, ranking in found.rankings.items()]
    if sweep.label:
        shown += [protocols_part(sweep, found, k) for k in sweep.ks]
    shown.append(cases_part(sweep, found, LOSS, "Information loss, %", 1.0, "100 SSE/SST, mean over seeds."))
    if sweep.label:
        says = "Mean of tree, linear and boosted models, mean over seeds."
        shown.append(cases_part(sweep, found, SEPARABILITY, "Held-out separability, %", 100.0, says))
    says = "Median over columns of 1 - W1/range: 1 is the distribution as it was."
    shown.append(cases_part(sweep, found, "structural_median", "Structural utility", 1.0, says))
    says = "Share of people whom somebody who knows all their values finds; 100/k is the most that k allows."
    shown.append(cases_part(sweep, found, "linked", "Records linked, %", 100.0, says))
    shown.append(cases_part(sweep, found, "seconds", "Seconds of one study, one core", 1.0, "In-process holders."))
    if found.scores:
        rows = tuple(sorted(((m, round(s, 3)) for m, s in found.scores.items()), key=lambda row: -row[1]))
        says = f"Combined utility over the best one's, summed over {len(found.cases)} cases: the most is that number."
        shown.append(Part("Score of the papers, on held-out separability", says, Table(("method", "score"), rows)))
    return shown


def ranks_part(name: str, ranking: Ranking) -> Part:
    """Mean ranks by one measure."""
    title = MEASURES[name][0]
    says = (
        f"Friedman chi2 = {ranking.statistic:.2f}, p = {ranking.p_value:.2g} over {ranking.cases} tables; ranks differ "
        f"beyond chance (Nemenyi, 5 %) from {ranking.critical_difference:.2f} on. Cases of one table (its k) count "
        "once for significance."
    )
    return Part(f"Mean rank: {title}", says, Table(("method", "mean rank"), _rounded(ranking.best_first)))


def protocols_part(sweep: Sweep, found: Standings, k: int) -> Part:
    """A tree's accuracy by both protocols at one k, and how far each method is from the centralised reference."""
    holders = sweep.holders[0]
    rows = []
    for name, _, _ in sweep.tables:
        central = found.mean("held_out_tree", name, CENTRAL, k, 0)
        for method in (ORIGINAL, CENTRAL, *sweep.methods):
            at = (1, 0) if method == ORIGINAL else (k, 0 if method == CENTRAL else holders)
            honest, flattering = (found.mean(m, name, method, *at) for m in ("held_out_tree", "printed_tree"))
            gap = None if honest is None or central is None else 100 * (honest - central)
            rows.append((name, method, _percent(honest), _percent(flattering), "–" if gap is None else f"{gap:+.1f}"))
    head = ("table", "method", "held-out, %", "printed, %", "held-out against mdav-central, points")
    return Part(f"Decision tree by both protocols, k = {k}", FLATTERS, Table(head, tuple(rows)))


def cases_part(sweep: Sweep, found: Standings, measure: str, title: str, factor: float, says: str) -> Part:
    """One row per table, k and number of holders, one column per method."""
    rows = []
    for name, _, _ in sweep.tables:
        for k in sweep.ks:
            for holders in sweep.holders:
                values = [found.mean(measure, name, m, k, holders) for m in sweep.methods]
                values = [found.mean(measure, name, CENTRAL, k, 0), *values]
                rows.append((name, k, holders, *("–" if v is None else f"{factor * v:.2f}" for v in values)))
    return Part(title, says, Table(("table", "k", "holders", CENTRAL, *sweep.methods), tuple(rows)))


def notes(sweep: Sweep, found: Standings) -> list[str]:
    """What a reader must know beside the tables."""
    told = [REFERENCE]
    if found.below_k:
        told.append(f"Not ranked, since they did not reach k everywhere: {', '.join(found.below_k)}.")
    if found.impossible:
        told.append("Could not be: " + "; ".join(found.impossible) + ".")
    return told


def settings(sweep: Sweep) -> str:
    """The sweep in one line."""
    tables = ", ".join(name for name, _, _ in sweep.tables)
    label = f", label '{sweep.label}'" if sweep.label else ""
    return (
        f"Tables: {tables}{label}. Methods: {', '.join(sweep.methods)}. k = {', '.join(map(str, sweep.ks))}; holders "
        f"{', '.join(map(str, sweep.holders))}; seeds {', '.join(map(str, sweep.seeds))}; held-out folds: "
        + (str(sweep.folds) if sweep.folds else "5; above 2,000 records a third, once per seed")
        + "."
    )


def headline(found: Standings) -> str:
    """Who is first by what, in a sentence."""
    firsts = [f"{MEASURES[name][0].lower()}: {ranking.best_first[0][0]}" for name, ranking in found.rankings.items()]
    return "First by mean rank in " + "; ".join(firsts) + "." if firsts else "Too few cases for a ranking."


def markdown(sweep: Sweep, found: Standings) -> str:
    """The whole result as Markdown."""
    lines = ["# Comparison of methods", "", headline(found), "", settings(sweep), ""]
    lines += [line for note in notes(sweep, found) for line in (note, "")]
    if found.rankings:
        lines += ["Critical-difference pictures: " + ", ".join(f"`ranks-{name}.png`" for name in found.rankings), ""]
    for part in parts(sweep, found):
        lines += [f"## {part.title}", "", part.says, "", _grid(part.table), ""]
    return "\n".join(lines)


def html(sweep: Sweep, found: Standings) -> str:
    """The same as a page with the critical-difference pictures in it."""
    pictures = tuple(
        figure(
            f"ranks-{name}",
            MEASURES[name][0],
            f"Best on the left; methods under one bar cannot be told apart with {ranking.cases} tables.",
            partial(draw_ranks, found=ranking),
            Table(("method", "mean rank"), _rounded(ranking.best_first)),
            size=(6.4, 3.0),
            wide=True,
        )
        for name, ranking in found.rankings.items()
    )
    rest = [part for part in parts(sweep, found) if not part.title.startswith("Mean rank")]
    sections = [
        Section("Ranks", "ranks", "Mean ranks over all cases, 1 is best.", pictures),
        Section(
            "Figures",
            "figures",
            REFERENCE,
            tuple(block for part in rest for block in (Prose((part.says,)), Listing(part.title, part.table))),
        ),
    ]
    findings = tuple(Finding("note", note) for note in notes(sweep, found)[1:])
    verdict = Verdict("note", headline(found), findings=findings)
    return page("Comparison of methods", sections, verdict=verdict, subtitle=settings(sweep))


def _rounded(pairs: tuple[tuple[str, float], ...]) -> tuple[tuple[str, float], ...]:
    return tuple((name, round(mean, 2)) for name, mean in pairs)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _grid(table: Table) -> str:
    rows = ["| " + " | ".join(map(str, row)) + " |" for row in (table.columns, *table.rows)]
    return "\n".join([rows[0], "|" + " --- |" * len(table.columns), *rows[1:]])
