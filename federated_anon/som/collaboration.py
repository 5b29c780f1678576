r"""One map's update by the maps of other holders, in time linear in the records.

All maps share one grid, so a partner's map enters through its unit index per record alone. With
:math:`K_{ja} = \exp(-\lVert j - a \rVert^2 / T^2)` the product of two kernels is a kernel around the
midpoint,

.. math:: K_{ja} K_{jb} = e^{-\lVert a - b \rVert^2 / 2T^2} \, e^{-2 \lVert j - m \rVert^2 / T^2}, \quad m =
(a + b) / 2

so every sum over records is one scatter onto a doubled grid of midpoints and one separable convolution.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import ot
from numpy.typing import NDArray

from federated_anon.arrays import Codebook, Labels, Points
from federated_anon.errors import DataRefused
from federated_anon.som.grid import Grid, convolve
from federated_anon.som.parallel import single_blas_thread
from federated_anon.som.points import require_labels, require_points
from federated_anon.som.statistics import UnitStatistics, unit_statistics


def link_strength(own_units: Labels, partner_units: Labels, grid: Grid, radius: float) -> float:
    r"""Strength of the link from one map to a partner's.

    .. math:: \lambda = \frac{\sum_{ij} K^k_{ij}}{2 \sum_{ij} (K^k_{ij} - K^l_{ij})^2}

    The minimiser of the printed objective, without its unbounded accumulation. Maps that agree on every
    record have no disagreement to weigh: infinity, which the caller clips to the range of its study.
    """
    own, partner = _units(own_units, grid), _units(partner_units, grid)
    nothing = np.empty((len(own), 0))
    agreement = unit_statistics(nothing, own, grid.units).smoothed(grid, radius).counts.sum()
    disagreement = _disagreement(nothing, own, partner, grid, radius).counts.sum()
    floor = 1e-12 * agreement
    return float(agreement / (2 * disagreement)) if disagreement > floor else float("inf")


def collaborative_update(
    points: Points,
    own_units: Labels,
    partner_units: Sequence[Labels],
    strengths: Sequence[float],
    grid: Grid,
    radius: float,
    codebook: Codebook,
) -> Codebook:
    r"""Prototypes that minimise the collaborative objective; they replace ``codebook``.

    .. math:: w_j = \frac{\sum_i h_{ij} x_i}{\sum_i h_{ij}}, \quad
              h_{ij} = K^k_{ij} + \sum_l \lambda_l^2 (K^k_{ij} - K^l_{ij})^2

    A unit that no record reaches keeps its row of ``codebook``. O(n d + units (rows + cols) d).
    """
    if len(partner_units) != len(strengths):
        raise DataRefused(f"strengths must match partner_units: {len(strengths)} for {len(partner_units)}")
    records = require_points(points, "points")
    own = require_labels(_units(own_units, grid), len(records), "own_units")
    with single_blas_thread():
        pull = unit_statistics(records, own, grid.units).smoothed(grid, radius)
        for partner, strength in zip(partner_units, strengths, strict=True):
            pull += _scaled(_disagreement(records, own, _units(partner, grid), grid, radius), strength**2)
    return pull.means(otherwise=codebook).astype(codebook.dtype)


def lead_codebook(points: Points, lead_units: Labels, grid: Grid, radius: float = 1.0) -> Codebook:
    """Start a map from the lead map's activations: a unit begins where its records lie here."""
    records = require_points(points, "points")
    units = require_labels(_units(lead_units, grid), len(records), "lead_units")
    start = np.broadcast_to(records.mean(axis=0), (grid.units, records.shape[1]))
    with single_blas_thread():
        pull = unit_statistics(records, units, grid.units).smoothed(grid, radius)
    return pull.means(otherwise=start)


def match_units(lead_units: Labels, units: Labels, grid: Grid) -> Labels:
    """Permutation that renames this map's units so that most records fall on the lead map's unit.

    ``match_units(lead, own, grid)[own]`` agrees best with ``lead``: the optimal transport (POT) of units to
    units that gains the most common records, and, among pairs without any, lies nearest on the grid.
    """
    lead, own = _units(lead_units, grid), _units(units, grid)
    common = np.bincount(own * grid.units + lead, minlength=grid.units**2).reshape(grid.units, grid.units)
    places = grid.coordinates()
    apart = ot.dist(places, places)
    cost = apart / (2 * grid.units * max(float(apart.max()), 1.0)) - common
    share = np.full(grid.units, 1.0)
    plan = ot.emd(share, share, cost, numItermax=2_000_000)
    return np.asarray(plan.argmax(axis=1), dtype=np.int64)


def _disagreement(points: Points, own: Labels, partner: Labels, grid: Grid, radius: float) -> UnitStatistics:
    """Per unit j, the sums over records of (K_j,own - K_j,partner)^2 times (1, x)."""
    squares = unit_statistics(points, own, grid.units) + unit_statistics(points, partner, grid.units)
    squares = squares.smoothed(grid, radius / np.sqrt(2))
    return squares + _scaled(_products(points, own, partner, grid, radius), -2.0)


def _products(points: Points, own: Labels, partner: Labels, grid: Grid, radius: float) -> UnitStatistics:
    """Per unit j, the sums over records of K_j,own K_j,partner (1, x), through the midpoints."""
    places = grid.coordinates()
    gap = places[own] - places[partner]
    weight = np.exp(-np.einsum("ij,ij->i", gap, gap) / (2 * radius**2))
    middle = (places[own] + places[partner]) @ np.array([2 * grid.cols - 1, 1])
    weighted = np.column_stack([weight, np.asarray(points, dtype=float) * weight[:, None]])
    doubled = unit_statistics(weighted, middle.astype(np.int64), (2 * grid.rows - 1) * (2 * grid.cols - 1)).sums
    spread = convolve(
        doubled.reshape(2 * grid.rows - 1, 2 * grid.cols - 1, -1),
        _midpoint_kernel(grid.rows, radius),
        _midpoint_kernel(grid.cols, radius),
    ).reshape(grid.units, -1)
    return UnitStatistics(spread[:, 0], spread[:, 1:])


def _midpoint_kernel(length: int, radius: float) -> NDArray[np.float64]:
    """(length, 2 length - 1): exp(-2 (j - m)^2 / T^2) from midpoints, half a step apart, to units."""
    gap = np.subtract.outer(np.arange(length), np.arange(2 * length - 1) / 2)
    return np.asarray(np.exp(-2 * gap**2 / radius**2))


def _scaled(tally: UnitStatistics, factor: float) -> UnitStatistics:
    return UnitStatistics(tally.counts * factor, tally.sums * factor)


def _units(units: Labels, grid: Grid) -> Labels:
    checked = require_labels(units, len(units), "units")
    if len(checked) == 0 or int(checked.max()) >= grid.units:
        raise DataRefused(f"units must be 0 to {grid.units - 1}, one for each of at least one record")
    return checked
