"""Growth: time, memory and loss of the default grouping at 10,000, 100,000 and 1,000,000 x 30, k=5."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from itertools import pairwise
from math import log10
from time import perf_counter, process_time

os.environ.setdefault("OMP_NUM_THREADS", "2")

import numpy as np
from reporting import page, table
from tables import population

from federated_anon.microaggregation import MDAV, best_groups, information_loss
from federated_anon.som import BatchSOM, Grid

SIZES = (10_000, 100_000, 1_000_000)
COLUMNS, K = 30, 5


def measure(records: int) -> str:
    """One size: seconds of a map, wall and processor seconds of grouping, loss, MDAV's loss, megabytes, route."""
    best_groups(population(2000, 3), K, large=100)
    points = population(records, COLUMNS)
    grid, block = Grid.for_records(records), points[:, ::3].astype(np.float32)
    begun = perf_counter()
    BatchSOM(grid.rows, grid.cols).fit(block, np.random.default_rng(0)).assign(block)
    mapped = perf_counter()
    worked = process_time()
    grouping = best_groups(points, K, seed=0)
    grouped, worked = perf_counter(), process_time() - worked
    whole = information_loss(points, MDAV(K).fit(points).labels_) if records <= 100_000 else float("nan")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return f"{mapped - begun} {grouped - mapped} {worked} {grouping.loss} {whole} {memory} {grouping.route}"


def main() -> None:
    rows: list[tuple[object, ...]] = []
    for records in SIZES:
        words = subprocess.check_output([sys.executable, __file__, str(records)], text=True).split()
        rows.append((f"{records:,}", words[6], *map(float, words[:6])))
    pace = [log10(float(str(b[4])) / float(str(a[4]))) for a, b in pairwise(rows)]
    heads = (
        "records",
        "route",
        "map of 10 columns, s",
        "grouping, s",
        "processor s of it",
        "loss, %",
        "loss of MDAV over the whole table, %",
        "peak MB",
    )
    note = "Exponent of the grouping's processor time from size to size: " + ", ".join(f"{step:.2f}" for step in pace)
    note += ". Each size runs in its own process; peak memory includes the generator's own."
    page("growth", "Growth with the number of records, 30 columns, k=5", [table(heads, rows)], note)


if __name__ == "__main__":
    print(measure(int(sys.argv[1]))) if len(sys.argv) > 1 else main()
