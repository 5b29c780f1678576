r"""Attribute-oriented recoding: the density of a column, cut at its minima, coded with its maxima.

.. math:: \hat{f}(x) = \frac{1}{n h \sqrt{2\pi}} \sum_i \exp\left(-\frac{(x - x_i)^2}{2 h^2}\right)

Records are binned linearly onto a regular grid and the sum is one product of Fourier transforms: O(n + g log g).
Recoding gives no k by itself: a cell of a column holds few records where the column is thin, and records that share all
their cells are fewer still. ``recoded`` says which k was reached.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct, irfft, next_fast_len, rfft
from scipy.optimize import brentq

from federated_anon.arrays import Labels, Points
from federated_anon.errors import DataRefused
from federated_anon.privacy.kanonymity import joint_labels, smallest_class
from federated_anon.som.points import require_points

Values = NDArray[np.float64]

REACH = 4.0
"""Bandwidths beyond the outermost records that the grid covers."""
STEPS_PER_BANDWIDTH = 4.0
SMALLEST_GRID, LARGEST_GRID = 1 << 10, 1 << 16
DIGITS = 11
"""Digits of the density, relative to its highest point, that count; the rest is rounding of the transform."""
SMALLEST_RANGE = 1e-12
"""Columns whose values differ by less, relative to their size, are constant."""
ISJ_GRID = 1 << 12
ISJ_STAGES = 7


def spread(values: Values) -> float:
    """min(standard deviation, interquartile range / 1.349): a scale that few far records do not widen."""
    deviation = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    low, high = np.percentile(values, [25, 75])
    return min(deviation, float(high - low) / 1.349) or deviation


def silverman(values: Values) -> float:
    """h = 0.9 A n^(-1/5). Silverman (1986), Density Estimation, eq. 3.31."""
    return 0.9 * spread(values) * len(values) ** -0.2


def scott(values: Values) -> float:
    r"""h = (4/3)^(1/5) A n^(-1/5), the best for a normal density. Scott (1992), Multivariate Density Estimation."""
    return (4 / 3) ** 0.2 * spread(values) * float(len(values) ** -0.2)


def isj(values: Values) -> float:
    r"""The improved Sheather-Jones plug-in: the fixed point of its seven stages.

    Botev, Grotowski & Kroese (2010), Annals of Statistics 38(5), 2916-2957. Where there is no fixed point (few
    records, few distinct values) Silverman's rule stands in.
    """
    low, high = float(values.min()), float(values.max())
    margin = (high - low) / 2
    counts = binned(values, low - margin, high + margin, ISJ_GRID)
    squares = (dct(counts / len(values), type=2)[1:] / 2) ** 2
    frequencies = np.arange(1, ISJ_GRID, dtype=float) ** 2
    distinct = len(np.unique(values))

    def gap(t: float) -> float:
        return t - _plug_in(t, distinct, frequencies, squares)

    found = _smallest_root(gap)
    return silverman(values) if found is None else float(np.sqrt(found)) * (high - low + 2 * margin)


def _plug_in(t: float, count: int, frequencies: Values, squares: Values) -> float:
    """Botev's gamma, stage by stage: each stage's bandwidth estimates the roughness that the next one needs."""
    roughness = _roughness(ISJ_STAGES, t, frequencies, squares)
    for stage in range(ISJ_STAGES - 1, 1, -1):
        if roughness <= 0:
            return -1.0
        odd = float(np.prod(np.arange(1, 2 * stage, 2, dtype=float))) / np.sqrt(2 * np.pi)
        constant = (1 + 0.5 ** (stage + 0.5)) / 3
        time = (2 * constant * odd / (count * roughness)) ** (2 / (3 + 2 * stage))
        roughness = _roughness(stage, time, frequencies, squares)
    return float((2 * count * np.sqrt(np.pi) * roughness) ** -0.4) if roughness > 0 else -1.0


def _roughness(stage: int, time: float, frequencies: Values, squares: Values) -> float:
    """Squared norm of the density's derivative of order ``stage`` after smoothing for ``time``."""
    terms = frequencies**stage * squares * np.exp(-frequencies * np.pi**2 * time)
    return float(2 * np.pi ** (2 * stage) * terms.sum())


def _smallest_root(gap: Callable[[float], float]) -> float | None:
    """The first change of sign on a widening interval, or ``None``."""
    end = 1e-7
    while end < 0.2:
        if gap(end) >= 0:
            root = float(brentq(gap, 0.0, end, xtol=1e-16)) if gap(0.0) < 0 else end
            return root if root > 0 else None
        end *= 2
    return None


RULES: Mapping[str, Callable[[Values], float]] = {"silverman": silverman, "scott": scott, "isj": isj}


def binned(values: Values, low: float, high: float, count: int) -> Values:
    """(count,): how many records each point of a regular grid stands for; a record is shared by its two neighbours."""
    place = (values - low) * ((count - 1) / (high - low))
    left = np.clip(place.astype(np.int64), 0, count - 2)
    share = place - left
    counts = np.bincount(left, 1 - share, minlength=count) + np.bincount(left + 1, share, minlength=count)
    return np.asarray(counts, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Density:
    """A density on a regular grid, and its bandwidth."""

    grid: Values
    heights: Values
    bandwidth: float


def density(values: Values, bandwidth: float) -> Density:
    """The Gaussian density of ``values`` with this bandwidth, on a grid of at least four points per bandwidth."""
    low, high = float(values.min()) - REACH * bandwidth, float(values.max()) + REACH * bandwidth
    wanted = int(STEPS_PER_BANDWIDTH * (high - low) / bandwidth) + 2
    count = min(max(wanted, SMALLEST_GRID), LARGEST_GRID)
    grid = np.linspace(low, high, count)
    step = grid[1] - grid[0]
    length = next_fast_len(count + int(2 * REACH * bandwidth / step) + 1, real=True)
    angles = 2 * np.pi * np.arange(length // 2 + 1) / (length * step)
    smooth = rfft(binned(values, low, high, count), length) * np.exp(-0.5 * (angles * bandwidth) ** 2)
    heights = np.asarray(irfft(smooth, length))[:count] / (len(values) * step)
    return Density(grid, np.maximum(heights, 0.0), bandwidth)


@dataclass(frozen=True, slots=True)
class Extrema:
    """Where a density is cut (its minima), where it peaks (one maximum per cell), and how high the peaks are."""

    cuts: Values
    modes: Values
    heights: Values


def extrema(found: Density) -> Extrema:
    """Maxima and the lowest places between them; a level stretch counts as its middle."""
    level = np.round(found.heights / found.heights.max(), DIGITS)
    starts = np.flatnonzero(np.diff(level, prepend=-1.0) != 0)
    ends = np.append(starts[1:], len(level)) - 1
    rises = np.diff(level[starts], prepend=-1.0, append=-1.0) > 0
    peaks = np.flatnonzero(rises[:-1] & ~rises[1:])
    valleys = np.flatnonzero(~rises[:-1] & rises[1:])
    middle = (found.grid[starts] + found.grid[ends]) / 2
    inner = valleys[(valleys > peaks[0]) & (valleys < peaks[-1])]
    return Extrema(middle[inner], middle[peaks], level[starts][peaks])


@dataclass
class DensityCells:
    """Cells of one column: its density cut at minima, cells below ``k`` records joined with the nearer neighbour.

    A joined cell keeps the higher of the two maxima. ``bandwidth`` is a rule: silverman, scott, or isj.
    Thesis, Algorithm 5 (Attribute-oriented anonymisation); the joining is ours.
    """

    k: int = 1
    bandwidth: str = "isj"
    cuts_: Values = field(init=False, repr=False, compare=False)
    modes_: Values = field(init=False, repr=False, compare=False)
    bandwidth_: float = field(init=False, repr=False, compare=False)

    def fit(self, values: Values) -> Self:
        """Find the cells of (n,) values."""
        column = self._accepted(values)
        if np.ptp(column) <= SMALLEST_RANGE * max(1.0, np.abs(column).max()):
            self.cuts_, self.modes_, self.bandwidth_ = np.empty(0), column[:1].copy(), 0.0
            return self
        self.bandwidth_ = RULES[self.bandwidth](column)
        self.cuts_, self.modes_ = joined(extrema(density(column, self.bandwidth_)), column, self.k)
        return self

    def assign(self, values: Values) -> Labels:
        """The cell of each value."""
        return np.searchsorted(self.cuts_, np.asarray(values, dtype=float), side="right")

    def recode(self, values: Values) -> Values:
        """Each value as the maximum of its cell."""
        coded: Values = self.modes_[self.assign(values)]
        return coded

    def _accepted(self, values: Values) -> Values:
        if self.bandwidth not in RULES:
            raise DataRefused(f"bandwidth must be one of {', '.join(RULES)}, got {self.bandwidth!r}")
        column = require_points(np.asarray(values, dtype=float)[:, None])[:, 0]
        if not 1 <= self.k <= len(column):
            raise DataRefused(f"k must lie between 1 and the number of records, got k={self.k} for {len(column)}")
        return column.astype(float)


def joined(found: Extrema, values: Values, k: int) -> tuple[Values, Values]:
    """Cuts and modes after cells of fewer than ``k`` records have joined a neighbour, smallest first."""
    cuts, modes, heights = found.cuts, found.modes, found.heights
    counts = np.bincount(np.searchsorted(cuts, values, side="right"), minlength=len(modes))
    while len(modes) > 1 and counts.min() < max(k, 1):
        cell = int(counts.argmin())
        gaps = np.diff(modes)
        is_left = cell == len(gaps) or (cell > 0 and gaps[cell - 1] <= gaps[cell])
        left = cell - 1 if is_left else cell
        gone = left if heights[left] < heights[left + 1] else left + 1
        counts[left] += counts[left + 1]
        counts, cuts = np.delete(counts, left + 1), np.delete(cuts, left)
        modes, heights = np.delete(modes, gone), np.delete(heights, gone)
    return cuts, modes


@dataclass(frozen=True, slots=True)
class Recoding:
    """A table recoded column by column: values, cell per record and column, and the k that this reached."""

    values: Points
    cells: NDArray[np.integer[Any]]
    k_reached: int

    @property
    def joint(self) -> Labels:
        """One label per combination of cells."""
        return joint_labels(list(self.cells.T), len(self.cells))


def recoded(X: Points, k: int = 1, bandwidth: str = "isj") -> Recoding:
    """Every column of (n, d) records recoded with cells of at least ``k`` records; the joint k is what comes out."""
    points = require_points(X).astype(float)
    columns = [DensityCells(k, bandwidth).fit(column) for column in points.T]
    cells = np.stack([one.assign(column) for one, column in zip(columns, points.T, strict=True)], axis=1)
    values = np.stack([one.modes_[own] for one, own in zip(columns, cells.T, strict=True)], axis=1)
    return Recoding(values, cells, smallest_class(joint_labels(list(cells.T), len(cells))))
