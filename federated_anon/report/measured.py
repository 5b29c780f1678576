"""What a simulation can measure because it has all columns in one place: correlations across holders, and a plane.

It is kept beside the run, in ``simulation.json``: no holder signed it, and no study of real holders has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from federated_anon.arrays import Points
from federated_anon.columns import NUMERIC, Column, Kind, Role
from federated_anon.encoding import Encoding
from federated_anon.profiles.profile import correlation_rows
from federated_anon.seeds import stream

SAMPLE = 20_000
DRAWN = 400
MOST_COLUMNS = 16


def measured(before: pa.Table, release: pa.Table, report: Mapping[str, Any]) -> dict[str, Any]:
    """Correlations of all ordered quasi-identifiers, and people on the two main directions of the originals."""
    quasi = [
        Column(c["name"], Role.QUASI, Kind(c["kind"]), 1.0, tuple(c["levels"]))
        for c in report["columns"]
        if c["role"] == Role.QUASI
    ]
    after, rng = sampled(release, report["seed"]), stream(report["seed"], "simulation", "plane")
    encoding = Encoding.fit(before, quasi)
    points, released = encoding.encode(before), encoding.encode(after)
    return {"correlations": _correlations(encoding, points, released), "plane": _plane(points, released, rng)}


def sampled(table: pa.Table, seed: int) -> pa.Table:
    """The table, or of a large one as many rows as tell its structure well enough."""
    if table.num_rows <= SAMPLE:
        return table
    rows = stream(seed, "simulation", "sample").choice(table.num_rows, SAMPLE, replace=False)
    return table.take(pa.array(np.sort(rows)))


def _correlations(encoding: Encoding, points: Points, released: Points) -> dict[str, Any] | None:
    ordered = [c.name for c in encoding.columns if c.kind in NUMERIC or c.kind is Kind.ORDERED][:MOST_COLUMNS]
    if len(ordered) < 2:
        return None
    places = [encoding.slices[name].start for name in ordered]
    sides = [correlation_rows(one, np.ones(len(one)), places) for one in (points, released)]
    return {"names": ordered, "before": sides[0], "after": sides[1]}


def _plane(points: Points, released: Points, rng: np.random.Generator) -> dict[str, Any] | None:
    """A sample of both sides on the first two principal components of the originals, with signs fixed."""
    if points.shape[1] < 2 or len(points) < 3:
        return None
    middle = points.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(points, rowvar=False))
    axes = vectors[:, ::-1][:, :2]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    kept = [float(((one - middle) @ axes).var(axis=0)[n]) for n in (0, 1) for one in (points, released)]
    shown = [one[rng.choice(len(one), min(DRAWN, len(one)), replace=False)] for one in (points, released)]
    sides = [np.round((one - middle) @ axes, 2) + 0.0 for one in shown]
    total = float(values.sum())
    explained = 100 * float(values[-2:].sum()) / total if total > 0 else 0.0
    return {
        "before": sides[0].tolist(),
        "after": sides[1].tolist(),
        "explained": round(explained, 1),
        "variance": [[round(value, 4) for value in kept[n : n + 2]] for n in (0, 2)],
    }
