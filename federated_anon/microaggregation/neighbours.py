"""The nearest records of each record, by chunks of one matrix product."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Labels, Points
from federated_anon.microaggregation.compiled import compiled
from federated_anon.som.parallel import map_chunks, slices

CELLS = 1 << 20


def nearest_records(points: Points, count: int) -> Labels:
    """(n, count): for each record the other records nearest to it, nearest first; fewer where n is small."""
    narrow = np.ascontiguousarray(points - points.mean(axis=0), dtype=np.float32)
    halves = np.einsum("ij,ij->i", narrow, narrow) / 2
    wanted = min(count, len(points) - 1)
    across = np.ascontiguousarray(narrow.T)

    def search(rows: slice) -> Labels:
        distance = halves - narrow[rows] @ across
        return smallest(distance, rows.start, wanted)

    return np.concatenate(map_chunks(search, slices(len(points), max(1, CELLS // len(points)))))


@compiled
def smallest(distance: NDArray[np.float32], first: int, wanted: int) -> Labels:
    """Columns of the ``wanted`` smallest values of each row, sorted; row i leaves out column first + i."""
    rows, columns = distance.shape
    found = np.zeros((rows, wanted), np.int64)
    kept = np.empty(wanted, np.float32)
    for i in range(rows):
        kept[:] = np.inf
        for j in range(columns):
            value = distance[i, j]
            if value < kept[wanted - 1] and j != first + i:
                slot = wanted - 1
                while slot > 0 and value < kept[slot - 1]:
                    kept[slot], found[i, slot] = kept[slot - 1], found[i, slot - 1]
                    slot -= 1
                kept[slot], found[i, slot] = value, j
    return found
