"""Timing, and one Markdown page per benchmark: machine, versions, command, table."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from math import isnan
from pathlib import Path
from time import perf_counter
from typing import Any

RESULTS = Path(__file__).parent / "results"
OURS = ("numpy", "scipy", "numba", "scikit-learn", "POT")
PEERS = ("XPySom", "IntraSOM", "MiniSom", "k-means-constrained", "anonypyx")


def seconds(work: Callable[[], Any], repeats: int = 1) -> float:
    """Least wall time of ``repeats`` runs."""
    times = []
    for _ in range(repeats):
        begun = perf_counter()
        work()
        times.append(perf_counter() - begun)
    return min(times)


def page(name: str, title: str, tables: Sequence[str], notes: str = "") -> None:
    """Write ``results/<name>.md`` and show it."""
    head = f"# {title}\n\n{machine()}\n\nCommand: `python benchmarks/bench_{name}.py`"
    text = "\n\n".join(part for part in (head, *tables, notes) if part) + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text)
    print(text)


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table; floats are shown with four digits."""
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    return "\n".join(lines + ["| " + " | ".join(map(shown, row)) + " |" for row in rows])


def shown(cell: Any) -> str:
    """A cell as text; what was not measured says so."""
    if isinstance(cell, float) and isnan(cell):
        return "not run"
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def machine() -> str:
    """Cores, memory and versions; nothing that names the machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    threads = os.environ.get("OMP_NUM_THREADS", "not set")
    return (
        f"Machine: {len(os.sched_getaffinity(0))} cores, {memory:.0f} GB, {platform.machine()}, {platform.system()}; "
        f"OMP_NUM_THREADS {threads}. Python {sys.version.split()[0]}; "
        + ", ".join(f"{name} {installed(name)}" for name in OURS + PEERS)
        + "."
    )


def installed(name: str) -> str:
    """Version of a package, or that it is not there."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"
