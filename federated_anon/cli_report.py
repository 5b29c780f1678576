"""The command ``report``: the page of a run, drawn anew from its files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from federated_anon import console

app = typer.Typer(add_completion=False)


@app.command(
    "report",
    help="Draw report.html of a run anew, from report.json and the ledgers; the same files give the same page.",
    epilog="Example:\n\nfederated-anon report trial",
)
def report_command(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """A run's page, drawn anew."""
    from federated_anon.folders import write_whole
    from federated_anon.report.run_page import PAGE, folder_page, opening

    place = folder / PAGE
    write_whole(place, folder_page(folder).encode())
    if as_json:
        console.print_json({"report": str(place), "bytes": place.stat().st_size})
    else:
        console.say(f"Written: {place}", opening(place))
