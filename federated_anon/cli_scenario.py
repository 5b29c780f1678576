"""The command ``scenario``: play many sites before anyone signs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from federated_anon import console
from federated_anon.cli_measures import counting

app = typer.Typer(add_completion=False)


@app.command(
    "scenario",
    help="Play a study at many sites over a real or generated table: what if they overlap less, deal columns "
    "otherwise, drop out, lag or lie? One table and pictures. Interrupt it when you like; the same command goes on.",
    epilog="Example:\n\nfederated-anon scenario deploy/scenarios/eight.toml --out played",
)
def scenario_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The scenario file; docs/scenarios.md explains it.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where results go; an unfinished one is gone on with.")],
    workers: Annotated[int, typer.Option(min=0, help="Plays at once; 0: one per core.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout; no progress display.")] = False,
) -> None:
    """Scenarios, played."""
    from federated_anon.comparison.store import Store
    from federated_anon.comparison.writing import write_files
    from federated_anon.play import play_scenarios
    from federated_anon.scenario import load_scenario
    from federated_anon.scenario.pages import html, markdown, short_rows

    plan = load_scenario(file)
    store = Store(out, plan)
    store.open()
    total, missing = len(plan.plays), store.missing()
    if missing:
        at_once = workers or len(os.sched_getaffinity(0))
        with counting(total, total - len(missing), as_json) as tell:
            for cell, figures in play_scenarios(plan, missing, at_once):
                store.keep(cell, figures)
                tell(cell, figures["seconds"])
    results = store.table()
    rows = results.to_pylist()
    written = write_files(out, results, {"scenarios.md": markdown(plan, rows), "scenarios.html": html(plan, rows)})
    if as_json:
        console.print_json({"plays": rows, "measured_now": len(missing), "out": str(out)})
        return
    console.screen().print(console.listing(short_rows(plan, rows)))
    console.say(*(f"{row['scenario']}: no release. {row['reason']}" for row in rows if row.get("reason")))
    console.say("Written: " + ", ".join(str(place) for place in written))
