"""The best matching unit of each record, without a records x units matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Codebook, Labels, Points
from federated_anon.som.parallel import map_chunks, slices

CELLS = 1 << 19
"""Distances held at once by a thread; they stay in its cache."""


def assign_units(points: Points, codebook: Codebook) -> Labels:
    r"""Unit of the nearest prototype, :math:`\arg\max_j x \cdot w_j - \lVert w_j \rVert^2 / 2`; ties to the
    lowest.

    Computed in the precision of ``codebook``; ``points`` is (n, d), ``codebook`` (units, d).
    """
    prototypes, offsets = _prepared(codebook)
    units = np.empty(len(points), dtype=np.int64)

    def assign(rows: slice) -> None:
        _affinity(points[rows], prototypes, offsets).argmax(axis=1, out=units[rows])

    map_chunks(assign, slices(len(points), max(1, CELLS // len(codebook))))
    return units


def two_nearest(points: Points, codebook: Codebook) -> tuple[Labels, Labels]:
    """Best and second best matching unit of each record; a map of one unit repeats it."""
    prototypes, offsets = _prepared(codebook)

    def pair(rows: slice) -> NDArray[np.int64]:
        affinity = _affinity(points[rows], prototypes, offsets)
        first = affinity.argmax(axis=1)
        np.put_along_axis(affinity, first[:, None], -np.inf, axis=1)
        return np.stack([first, affinity.argmax(axis=1)])

    pairs = map_chunks(pair, slices(len(points), max(1, CELLS // len(codebook))))
    first, second = np.concatenate(pairs, axis=1)
    return first, second


def distances_to(points: Points, codebook: Codebook, units: Labels) -> NDArray[np.float64]:
    """Euclidean distance of each record to the prototype of its unit."""
    centres = np.asarray(codebook, dtype=float)

    def measure(rows: slice) -> NDArray[np.float64]:
        gap = np.asarray(points[rows], dtype=float) - centres[units[rows]]
        return np.sqrt(np.einsum("ij,ij->i", gap, gap))

    parts = map_chunks(measure, slices(len(points), 1 << 16))
    return np.concatenate(parts) if parts else np.empty(0)


def _prepared(codebook: Codebook) -> tuple[Codebook, Codebook]:
    offsets = np.einsum("ij,ij->i", codebook, codebook, dtype=float) / 2
    return np.ascontiguousarray(codebook.T), offsets.astype(codebook.dtype)


def _affinity(points: Points, prototypes: Codebook, offsets: Codebook) -> Points:
    affinity = np.asarray(points, dtype=prototypes.dtype) @ prototypes
    affinity -= offsets
    return affinity
