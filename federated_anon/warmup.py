"""Compiles the inner loops once, so that the first study does not wait for it: ``python -m federated_anon.warmup``."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from federated_anon.microaggregation import best_groups
from federated_anon.simulate import simulate


def warm_up() -> None:
    """A tiny study in each exposure, and the route of large tables."""
    rng = np.random.default_rng(0)
    table = pa.table({name: rng.normal(size=200) for name in "abcd"})
    for exposure in ("open", "sealed"):
        simulate(table, k=3, holders=2, exposure=exposure, runtime="in-process")
    best_groups(rng.normal(size=(400, 3)), 3, large=100)


if __name__ == "__main__":
    warm_up()
