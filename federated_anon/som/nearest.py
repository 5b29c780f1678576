"""The best matching unit of each record, without a records x units matrix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Codebook, Labels, Points
from federated_anon.som.parallel import map_chunks, slices

CELLS = 1 << 19
"""Distances a thread holds at once; they stay in its cache."""

BLOCKS = 16
"""Blocks of records a thread takes at a time, over one set of buffers."""


def assign_units(points: Points, codebook: Codebook) -> Labels:
    r"""Unit of the nearest prototype, :math:`\arg\max_j x \cdot w_j - \lVert w_j \rVert^2 / 2`; ties to the lowest.

    Computed in the precision of ``codebook``; ``points`` is (n, d), ``codebook`` (units, d).
    """
    units = np.empty(len(points), dtype=np.int64)

    def best(rows: slice, affinity: Points) -> None:
        affinity.argmax(axis=1, out=units[rows])

    _scan(points, codebook, best)
    return units


def two_nearest(points: Points, codebook: Codebook) -> tuple[Labels, Labels]:
    """Best and second best matching unit of each record; a map of one unit repeats it."""
    first, second = np.empty((2, len(points)), dtype=np.int64)

    def best_two(rows: slice, affinity: Points) -> None:
        affinity.argmax(axis=1, out=first[rows])
        np.put_along_axis(affinity, first[rows, None], -np.inf, axis=1)
        affinity.argmax(axis=1, out=second[rows])

    _scan(points, codebook, best_two)
    return first, second


def distances_to(points: Points, codebook: Codebook, units: Labels) -> NDArray[np.float64]:
    """Euclidean distance of each record to the prototype of its unit."""
    centres = np.asarray(codebook, dtype=float)

    def measure(rows: slice) -> NDArray[np.float64]:
        gap = np.asarray(points[rows], dtype=float) - centres[units[rows]]
        return np.sqrt(np.einsum("ij,ij->i", gap, gap))

    parts = map_chunks(measure, slices(len(points), 1 << 16))
    return np.concatenate(parts) if parts else np.empty(0)


def _scan(points: Points, codebook: Codebook, take: Callable[[slice, Points], None]) -> None:
    """Give ``take`` the affinities x.w - |w|^2/2 of block after block of records; it may overwrite them."""
    offsets = np.einsum("ij,ij->i", codebook, codebook, dtype=float) / 2
    prototypes = np.vstack([codebook.T, offsets]).astype(codebook.dtype)
    width, units = prototypes.shape
    size = max(1, min(CELLS // max(units, width), len(points)))

    def scan(rows: slice) -> None:
        records = np.full((size, width), -1, dtype=prototypes.dtype)
        affinity = np.empty((size, units), dtype=prototypes.dtype)
        for start in range(rows.start, rows.stop, size):
            block = slice(start, min(start + size, rows.stop))
            filled = block.stop - block.start
            records[:filled, :-1] = points[block]
            np.matmul(records[:filled], prototypes, out=affinity[:filled])
            take(block, affinity[:filled])

    map_chunks(scan, slices(len(points), size * BLOCKS))
