"""What it costs to hide gains: whole sealed studies, winners by gain at the coordinator and by secure argmax."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.reporting import page, table
from benchmarks.tables import SHARED, population
from federated_anon import simulate

K = 5


def tables(records: int) -> dict[str, pa.Table]:
    """Census, where it is there, and a made population."""
    found = {}
    census = SHARED / "data" / "census.csv"
    if census.exists():
        found["Census"] = pyarrow.csv.read_csv(census)
    points = population(records, 30)
    found[f"{records:,} x 30"] = pa.table({f"c{number:02d}": np.asarray(points[:, number]) for number in range(30)})
    return found


def row(name: str, content: pa.Table, holders: int, winner: str) -> tuple[object, ...]:
    """One study: seconds, megabytes and steps."""
    steps: list[str] = []
    begun = time.perf_counter()
    result = simulate(
        content,
        k=K,
        holders=holders,
        exposure="sealed",
        runtime="in-process",
        collaboration={"winner": winner},
        listen=lambda progress: steps.append(progress.step),
    )
    seconds = time.perf_counter() - begun
    loss = result.summary["information_loss_percent"]
    return name, holders, winner, seconds, result.summary["bytes_sent"] / 1e6, len(steps), steps.count("propose"), loss


def main() -> None:
    """Both ways on all tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=100_000)
    chosen = parser.parse_args()
    made = tables(chosen.records)
    row("warm", next(iter(made.values())), 2, "secure")
    head = ("table", "holders", "winner", "s, whole study", "MB sent by holders", "steps", "levels", "loss, %")
    rows = [row(n, t, p, w) for n, t in made.items() for p in (2, 3, 5) for w in ("gain", "secure")]
    page(
        "winner",
        f"Winners by gain and by secure argmax, sealed exposure, k={K}, holders in one process",
        [table(head, rows)],
    )


if __name__ == "__main__":
    main()
