"""What a record's codes at the partners say about it, as numbers a regression can use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Labels, Points
from federated_anon.som.parallel import map_chunks, slices
from federated_anon.som.statistics import UnitStatistics, unit_statistics

LINEAR_WEIGHT = 3.0
"""Standardised columns are scaled up, so that the ridge penalises their linear part lightly."""
COARSE = 256
"""A partner's cells become indicators only if there are at most so many."""
HINGES = (0.25, 0.5, 0.75)
MOST_HINGED = 1 << 24
"""Numbers (records times features) up to which hinges are worth their time."""
CHUNK_ROWS = 1 << 14

Result = TypeVar("Result")


def most_features(records: int, k: int) -> int:
    """Coefficients a holder may publish per column: an eighth of the freedom that its other sums leave.

    Sums over cells and over groups of k records leave about n (1 - 2/k) directions of the n values free (the
    cycles of ``federated_anon.bridges``). Every coefficient fixes one more; at k = 2 there is none to give.
    """
    return max(0, records * (k - 2) // (8 * k))


@dataclass(frozen=True, slots=True)
class SideFeatures:
    """Features (n, width), made chunk by chunk: columns, hinges, indicators; centred inside ``within``."""

    columns: Points
    knots: Points
    indicators: tuple[Labels, ...]
    within: Labels
    centres: Points

    @property
    def width(self) -> int:
        """Number of features."""
        return int(self.centres.shape[1])

    def rows(self, rows: slice) -> Points:
        """Centred features of some records."""
        centred: Points = self._raw(rows) - self.centres[self.within[rows]]
        return centred

    def each(self, work: Callable[[slice], Result]) -> list[Result]:
        """``work`` on consecutive slices of the records, results in order."""
        return map_chunks(work, slices(len(self.within), CHUNK_ROWS))

    def _raw(self, rows: slice) -> Points:
        linear = self.columns[rows]
        parts = [LINEAR_WEIGHT * linear]
        parts += [np.maximum(linear - knot, 0.0) for knot in self.knots]
        return np.concatenate(parts + [_indicate(cells, rows) for cells in self.indicators], axis=1)


def most_indicators(records: int, k: int) -> int:
    """Cells of a partner that may become indicators: each such sum of values must run over many records, about 8k."""
    return min(COARSE, records // (8 * k))


def side_features(points: Sequence[Points], cells: Sequence[Labels], within: Labels, k: int) -> SideFeatures | None:
    """Features from the partners' code points and cells; what does not fit ``most_features`` is left out.

    First the standardised columns, then their hinges max(x - q, 0) at the quartiles q, then one indicator per
    cell of each partner with few cells. None if not even the columns fit, or there are none.
    """
    limit = most_features(len(within), k)
    columns = _standardised(np.concatenate(points, axis=1)) if points else np.empty((len(within), 0))
    width = columns.shape[1]
    if not 0 < width <= limit:
        return None
    hinged = width * (1 + len(HINGES))
    fits = hinged <= limit and hinged * len(within) <= MOST_HINGED
    knots = np.quantile(columns, HINGES, axis=0) if fits else np.empty((0, width))
    room = limit - width * (1 + len(knots))
    return _centred(columns, knots, _coarse(cells, room, most_indicators(len(within), k)), within)


def _coarse(cells: Sequence[Labels], room: int, most: int) -> tuple[Labels, ...]:
    kept: list[Labels] = []
    for labels in cells:
        count = int(labels.max()) + 1
        if count <= min(most, room):
            kept.append(labels)
            room -= count
    return tuple(kept)


def _centred(columns: Points, knots: Points, indicators: tuple[Labels, ...], within: Labels) -> SideFeatures:
    width = columns.shape[1] * (1 + len(knots)) + sum(int(cells.max()) + 1 for cells in indicators)
    groups = int(within.max()) + 1
    raw = SideFeatures(columns, knots, indicators, within, np.zeros((1, width)))
    total = UnitStatistics(np.zeros(groups), np.zeros((groups, width)))
    for rows in slices(len(within), 1 << 16):
        total = total + unit_statistics(raw._raw(rows), within[rows], groups)
    centres = total.sums / np.maximum(total.counts, 1)[:, None]
    return SideFeatures(columns, knots, indicators, within, centres)


def _standardised(columns: Points) -> Points:
    spread = columns.std(axis=0)
    varied = spread > 1e-9
    standard: Points = (columns[:, varied] - columns[:, varied].mean(axis=0)) / spread[varied]
    return standard


def _indicate(cells: Labels, rows: slice) -> NDArray[np.float64]:
    part = cells[rows]
    hot = np.zeros((len(part), int(cells.max()) + 1))
    hot[np.arange(len(part)), part] = 1.0
    return hot
