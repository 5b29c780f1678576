"""The default grouping: search where the table is small, blocks where it is large."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from federated_anon.arrays import Labels, Points, Weights
from federated_anon.microaggregation.blocks import Blocked
from federated_anon.microaggregation.estimator import prepared
from federated_anon.microaggregation.loss import information_loss
from federated_anon.microaggregation.search import LocalSearch

LARGE = 10_000
"""Records from which blocks replace the search over the whole table."""


class Route(StrEnum):
    """How the groups were found."""

    SEARCH = "search"
    BLOCKS = "blocks"


@dataclass(frozen=True, slots=True)
class Grouping:
    """Labels 0..g-1, the route that found them, and their information loss on the points given."""

    labels: Labels
    route: Route
    loss: float


def best_groups(
    points: Points,
    k: int,
    seed: int = 0,
    budget: float = 100.0,
    weights: Weights | None = None,
    large: int = LARGE,
) -> Grouping:
    """Groups of k to 2k-1 records of least loss.

    Below ``large`` records: MDAV, descent, then ``budget`` search steps per group. From there on: blocks, whose
    four sweeps share a quarter of the steps of the largest small table, but never take fewer than a two-hundredth
    of ``budget`` per group. Same seed and budget, same labels, on any number of threads.
    """
    accepted = prepared(points, k, weights)
    if len(accepted) < large:
        route = Route.SEARCH
        labels = LocalSearch(k, steps=int(budget * (len(accepted) // k)), seed=seed)._group(accepted)
    else:
        route = Route.BLOCKS
        steps = budget * max(0.005, large / len(accepted) / 16)
        labels = Blocked(k, steps=steps, seed=seed)._group(accepted)
    return Grouping(labels, route, information_loss(accepted, labels))
