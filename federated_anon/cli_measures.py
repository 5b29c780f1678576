"""Commands that measure: ``compare`` methods, ``evaluate`` a release."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from federated_anon import console
from federated_anon.errors import SettingsRefused

if TYPE_CHECKING:
    from federated_anon.comparison import Cell, Sweep

app = typer.Typer(add_completion=False)


def names(text: str) -> tuple[str, ...]:
    """Words of a comma-separated option."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def numbers(option: str, text: str) -> tuple[int, ...]:
    """Whole numbers of a comma-separated option."""
    words = names(text)
    if wrong := [word for word in words if not word.isdecimal()]:
        raise SettingsRefused("command line", [f"{option} takes whole numbers, got '{word}'" for word in wrong])
    return tuple(int(word) for word in words)


class Counter(Protocol):
    """Something that is told of every finished cell."""

    def __call__(self, cell: Cell, seconds: float) -> None:
        """A cell is done."""
        ...


@contextmanager
def counting(total: int, done: int, quiet: bool) -> Iterator[Counter]:
    """Progress on stderr: a bar in a terminal, a line per cell in a log, or nothing."""
    if quiet:
        yield lambda cell, seconds: None
        return
    if not console.errors.is_terminal:
        yield _lines(total, done)
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    shown = (BarColumn(bar_width=20), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("gone,"))
    last = TextColumn("left  {task.description}", markup=False, style="dim")
    with Progress(*shown, TimeRemainingColumn(), last, console=console.errors, transient=True) as progress:
        task = progress.add_task("", total=total, completed=done)
        yield lambda cell, seconds: progress.update(task, advance=1, description=cell.name)


def _lines(total: int, done: int) -> Counter:
    begun, count = time.perf_counter(), done

    def tell(cell: Cell, seconds: float) -> None:
        nonlocal count
        count += 1
        gone = time.perf_counter() - begun
        console.errors.print(f"{gone:8.1f} s  {count}/{total}  {cell.name} ({seconds:.1f} s)", soft_wrap=True)

    return tell


def measure_cell(wish: tuple[Sweep, Cell]) -> dict[str, Any]:
    """One cell, in a worker's process."""
    from federated_anon.comparison import measured
    from nodes.source import read_table

    return measured(*wish, read=read_table)


def sweep_on_ray(sweep: Sweep, cells: Sequence[Cell], workers: int) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Cells with their figures as they finish, on a Ray cluster of this machine alone."""
    from federated_anon.simulate import RAY_ALONE, RAY_MANNERS

    for name, value in (RAY_MANNERS | RAY_ALONE).items():
        os.environ.setdefault(name, value)
    from coordinator.runtime import as_finished, own_cluster

    with own_cluster(workers):
        for (_, cell), figures in as_finished(measure_cell, [(sweep, cell) for cell in cells], workers):
            yield cell, figures


@app.command(
    "compare",
    help="Which method, which k: play studies on one or more tables and rank the methods by what is lost and what is "
    "still learned. Interrupt it when you like; the same command goes on where it stood.",
    epilog="Example:\n\nfederated-anon compare wine.csv yeast.csv --label label --methods best,mdav,c-tca --out trial",
)
def compare_command(
    files: Annotated[list[Path], typer.Argument(metavar="DATA...", help="CSV, Parquet or Arrow, a row per person.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where results go; an unfinished one is gone on with.")],
    methods: Annotated[str, typer.Option(metavar="NAMES", help="Comma-separated.")] = "best,mdav,c-tca",
    k: Annotated[str, typer.Option("--k", metavar="NUMBERS", help="Comma-separated.")] = "3,5,10",
    holders: Annotated[str, typer.Option(metavar="NUMBERS", help="To how many the columns are dealt.")] = "3",
    seeds: Annotated[str, typer.Option(metavar="NUMBERS", help="Each deals columns and folds anew.")] = "0,1,2",
    label: Annotated[str | None, typer.Option(metavar="NAME", help="Column that models learn; it is kept.")] = None,
    drop: Annotated[str, typer.Option(metavar="NAMES", help="Columns that take no part, such as names.")] = "",
    folds: Annotated[int, typer.Option(help="Folds of the held-out protocol; 0: 5, above 2,000 records 3.")] = 0,
    workers: Annotated[int, typer.Option(min=0, help="Cells at once; 0: one per core.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout; no progress display.")] = False,
) -> None:
    """Methods against methods."""
    from federated_anon.comparison import Store, planned, standings
    from federated_anon.comparison.pages import headline, parts
    from federated_anon.comparison.writing import write_results

    sweep = planned(
        [file.absolute() for file in files],
        names(methods),
        numbers("--k", k),
        numbers("--holders", holders),
        numbers("--seeds", seeds),
        label,
        names(drop),
        folds,
    )
    store = Store(out, sweep)
    store.open()
    total, missing = len(sweep.cells()), store.missing()
    if missing:
        at_once = workers or len(os.sched_getaffinity(0))
        with counting(total, total - len(missing), as_json) as tell:
            for cell, figures in sweep_on_ray(sweep, missing, at_once):
                store.keep(cell, figures)
                tell(cell, figures["cell_seconds"])
    results = store.table()
    found = standings(sweep, results)
    written = write_results(out, sweep, results, found)
    if as_json:
        ranked = {name: dict(ranking.best_first) for name, ranking in found.rankings.items()}
        console.print_json({"cells": total, "measured_now": len(missing), "mean_ranks": ranked, "out": str(out)})
        return
    for part in parts(sweep, found)[: len(found.rankings)]:
        console.screen().print(console.grid(part.title, part.table.columns, part.table.rows, right=("mean rank",)))
    console.say(headline(found), *(f"Could not be: {one}" for one in found.impossible))
    console.say("Written: " + ", ".join(str(place) for place in written))
