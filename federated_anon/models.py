"""Local models behind one interface: prototypes on the common grid, and a rule that gives each record its unit.

Whatever model a holder trains, its units are numbered like the units of the common grid, so that maps, k-means and
mixtures collaborate: unit u of one holder is started where the records of the lead's unit u lie, or matched to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from federated_anon.arrays import Codebook, Labels, Points
from federated_anon.som import BatchSOM, Grid, assign_units, unit_statistics
from federated_anon.som.batch import principal_plane
from federated_anon.som.parallel import single_blas_thread, slices

SAMPLE = 10
"""Records per unit that a mixture is trained on before it sees all of them."""
FULL_PASSES = 2
REGULARISATION = 1e-3
"""Added to every variance of a mixture, in units of standardised columns: no component shrinks to a record."""
CHUNK = 1 << 12


class LocalModel(Protocol):
    """What collaboration needs of a model."""

    @property
    def codebook(self) -> Codebook:
        """(units, d): the prototypes."""
        ...

    def assign(self, points: Points) -> Labels:
        """The unit of each record."""
        ...

    def moved(self, codebook: Codebook) -> LocalModel:
        """The same model with other prototypes."""
        ...

    def renumbered(self, order: Labels) -> LocalModel:
        """The same model under other numbers: unit u becomes ``order[u]``."""
        ...


@dataclass(frozen=True, slots=True)
class Prototypes:
    """A map or k-means: the nearest prototype takes a record."""

    codebook: Codebook

    def assign(self, points: Points) -> Labels:
        """The nearest prototype of each record."""
        return assign_units(points, self.codebook)

    def moved(self, codebook: Codebook) -> Self:
        """Other prototypes."""
        return replace(self, codebook=codebook)

    def renumbered(self, order: Labels) -> Self:
        """Unit u becomes ``order[u]``."""
        return replace(self, codebook=_ordered(self.codebook, order))


@dataclass(frozen=True, slots=True)
class Mixture:
    r"""Normal components with diagonal covariance: the most probable one takes a record.

    .. math:: \arg\max_j \log \pi_j + \frac{1}{2} \sum_c \log p_{jc} - \frac{1}{2} \sum_c p_{jc} (x_c - m_{jc})^2

    ``precisions`` (units, d) are p, ``weights`` (units,) are pi; the means m are the codebook.
    """

    codebook: Codebook
    precisions: Codebook
    weights: NDArray[np.float64]

    def assign(self, points: Points) -> Labels:
        """The most probable component of each record."""
        return np.concatenate([self.scores(points[rows]).argmax(axis=1) for rows in slices(len(points), CHUNK)])

    def moved(self, codebook: Codebook) -> Self:
        """Other means, the same spreads and weights."""
        return replace(self, codebook=np.asarray(codebook, dtype=float))

    def renumbered(self, order: Labels) -> Self:
        """Unit u becomes ``order[u]``."""
        parts = (_ordered(part, order) for part in (self.codebook, self.precisions, self.weights))
        return replace(self, **dict(zip(("codebook", "precisions", "weights"), parts, strict=True)))

    def scores(self, points: Points) -> Points:
        """(n, units): log of weight times density, up to a constant."""
        x = np.asarray(points, dtype=float)
        pull = self.precisions * self.codebook
        constant = np.log(self.weights) + 0.5 * (np.log(self.precisions) - pull * self.codebook).sum(axis=1)
        scored: Points = x @ pull.T - 0.5 * (x * x) @ self.precisions.T + constant
        return scored

    def improved(self, points: Points) -> Mixture:
        """One step of expectation and maximisation over all records."""
        units, columns = self.codebook.shape
        counts, sums, squares = np.zeros(units), np.zeros((units, columns)), np.zeros((units, columns))
        for rows in slices(len(points), CHUNK):
            x = np.asarray(points[rows], dtype=float)
            share = self.scores(x)
            share = np.exp(share - share.max(axis=1, keepdims=True))
            share /= share.sum(axis=1, keepdims=True)
            counts += share.sum(axis=0)
            sums += share.T @ x
            squares += share.T @ (x * x)
        return _mixture(counts, sums, squares)


def fitted(
    kind: str, points: Points, grid: Grid, passes: int, rng: Generator, lead: tuple[Codebook, float] | None = None
) -> LocalModel:
    """A model of this ``kind`` (som, kmeans, gmm); ``lead`` is a codebook to start from, and a map's first radius."""
    initial, radius = lead or (None, None)
    if kind == "som":
        som = BatchSOM(grid.rows, grid.cols, passes=passes, start_radius=radius, initial=initial)
        return Prototypes(som.fit(points, rng).codebook_)
    with single_blas_thread():
        start = laid_out(points, grid, rng) if initial is None else np.asarray(initial, dtype=float)
        centres = means(points, start, passes)
        return Prototypes(centres) if kind == "kmeans" else mixture(points, centres, passes, rng)


def laid_out(points: Points, grid: Grid, rng: Generator) -> Codebook:
    """Random records as first centres, numbered so that neighbours on the grid are near on the principal plane."""
    drawn = points[rng.choice(len(points), grid.units, replace=len(points) < grid.units)].astype(float)
    corners = principal_plane(np.asarray(points, dtype=float), Grid(2, 2))
    down, across = drawn @ (corners[2] - corners[0]), drawn @ (corners[1] - corners[0])
    rows = np.empty(grid.units, dtype=np.int64)
    rows[np.argsort(down, kind="stable")] = np.arange(grid.units) // grid.cols
    return drawn[np.lexsort((across, rows))]


def means(points: Points, start: Codebook, passes: int) -> Codebook:
    """Lloyd's passes from ``start``, until nothing moves; a centre that no record is nearest to stays. Lloyd (1982)."""
    centres, units = start, assign_units(points, start)
    for _ in range(passes):
        centres = unit_statistics(points, units, len(centres)).means(otherwise=centres)
        before, units = units, assign_units(points, centres)
        if np.array_equal(before, units):
            break
    return centres


def mixture(points: Points, centres: Codebook, passes: int, rng: Generator) -> Mixture:
    """A mixture started from clusters; trained on a sample of ten records per unit, then on all.

    Dempster, Laird & Rubin (1977), J. R. Statist. Soc. B 39, 1-38.
    """
    units = assign_units(points, centres)
    tally = unit_statistics(points, units, len(centres))
    second = unit_statistics(np.asarray(points, dtype=float) ** 2, units, len(centres))
    empty = tally.counts == 0
    found = _mixture(
        np.where(empty, 1e-6, tally.counts),
        np.where(empty[:, None], 1e-6 * centres, tally.sums),
        np.where(empty[:, None], 1e-6 * (centres**2 + 1), second.sums),
    )
    wanted = SAMPLE * len(centres)
    sample = points if len(points) <= wanted else points[np.sort(rng.choice(len(points), wanted, replace=False))]
    for _ in range(passes):
        found = found.improved(sample)
    for _ in range(FULL_PASSES if len(sample) < len(points) else 0):
        found = found.improved(points)
    return found


def _mixture(counts: NDArray[np.float64], sums: Codebook, squares: Codebook) -> Mixture:
    """Components from weighted counts, sums and sums of squares."""
    size = counts + 10 * np.finfo(float).eps
    centres = sums / size[:, None]
    variances = np.maximum(squares / size[:, None] - centres**2, 0.0) + REGULARISATION
    return Mixture(centres, 1 / variances, size / size.sum())


def _ordered(rows: NDArray[np.floating[Any]], order: Labels) -> NDArray[Any]:
    """``rows`` with row u at ``order[u]``."""
    placed = np.empty_like(rows)
    placed[order] = rows
    return placed
