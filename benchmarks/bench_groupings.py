"""Groupings: speed of MDAV against the textbook in NumPy and anonypyx, and of all methods on one table."""

from __future__ import annotations

import os
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "2")

import numpy as np
from reporting import page, seconds, table
from tables import population

from federated_anon.arrays import Labels, Points
from federated_anon.microaggregation import (
    HAC,
    MDAV,
    TFRP,
    Blocked,
    KMeansMicroaggregation,
    LocalSearch,
    MaximumDistance,
    Microaggregation,
    Refine,
    UnitGroups,
    VariableMDAV,
    information_loss,
)

K = 5


def textbook_mdav(points: Points, k: int) -> Labels:
    """MDAV as the papers print it, in plain NumPy."""
    labels, left, group = np.empty(len(points), dtype=np.int64), np.arange(len(points)), 0

    def take(seed: Points) -> None:
        nonlocal left, group
        near = np.argpartition(((points[left] - seed) ** 2).sum(axis=1), k - 1)[:k]
        labels[left[near]] = group
        left, group = np.delete(left, near), group + 1

    def farthest(place: Points) -> Points:
        return np.asarray(points[left[((points[left] - place) ** 2).sum(axis=1).argmax()]])

    while len(left) >= 3 * k:
        r = farthest(points[left].mean(axis=0))
        s = farthest(r)
        take(r)
        take(s)
    if len(left) >= 2 * k:
        take(farthest(points[left].mean(axis=0)))
    labels[left] = group
    return labels


def anonypyx_mdav(points: Points, k: int) -> Labels:
    """MDAV-generic of anonypyx."""
    import pandas as pd
    from anonypyx.microaggregation import MDAVGeneric

    frame = pd.DataFrame(points, columns=[f"c{i}" for i in range(points.shape[1])])
    labels = np.empty(len(points), dtype=np.int64)
    for number, rows in enumerate(MDAVGeneric(frame, list(frame.columns)).partition(k)):
        labels[np.asarray(rows)] = number
    return labels


def race(points: Points, peers: dict[str, Callable[[Points, int], Labels]]) -> list[tuple[object, ...]]:
    """Time and loss of our MDAV, then of every peer, as a ratio to ours."""
    labels = MDAV(K).fit(points).labels_
    own = seconds(lambda: MDAV(K).fit(points), repeats=3)
    rows: list[tuple[object, ...]] = [("federated_anon MDAV", own, 1.0, information_loss(points, labels))]
    for name, group in peers.items():
        found: list[Labels] = []
        try:
            time = seconds(lambda group=group, found=found: found.append(group(points, K)))  # type: ignore[misc]
        except ImportError:
            rows.append((name, "skipped: not installed", "", ""))
        except Exception as error:
            rows.append((name, f"skipped: {type(error).__name__}", "", ""))
        else:
            rows.append((name, time, time / own, information_loss(points, found[0])))
    return rows


def methods() -> list[Microaggregation]:
    """Every grouping of the package, as it comes."""
    plain: list[Microaggregation] = [
        MDAV(K),
        VariableMDAV(K),
        MaximumDistance(K),
        TFRP(K),
        HAC(K, refine=False),
        HAC(K),
    ]
    return [*plain, KMeansMicroaggregation(K), UnitGroups(K), Refine(K), LocalSearch(K), Blocked(K)]


def main() -> None:
    MDAV(K).fit(population(500, 3))
    large = race(population(50_000, 10), {"textbook NumPy MDAV": textbook_mdav})
    small = race(population(2000, 10), {"textbook NumPy MDAV": textbook_mdav, "anonypyx MDAV-generic": anonypyx_mdav})
    points, rows = population(5000, 10), []
    for method in methods():
        method.fit(points[:500])
        time = seconds(lambda method=method: method.fit(points))  # type: ignore[misc]
        rows.append((repr(method), time, information_loss(points, method.labels_)))
    heads = ("MDAV", "s", "times ours", "information loss, %")
    tables = ["## 50,000 x 10, k=5", table(heads, large), "## 2,000 x 10, k=5", table(heads, small)]
    tables += ["## All methods, 5,000 x 10, k=5", table(("method", "s", "information loss, %"), rows)]
    page("groupings", "Groupings", tables)


if __name__ == "__main__":
    main()
