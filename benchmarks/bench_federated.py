"""Information loss of whole federated studies against centralised MDAV and the same search run centrally.

Three holders, columns dealt by seeds 0-4, mean; the tables of the CASC project, Wine and Yeast where they are.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow.csv

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.reporting import page, table
from benchmarks.tables import SHARED
from federated_anon import simulate
from federated_anon.microaggregation import MDAV, best_groups, information_loss

TABLES = {"census": (), "tarragona": (), "eia": (), "wine": ("label",), "yeast": ("label",)}
KS, SEEDS = (3, 5, 10), range(5)


def rows(name: str, dropped: tuple[str, ...]) -> list[tuple[object, ...]]:
    """One row per k: losses and ratios."""
    content = pyarrow.csv.read_csv(SHARED / "data" / f"{name}.csv").drop_columns(list(dropped))
    points = np.column_stack([column.to_numpy().astype(float) for column in content.columns])
    points = (points - points.mean(axis=0)) / points.std(axis=0)
    return [one_row(name, content, points, k) for k in KS]


def one_row(name: str, content: pyarrow.Table, points: np.ndarray, k: int) -> tuple[object, ...]:
    """Losses at one k."""
    mdav = information_loss(points, MDAV(k).fit(points).labels_)
    central = best_groups(points, k, 0).loss
    found = {e: np.mean([loss(content, k, seed, e) for seed in SEEDS]) for e in ("open", "sealed")}
    open_, sealed = float(found["open"]), float(found["sealed"])
    return name, k, mdav, central, open_, open_ / mdav, open_ / central, sealed, sealed / mdav


def loss(content: pyarrow.Table, k: int, seed: int, exposure: str) -> float:
    """Information loss of one study."""
    found = simulate(content, k=k, holders=3, seed=seed, exposure=exposure, runtime="in-process")
    return float(found.summary["information_loss_percent"])


def main() -> None:
    """All tables that are there."""
    present = {name: dropped for name, dropped in TABLES.items() if (SHARED / "data" / f"{name}.csv").exists()}
    head = ("table", "k", "MDAV, %", "search, central, %", "open, %", "/ MDAV", "/ central", "sealed, %", "/ MDAV")
    found = [row for name, dropped in present.items() for row in rows(name, dropped)]
    missing = ", ".join(sorted(set(TABLES) - set(present)))
    notes = f"Not here, so skipped: {missing}." if missing else ""
    page(
        "federated",
        "Information loss of federated studies, three holders, mean of seeds 0-4",
        [table(head, found)],
        notes,
    )


if __name__ == "__main__":
    main()
