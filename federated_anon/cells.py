"""A holder's cells: units of its map, cut and polished into parts of at least k records whose means may leave."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from federated_anon.arrays import Labels, Points
from federated_anon.microaggregation import LocalSearch, merge_small_units, split_large_groups
from federated_anon.microaggregation.blocks import cut, gathered, members_of
from federated_anon.microaggregation.estimator import prepared
from federated_anon.microaggregation.loss import compact
from federated_anon.som.parallel import map_chunks
from federated_anon.som.points import require_labels
from federated_anon.som.validity import group_centres

LARGE = 10_000
"""Records from which the search sweeps over blocks of neighbouring cells instead of the whole table."""
STEPS = 50.0
"""Search steps per cell of a table that is searched whole."""
LARGE_STEPS = 0.5
"""Search steps per cell in each sweep over a large table."""
SWEEPS = 2
BLOCK_RECORDS = 1024


def make_cells(points: Points, units: Labels, k: int, seed: int) -> Labels:
    """Cells of k to 2k-1 records of little spread, 0..c-1, from the unit of each record.

    Units below k dissolve into the nearest, MDAV splits those of 2k records and more, and a seeded local search
    then moves records between neighbouring cells, across units too, while the sum of squares inside cells falls.
    """
    accepted = prepared(points, k)
    start = split_large_groups(accepted, whole_units(accepted, units, k), k)
    if len(accepted) < LARGE:
        steps = int(STEPS * (len(accepted) // k))
        return LocalSearch(k, steps=steps, seed=seed).improve(accepted, start)
    rng = np.random.default_rng(seed)
    for sweep in range(SWEEPS):
        start = _swept(accepted, start, k, rng, seed + (sweep << 32))
    return start


def whole_units(points: Points, units: Labels, k: int) -> Labels:
    """The units with those below k dissolved, smallest first, into the unit with the nearest mean."""
    present = compact(require_labels(units, len(points), "units"))
    return merge_small_units(points, present, group_centres(points, present), k)


def _swept(points: Points, labels: Labels, k: int, rng: Generator, seed: int) -> Labels:
    """One search inside every block of neighbouring cells; blocks are cut anew, at random, by each call."""
    blocks = cut(group_centres(points, labels), max(2, BLOCK_RECORDS // k), rng, turn=1.0)
    members = members_of(blocks, labels)

    def improve(number: int) -> Labels:
        rows = members[number]
        search = LocalSearch(k, steps=int(LARGE_STEPS * len(blocks[number])), seed=seed + number)
        return search.improve(points[rows], compact(labels[rows]))

    return gathered(members, map_chunks(improve, range(len(members))), len(points))
