"""Sealed splitting alone: time and bytes of all holders together on large tables, and loss against MDAV.

Seconds are those of three holders and the coordinator's part, one after another in one process.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.csv

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.reporting import page, table
from benchmarks.tables import SHARED, population
from federated_anon.arrays import Points
from federated_anon.microaggregation import MDAV, information_loss
from federated_anon.sealed import joint_classes, sealed_groups

TABLES = ("census", "tarragona", "eia", "yeast")
SEEDS, K, KS = (1, 2, 3), 5, (3, 5, 10)


def published(name: str) -> Points | None:
    """A published table, standardised, without its label; nothing where it is absent."""
    path = SHARED / "data" / f"{name}.csv"
    if not path.exists():
        return None
    content = pyarrow.csv.read_csv(path)
    kept = [content[c].to_numpy().astype(float) for c in content.column_names if c != "label"]
    points = np.column_stack(kept)
    return (points - points.mean(axis=0)) / points.std(axis=0)


def dealt(points: Points, seed: int) -> list[Points]:
    """Columns dealt at random to three holders."""
    parts = np.array_split(np.random.default_rng(seed).permutation(points.shape[1]), 3)
    return [points[:, part] for part in parts]


def size_row(records: int) -> tuple[object, ...]:
    """Time, levels and bytes at one size."""
    points = population(records, 30)
    wall, cpu = time.perf_counter(), time.process_time()
    found = sealed_groups(dealt(points, 0), K, SEEDS)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    smallest = int(np.bincount(joint_classes(found.transcript)).min())
    sent = found.transcript.size / 2**20
    return (
        f"{records:,}",
        wall,
        cpu,
        len(found.transcript.levels),
        sent,
        information_loss(points, found.labels),
        smallest,
    )


def loss_row(name: str, points: Points) -> tuple[object, ...]:
    """Mean ratio to MDAV over five deals, at each k."""
    ratios = []
    for k in KS:
        losses = [information_loss(points, sealed_groups(dealt(points, s), k, SEEDS).labels) for s in range(5)]
        ratios.append(float(np.mean(losses)) / information_loss(points, MDAV(k).fit(points).labels_))
    return name, *ratios


def main() -> None:
    """All sizes, and all published tables that are there."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    chosen = parser.parse_args()
    sealed_groups(dealt(population(200, 30), 0), K, SEEDS)
    head = (
        "records",
        "s",
        "s of processor",
        "levels",
        "MB sent by holders",
        "loss, %",
        "smallest class of the transcript",
    )
    sizes = table(head, [size_row(records) for records in chosen.records])
    present = {name: points for name in TABLES if (points := published(name)) is not None}
    ratios = [loss_row(name, points) for name, points in present.items()]
    losses = table(("table", *(f"loss / MDAV, k={k}" for k in KS)), ratios)
    page("sealed", f"Sealed splitting, three holders, 30 columns, k={K}", [sizes, losses])


if __name__ == "__main__":
    main()
