"""What people see in the terminal: progress on stderr, tables, and errors in plain words."""

from __future__ import annotations

import json
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

errors = Console(stderr=True, highlight=False, markup=False)

SHARES = {
    "enrol": 3,
    "share": 1,
    "align": 3,
    "blind": 0,
    "trace": 0,
    "map": 15,
    "collaborate": 3,
    "settle": 1,
    "label": 0,
    "refine": 0,
    "code": 28,
    "correct": 4,
    "seat": 0,
    "propose": 0,
    "compare": 0,
    "split": 0,
    "constrain": 30,
    "release": 5,
    "evaluate": 3,
    "close": 4,
}
"""Percent of a study's time that a typical step takes; only the display depends on them."""

CREEP_TO = 80.0


class Standing(Protocol):
    """Where a study stands, as the driver tells it."""

    @property
    def step(self) -> str:
        """The step about to be asked."""
        ...

    @property
    def holders(self) -> tuple[str, ...]:
        """Of whom it is asked."""
        ...

    @property
    def news(self) -> tuple[str, ...]:
        """What is new."""
        ...


Listener = Callable[[Standing], None]


class Bar:
    """A progress bar with step, holders, elapsed and remaining time; news is printed above it."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("starting", total=100, holders="")

    def __call__(self, standing: Standing) -> None:
        """Show where the study stands."""
        done = share_done(standing.step, self._progress.tasks[self._task].completed)
        who = ", ".join(standing.holders)
        self._progress.update(self._task, completed=done, description=str(standing.step), holders=who)
        for line in standing.news:
            self._progress.console.print(f"  {line}")


def share_done(step: str, before: float) -> float:
    """Percent done when a step begins; steps that repeat, nobody knows how often, creep towards the last ones."""
    steps = list(SHARES)
    if step not in SHARES:
        return before + max(CREEP_TO - before, 0) / 10
    return max(before, sum(SHARES[one] for one in steps[: steps.index(step)]))


class Lines:
    """Progress for a log: a line per step, with the seconds gone by."""

    def __init__(self) -> None:
        self._started = time.perf_counter()

    def __call__(self, standing: Standing) -> None:
        """Write where the study stands."""
        for line in standing.news:
            errors.print(f"            {line}", soft_wrap=True)
        gone = time.perf_counter() - self._started
        errors.print(f"{gone:8.1f} s  {standing.step}: {', '.join(standing.holders)}", soft_wrap=True)


@contextmanager
def display(quiet: bool) -> Iterator[Listener | None]:
    """A progress display on stderr: a bar in a terminal, lines in a log, or none."""
    if quiet:
        yield None
        return
    if not errors.is_terminal:
        yield Lines()
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description:<11}", markup=False),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
        TextColumn("gone,"),
        TimeRemainingColumn(),
        TextColumn("left  {task.fields[holders]}", markup=False, style="dim"),
    )
    with Progress(*columns, console=errors, transient=True) as progress:
        yield Bar(progress)


def screen() -> Console:
    """Where results go: stdout, with text as it is."""
    return Console(highlight=False, markup=False)


def say(*lines: str) -> None:
    """Lines on stdout, wrapped at the terminal's width with their indent kept."""
    shown = screen()
    for line in lines:
        shown.print(wrapped(line, shown), soft_wrap=True)


def complain(title: str, text: str) -> None:
    """An error on stderr: its title stands out, its lines keep their indent."""
    errors.print(title, style="bold red", end=" ")
    first, *rest = text.splitlines() or [""]
    head = wrapped(f"{title} {first}", errors)[len(title) + 1 :]
    errors.print("\n".join([head, *(wrapped(line, errors) for line in rest)]), soft_wrap=True)


def wrapped(line: str, target: Console) -> str:
    """A line broken at the width of a terminal, later parts indented; in a log it stays whole."""
    if not target.is_terminal:
        return line
    indent = len(line) - len(line.lstrip()) + 2
    return textwrap.fill(
        line, target.width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )


def print_json(content: Mapping[str, Any]) -> None:
    """One JSON object on stdout, for machines."""
    sys.stdout.write(json.dumps(content, sort_keys=True) + "\n")


def pairs(title: str, rows: Mapping[str, Any]) -> Table:
    """A table of two columns."""
    table = Table(title=title, show_header=False, title_justify="left")
    for name, value in rows.items():
        table.add_row(name, str(value))
    return table


def grid(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]], right: Sequence[str] = ()) -> Table:
    """A table with a header; long words are folded, never cut; the columns named in ``right`` hold numbers."""
    table = Table(title=title, title_justify="left")
    for name in header:
        table.add_column(name, overflow="fold", justify="right" if name in right else "left")
    for row in rows:
        table.add_row(*(str(value) for value in row))
    return table


def listing(rows: Sequence[Sequence[Any]]) -> Table:
    """Rows without lines between them, for findings of unequal length."""
    table = Table.grid(padding=(0, 2))
    for row in rows:
        table.add_row(*(str(value) for value in row))
    for column in table.columns[:-1]:
        column.no_wrap = True
    table.columns[-1].overflow = "fold"
    return table


def size(count: float) -> str:
    """Bytes for people: 215672 -> '211 KiB'."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "bytes" or count >= 10 else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError("unreachable")


def percent(value: float | None) -> str:
    """A share for people; nothing where nothing was measured."""
    return "" if value is None else f"{value:.1f} %"
