"""What a finished study tells: one JSON object for machines, two tables for people."""

from __future__ import annotations

from typing import Any

from federated_anon import console
from federated_anon.cli_set_studies import tell_sets
from federated_anon.report.run_page import PAGE, opening
from federated_anon.simulate import Result

MOST_COLUMNS = 24
"""Most columns that a summary lists."""


def tell(result: Result, as_json: bool) -> None:
    """The summary, for machines or for people."""
    if result.report.get("kind") == "set-valued":
        tell_sets(result, as_json)
        return
    if as_json:
        console.print_json(result.summary)
        return
    columns = sorted(result.report["columns"], key=lambda column: -(column["information_loss_percent"] or 0))
    few = columns[:MOST_COLUMNS] if len(columns) > MOST_COLUMNS else result.report["columns"]
    rows = [(c["name"], c["holder"], c["role"], c["kind"], console.percent(c["information_loss_percent"])) for c in few]
    screen = console.screen()
    screen.print(console.grid("Columns", ("column", "holder", "role", "type", "lost"), rows, right=("lost",)))
    if len(few) < len(columns):
        console.say(f"... and {len(columns) - len(few)} columns that lost less; report.json has them all.")
    screen.print(console.pairs("Release", summary_rows(result)))
    console.say(*(f"Note: {caveat}" for caveat in result.report["caveats"]))
    if result.folder:
        console.say(f"Report: {result.folder / PAGE}", opening(result.folder / PAGE))
    verify = f"federated-anon verify {result.folder}" if result.folder else "the same with --out FOLDER writes the run"
    console.say(f"Next: {verify}")


def summary_rows(result: Result) -> dict[str, Any]:
    """What a person wants to know first."""
    summary = result.summary
    asked = f" (asked as {summary['method_asked']})" if "method_asked" in summary else ""
    reached = {
        **{f"{name}: values per class (l)": f"{value:.3g}" for name, value in summary["diversity_reached"].items()},
        **{f"{name}: distance (t)": f"{value:.3g}" for name, value in summary["closeness_reached"].items()},
    }
    return {
        "people": f"{summary['records']} in {summary['groups']} groups",
        "smallest class (k)": f"{summary['k_reached']} (asked {summary['k']})",
        **reached,
        "information lost": f"{summary['information_loss_percent']:.2f} %",
        "method, exposure": f"{summary['method']}{asked}, {summary['exposure']}",
        "groups found by": result.report["grouping"],
        "sent by holders": console.size(summary["bytes_sent"]),
        "time": f"{summary['seconds']} s",
        "run": summary["run"] or "not written",
    }
