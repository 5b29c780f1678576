"""Information loss of every method as a whole federated study, and the k that unrepaired recodings reach.

Three holders, columns dealt by the seed; the tables of the CASC project, Wine and Yeast where they are.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow.csv

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.reporting import page, table
from benchmarks.tables import SHARED
from federated_anon import simulate
from federated_anon.kde import recoded
from federated_anon.methods import METHODS, PRESETS
from federated_anon.privacy import smallest_class
from federated_anon.som import BatchSOM, Grid

TABLES = {"census": "", "tarragona": "", "eia": "", "wine": "label", "yeast": "label"}
KS, SEEDS = (3, 5, 10), range(2)


def content_of(name: str) -> pyarrow.Table:
    return pyarrow.csv.read_csv(SHARED / "data" / f"{name}.csv")


def study(name: str, method: str, k: int, seed: int) -> Any:
    """One study; labels are kept, and shared by units where the method learns from them."""
    label = TABLES[name]
    options: dict[str, Any] = {"keep": (label,)} if label else {}
    if PRESETS[method].labels:
        options["labels"] = {"column": label}
    return simulate(content_of(name), k=k, holders=3, method=method, seed=seed, runtime="in-process", **options)


def row(name: str, method: str) -> list[object]:
    """Mean loss at each k, and the mean seconds of a study."""
    if PRESETS[method].labels and not TABLES[name]:
        return [name, method, *["no labels"] * (len(KS) + 1)]
    begun = perf_counter()
    found = [[study(name, method, k, seed).summary for seed in SEEDS] for k in KS]
    each = (perf_counter() - begun) / (len(KS) * len(SEEDS))
    if any(one["k_reached"] < k for k, many in zip(KS, found, strict=True) for one in many):
        raise SystemExit(f"{method} on {name} broke k")
    losses = [float(np.mean([one["information_loss_percent"] for one in many])) for many in found]
    print(name, method, *(round(loss, 2) for loss in losses), flush=True)
    return [name, method, *losses, each]


def unrepaired(name: str) -> list[object]:
    """The k of the recodings alone: densities by each rule, and a global map, on the whole standardised table."""
    content = content_of(name)
    columns = [
        c.to_numpy().astype(float) for n, c in zip(content.column_names, content.columns, strict=True) if n != "label"
    ]
    points = np.column_stack(columns)
    points = (points - points.mean(axis=0)) / np.where(points.std(axis=0) > 0, points.std(axis=0), 1)
    grid = Grid.for_records(len(points))
    som = BatchSOM(grid.rows, grid.cols).fit(points, np.random.default_rng(0))
    kde = [recoded(points, bandwidth=rule) for rule in ("isj", "silverman", "scott")]
    alone = [f"{one.k_reached} ({one.joint.max() + 1} cells)" for one in kde]
    return [name, len(points), *alone, recoded(points, 5).k_reached, smallest_class(som.assign(points))]


def main(names: Sequence[str]) -> None:
    """Losses on the tables named, as far as they are there; the k of unrepaired recodings on all of them."""
    present = [name for name in TABLES if (SHARED / "data" / f"{name}.csv").exists()]
    head = ("table", "method", *(f"k={k}, %" for k in KS), "s per study")
    losses = [row(name, method) for name in names if name in present for method in METHODS]
    reached = ("table", "records", "KDE, isj", "KDE, silverman", "KDE, scott", "KDE, isj, cells >= 5", "k-TCA's map")
    left_out = ", ".join(name for name in TABLES if name not in names or name not in present)
    page(
        "methods",
        f"Every method as a study of three holders, mean of seeds 0-{SEEDS[-1]}",
        [table(head, losses), "k reached before any repair:", table(reached, [unrepaired(name) for name in present])],
        "Every release keeps k, counted anew on the joined table. Labels are shared by units of at least k records "
        '(`share = "cells"`). Times include starting a study, on a machine that was not quiet.'
        + (f" Losses of {left_out} are not in this run (tables are arguments of the command)." if left_out else ""),
    )


if __name__ == "__main__":
    main(sys.argv[1:] or list(TABLES))
