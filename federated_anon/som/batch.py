"""BatchSOM: a self-organizing map trained by whole passes over summable statistics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from federated_anon.arrays import Codebook, Labels, Points
from federated_anon.errors import DataRefused
from federated_anon.som.grid import Grid
from federated_anon.som.nearest import assign_units, distances_to, two_nearest
from federated_anon.som.parallel import single_blas_thread
from federated_anon.som.points import require_points
from federated_anon.som.statistics import unit_statistics

DTYPES = ("float32", "float64")


@dataclass
class BatchSOM:
    r"""Batch map on a ``rows`` x ``cols`` grid with a Gaussian neighbourhood that shrinks pass by pass.

    .. math:: w_j = \frac{\sum_i K_{j u(i)} x_i}{\sum_i K_{j u(i)}}, \quad K = \exp(-d^2 / T^2)

    ``passes`` radii fall geometrically from ``start_radius`` (half the longer side unless given) to
    ``end_radius``. A table of more than ``subsample * units`` records is trained on that many of them, drawn
    by
    ``rng``, and then by ``full_passes`` over all records at the last radius. ``subsample=0`` always uses all.
    ``initial`` is a codebook to start from, else the plane of the first two principal axes.
    Kohonen (2013), Essentials of the self-organizing map, Neural Networks 37, 52-65.
    """

    rows: int
    cols: int
    passes: int = 12
    start_radius: float | None = None
    end_radius: float = 0.7
    subsample: int = 10
    full_passes: int = 2
    dtype: str = "float32"
    initial: Codebook | None = None
    codebook_: Codebook = field(init=False, repr=False, compare=False)

    @property
    def grid(self) -> Grid:
        """The shape of the map."""
        return Grid(self.rows, self.cols)

    def radii(self) -> NDArray[np.float64]:
        """Radius of each pass; a single pass uses the last radius."""
        start = max(self.rows, self.cols) / 2 if self.start_radius is None else self.start_radius
        return np.geomspace(self.end_radius, max(start, self.end_radius), self.passes)[::-1]

    def fit(self, X: Points, rng: Generator) -> Self:
        """Train on (n, d) records; ``rng`` draws the subsample."""
        points = self._accepted(X)
        sample = self._sample(points, rng)
        with single_blas_thread():
            codebook = self._start(sample)
            for radius in self.radii():
                codebook = train_pass(sample, codebook, self.grid, radius)
            for _ in range(self.full_passes if len(sample) < len(points) else 0):
                codebook = train_pass(points, codebook, self.grid, self.end_radius)
        self.codebook_ = codebook
        return self

    def assign(self, X: Points) -> Labels:
        """Best matching unit of each record."""
        return assign_units(self._accepted(X), self.codebook_)

    def quantization_error(self, X: Points) -> float:
        """Mean distance of a record to the prototype of its unit."""
        points = self._accepted(X)
        return float(distances_to(points, self.codebook_, assign_units(points, self.codebook_)).mean())

    def topographic_error(self, X: Points) -> float:
        """Share of records whose two nearest units do not touch, even by a corner (Kiviluoto 1996)."""
        first, second = two_nearest(self._accepted(X), self.codebook_)
        places = self.grid.coordinates()
        return float((np.abs(places[first] - places[second]).max(axis=1) > 1).mean())

    def _accepted(self, X: Points) -> Points:
        if self.dtype not in DTYPES:
            raise DataRefused(f"dtype must be one of {', '.join(DTYPES)}, got {self.dtype!r}")
        if self.passes < 1 or self.end_radius <= 0 or self.subsample < 0 or self.full_passes < 0:
            raise DataRefused("passes and end_radius must be positive, subsample and full_passes not negative")
        points = require_points(X)
        if np.abs(points).max() * points.shape[1] > np.sqrt(np.finfo(self.dtype).max) / 4:
            raise DataRefused(f"X holds values whose squares exceed {self.dtype}: standardise its columns")
        return points.astype(self.dtype, copy=False)

    def _sample(self, points: Points, rng: Generator) -> Points:
        wanted = self.subsample * self.grid.units
        if not 0 < wanted < len(points):
            return points
        return np.ascontiguousarray(points[np.sort(rng.choice(len(points), wanted, replace=False))])

    def _start(self, points: Points) -> Codebook:
        if self.initial is None:
            return principal_plane(points, self.grid)
        if np.shape(self.initial) != (self.grid.units, points.shape[1]):
            raise DataRefused(f"initial must be {self.grid.units} x {points.shape[1]}, got {np.shape(self.initial)}")
        return np.asarray(self.initial).astype(self.dtype)


def train_pass(points: Points, codebook: Codebook, grid: Grid, radius: float) -> Codebook:
    """One batch update: assign, tally, smooth, average; in the precision of ``codebook``."""
    units = assign_units(points, codebook)
    pull = unit_statistics(points, units, grid.units).smoothed(grid, radius)
    return pull.means(otherwise=codebook).astype(codebook.dtype)


def principal_plane(points: Points, grid: Grid) -> Codebook:
    """Prototypes on the plane of the two widest principal axes, one standard deviation each way."""
    centre = points.mean(axis=0, dtype=float)
    gaps = points - centre
    values, vectors = np.linalg.eigh(gaps.T @ gaps / len(points))
    reach = vectors * np.sqrt(np.maximum(values, 0))
    reach = reach * np.where(reach.sum(axis=0) < 0, -1.0, 1.0)
    sides = np.maximum(np.array([grid.rows, grid.cols]) - 1, 1)
    place = grid.coordinates() / sides * 2 - 1
    plane = centre + np.outer(place[:, 1], reach[:, -1])
    if len(values) > 1:
        plane = plane + np.outer(place[:, 0], reach[:, -2])
    return np.asarray(plane, dtype=points.dtype)
