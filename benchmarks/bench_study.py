"""Whole studies of three holders at 10,000, 100,000 and 1,000,000 records: time, memory, growth, where it goes.

Each study is a process of its own, on local Ray, fed from a file; memory is the largest that one of its processes
had, without what processes share.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.reporting import page, table
from benchmarks.tables import population

SIZES = (10_000, 100_000, 1_000_000)
COLUMNS, K = 30, 5


def one_study(path: str, exposure: str) -> None:
    """The study of a child process: prints its summary and the seconds of each step."""
    from federated_anon import simulate

    begun: list[tuple[str, float]] = [("start", time.perf_counter())]
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        told = begun.append
        result = simulate(
            path, k=K, holders=3, exposure=exposure, out=run, listen=lambda p: told((str(p.step), time.perf_counter()))
        )
        sent = bytes_sent(run)
    begun.append(("end", time.perf_counter()))
    steps: dict[str, float] = {}
    for (name, since), (_, until) in pairwise(begun):
        steps[name] = steps.get(name, 0.0) + until - since
    print(json.dumps(dict(result.summary) | {"steps": steps, "grouping": result.report["grouping"]} | sent))


def bytes_sent(run: Path) -> dict[str, int]:
    """From the ledgers: what the holder that sent most sent, and what all sent apart from the release's content."""
    ledgers = [[json.loads(line) for line in path.read_text().splitlines()] for path in (run / "ledger").glob("*")]
    totals = [sum(entry["bytes"] for entry in ledger) for ledger in ledgers]
    content = sum(entry["bytes"] for ledger in ledgers for entry in ledger if entry["step"] == "release")
    return {"most_sent": max(totals), "protocol": sum(totals) - content}


def watched(records: int, exposure: str, folder: Path) -> dict[str, Any]:
    """A study in a process of its own, with the most memory that one of its processes had, in MB."""
    path = folder / f"{records}.parquet"
    if not path.exists():
        made = population(records, COLUMNS, seed=0)
        pyarrow.parquet.write_table(pa.table({f"c{i}": made[:, i] for i in range(COLUMNS)}), path)
    with tempfile.TemporaryFile("w+") as told:
        child = subprocess.Popen([sys.executable, __file__, "--one", str(path), exposure], stdout=told)
        most = 0.0
        while child.poll() is None:
            most = max(most, largest(child.pid))
            time.sleep(0.25)
        told.seek(0)
        return json.loads(told.read()) | {"memory": most, "size": records}


def largest(pid: int) -> float:
    """Memory of the largest process at or below ``pid``, without what it shares, in MB."""
    try:
        parent = psutil.Process(pid)
        infos = [one.memory_info() for one in [parent, *parent.children(recursive=True)]]
    except psutil.Error:
        return 0.0
    return max((info.rss - info.shared) / 2**20 for info in infos)


def pages(exposure: str, runs: list[dict[str, Any]]) -> list[str]:
    """One table per exposure, the exponent of growth, and the steps of the largest run."""
    head = (
        "records",
        "whole study, s",
        "information loss, %",
        "k reached",
        "MB sent by holders",
        "MB of the one that sent most",
        "MB apart from the release's content",
        "largest process, MB",
    )
    rows = [
        (
            f"{r['size']:,}",
            r["seconds"],
            r["information_loss_percent"],
            r["k_reached"],
            r["bytes_sent"] / 1e6,
            r["most_sent"] / 1e6,
            r["protocol"] / 1e6,
            r["memory"],
        )
        for r in runs
    ]
    sizes, times = (np.log([run[name] for run in runs]) for name in ("size", "seconds"))
    growth = ", ".join(f"{slope:.2f}" for slope in np.diff(times) / np.diff(sizes))
    steps = runs[-1]["steps"]
    shares = [(name, spent, 100 * spent / sum(steps.values())) for name, spent in steps.items()]
    return [
        f"## {exposure.capitalize()} exposure",
        table(head, rows),
        f"Exponent of growth from size to size: {growth}." if growth else "",
        f"Steps of the run of {runs[-1]['size']:,} records; a step ends when the next one is asked, so the "
        "coordinator's grouping counts to the last step before `constrain`:",
        table(("step", "s", "%"), shares),
    ]


def main() -> None:
    """All sizes in all exposures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--exposures", nargs="*", default=["open", "sealed"])
    parser.add_argument("--one", nargs=2, metavar=("FILE", "EXPOSURE"), help="one study, in this process")
    chosen = parser.parse_args()
    if chosen.one:
        one_study(*chosen.one)
        return
    with tempfile.TemporaryDirectory() as folder:
        parts = [
            part
            for exposure in chosen.exposures
            for part in pages(exposure, [watched(size, exposure, Path(folder)) for size in chosen.sizes])
        ]
    page("study", f"Whole studies, three holders, {COLUMNS} columns, k={K}", parts)


if __name__ == "__main__":
    main()
