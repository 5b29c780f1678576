"""What people see in the terminal: progress on stderr, tables, and errors in plain words."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

errors = Console(stderr=True, highlight=False)

SHARES = {
    "enrol": 3,
    "share": 1,
    "align": 3,
    "map": 15,
    "collaborate": 3,
    "settle": 1,
    "code": 28,
    "correct": 4,
    "constrain": 30,
    "release": 5,
    "evaluate": 3,
    "close": 4,
}
"""Percent of a study's time by the end of a typical step; only the display depends on them."""


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


class Display:
    """A progress bar with step, holders, elapsed and remaining time; news is printed above it."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("starting", total=100, holders="")
        self._steps = list(SHARES)

    def __call__(self, standing: Standing) -> None:
        """Show where the study stands."""
        place = self._steps.index(str(standing.step))
        done = sum(SHARES[step] for step in self._steps[:place])
        who = ", ".join(standing.holders)
        self._progress.update(self._task, completed=done, description=str(standing.step), holders=who)
        for line in standing.news:
            self._progress.console.print(f"  {line}", highlight=False)


@contextmanager
def display(quiet: bool) -> Iterator[Display | None]:
    """A progress display on stderr, or none."""
    if quiet:
        yield None
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description:<12}"),
        BarColumn(bar_width=30),
        TimeElapsedColumn(),
        TextColumn("elapsed,"),
        TimeRemainingColumn(),
        TextColumn("left  [dim]{task.fields[holders]}"),
    )
    with Progress(*columns, console=errors, transient=True) as progress:
        yield Display(progress)


def print_json(content: Mapping[str, Any]) -> None:
    """One JSON object on stdout, for machines."""
    sys.stdout.write(json.dumps(content, sort_keys=True) + "\n")


def pairs(title: str, rows: Mapping[str, Any]) -> Table:
    """A table of two columns."""
    table = Table(title=title, show_header=False, title_justify="left")
    for name, value in rows.items():
        table.add_row(name, str(value))
    return table


def grid(title: str, header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Table:
    """A table with a header."""
    table = Table(*header, title=title, title_justify="left")
    for row in rows:
        table.add_row(*(str(value) for value in row))
    return table


def size(count: float) -> str:
    """Bytes for people: 215672 -> '211 KiB'."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "bytes" or count >= 10 else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError("unreachable")
