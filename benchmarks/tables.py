"""Tables for the benchmarks: a documented generator with real structure, and the CASC tables where they are."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from federated_anon.arrays import Points

SHARED = Path(os.environ.get("FEDERATED_ANON_SHARED", Path(__file__).parents[2] / "shared"))


def population(records: int, columns: int, seed: int = 0) -> Points:
    """Standardised records of a mixed population.

    Twelve parts of unequal size; inside a part, columns follow four common factors of the part plus noise. Of the
    columns, a third stays normal, a third is exponentiated (skew), and a third is cut to 2 to 9 ordered categories.
    """
    rng = np.random.default_rng(seed)
    centres = 1.5 * rng.standard_normal((12, columns))
    loadings = rng.standard_normal((12, 4, columns)) * 0.7
    part = rng.choice(12, size=records, p=rng.dirichlet(np.full(12, 2.0)))
    table = centres[part] + 0.4 * rng.standard_normal((records, columns))
    for number in range(12):
        rows = part == number
        table[rows] += rng.standard_normal((int(rows.sum()), 4)) @ loadings[number]
    for column in range(columns):
        if column % 3 == 1:
            table[:, column] = np.exp(0.6 * table[:, column])
        elif column % 3 == 2:
            levels = 2 + column % 8
            cuts = np.quantile(table[:, column], np.linspace(0, 1, levels + 1)[1:-1])
            table[:, column] = np.searchsorted(cuts, table[:, column])
    return (table - table.mean(axis=0)) / table.std(axis=0)


def casc(name: str) -> Points | None:
    """A standardised table of the CASC project, or nothing where it is absent."""
    path = SHARED / "data" / f"{name}.csv"
    if not path.exists():
        return None
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    return (table - table.mean(axis=0)) / table.std(axis=0)
