"""What every grouping is: k in, one label per record out, no group below k."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from federated_anon.arrays import Labels, Points, Weights
from federated_anon.errors import DataRefused
from federated_anon.som.points import require_points


@dataclass
class Microaggregation(ABC):
    """Base of the groupings: the constructor stores, ``fit`` returns ``self`` and leaves ``labels_``."""

    k: int
    labels_: Labels = field(init=False, repr=False, compare=False)

    def fit(self, X: Points, weights: Weights | None = None) -> Self:
        """Group the (n, d) records; ``weights`` (d,) multiply the squared differences of the columns."""
        self.labels_ = self._group(prepared(X, self.k, weights))
        return self

    def fit_predict(self, X: Points, weights: Weights | None = None) -> Labels:
        """``fit`` and give the labels."""
        return self.fit(X, weights).labels_

    @abstractmethod
    def _group(self, points: Points) -> Labels:
        """Labels 0..g-1 of accepted points."""


def require_k(k: Any, records: int) -> int:
    """``k`` if 2 <= k <= records, else ``DataRefused``."""
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 2:
        raise DataRefused(f"k must be an integer of at least 2, got {k!r}")
    if k > records:
        raise DataRefused(f"k must not exceed the number of records, got k={k} for {records}")
    return int(k)


def prepared(X: Any, k: int, weights: Weights | None = None) -> Points:
    """Checked float64 points, weighted, centred, and scaled by a power of two so that no square overflows.

    Grouping by squared distances does not see a shift or a common factor; float64 keeps sums of groups exact
    enough for tables with a large common offset.
    """
    points = require_points(X).astype(float)
    require_k(k, len(points))
    if weights is not None:
        points *= np.sqrt(_column_weights(weights, points.shape[1]))
    points = _scaled(points)
    points -= points.mean(axis=0)
    return _scaled(points)


def _scaled(points: Points) -> Points:
    exponent = int(np.frexp(np.abs(points).max())[1])
    return np.ldexp(points, -exponent)


def _column_weights(weights: Weights, columns: int) -> Weights:
    checked = np.asarray(weights, dtype=float)
    if checked.shape != (columns,) or not np.isfinite(checked).all() or (checked < 0).any():
        raise DataRefused(f"weights must be {columns} finite, non-negative numbers, one for each column")
    return checked
