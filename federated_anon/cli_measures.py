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
    from federated_anon.comparison.store import Named

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

    def __call__(self, cell: Named, seconds: float) -> None:
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

    def tell(cell: Named, seconds: float) -> None:
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

    for name, value in (RAY_MANNERS | RAY_ALONE | {"RAY_worker_niceness": "0"}).items():
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
    folds: Annotated[int, typer.Option(help="Held-out folds; 0: 5, of large tables a third.")] = 0,
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


@app.command(
    "evaluate",
    help="A release against its originals: what it keeps, what it loses, what it risks. RELEASE is a table, or the "
    "folder of a run, which brings the roles of its columns itself.",
    epilog="Example:\n\nfederated-anon evaluate people.csv trial --label illness",
)
def evaluate_command(
    original: Annotated[Path, typer.Argument(metavar="ORIGINAL", help="The table as it was.")],
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="The release: a table, or a run's folder.")],
    quasi: Annotated[str, typer.Option(metavar="NAMES", help="Quasi-identifiers; '*' is all not named else.")] = "*",
    sensitive: Annotated[str, typer.Option(metavar="NAMES", help="Columns to which l and t apply.")] = "",
    keep: Annotated[str, typer.Option(metavar="NAMES", help="Columns published as they are.")] = "",
    drop: Annotated[str, typer.Option(metavar="NAMES", help="Columns of ORIGINAL that were not published.")] = "",
    key: Annotated[str | None, typer.Option(metavar="NAME", help="Column of both: which row is whose.")] = None,
    aligned: Annotated[bool, typer.Option("--aligned", help="Row by row, RELEASE stands for ORIGINAL.")] = False,
    label: Annotated[str | None, typer.Option(metavar="NAME", help="Column that models learn.")] = None,
    person: Annotated[str | None, typer.Option(metavar="NAME", help="Sets, long table: who.")] = None,
    item: Annotated[str | None, typer.Option(metavar="NAME", help="Sets, long table: what.")] = None,
    column: Annotated[str | None, typer.Option(metavar="NAME", help="Sets: the column of lists.")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same figures.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """A release, measured."""
    from federated_anon.setvalued.evaluation import is_set_folder

    if is_set_folder(release):
        evaluate_set_run(original, release, {"person": person, "item": item, "column": column}, seed, as_json)
        return
    from federated_anon.deal import Roles
    from federated_anon.evaluation import evaluate
    from federated_anon.measuring import columns_of_run, declared_for, rows_by_key, shown
    from nodes.source import read_table

    before = read_table(original)
    if release.is_dir():
        after, columns, told = columns_of_run(release)
    else:
        free = set(before.column_names) - {*names(quasi), *names(sensitive), *names(keep)}
        held = (label,) if label in free else ()
        roles = Roles(names(quasi), names(sensitive), (*names(keep), *held), names(drop), key)
        after, told = read_table(release), {}
        columns = declared_for(before, roles)
    rows = rows_by_key(before, after, key, aligned)
    if key and key in after.column_names:
        after = after.drop_columns([key])
    found = {**evaluate(before, after, columns, label=label, rows=rows, seed=seed), **told}
    if as_json:
        console.print_json(found)
        return
    for title, header, lines in shown(found):
        console.screen().print(console.grid(title, header, lines, right=header[1:2]))
    console.say(*(f"Note: {note}" for note in found["notes"]))


def evaluate_set_run(original: Path, run: Path, form: dict[str, str | None], seed: int, as_json: bool) -> None:
    """A run on sets against its original; for the owner of the data."""
    from federated_anon.setvalued.evaluation import evaluate_sets, told
    from federated_anon.setvalued.formats import read_transactions

    found = evaluate_sets(read_transactions(original, **form), run, seed)
    if as_json:
        console.print_json(found)
        return
    console.screen().print(console.pairs("What was lost, and what is at risk", told(found)))
    console.say("For the owner of the data only: these figures are measured against the original.")


def write_evaluation(file: Path, out: Path, options: dict[str, Any], label: str | None) -> None:
    """Measure a simulated run against its file, by the held-out protocol too, and write ``evaluation.json`` into it."""
    from federated_anon.measuring import evaluate_simulation
    from nodes.source import read_table

    evaluate_simulation(read_table(file), out, options, label)
