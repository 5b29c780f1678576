"""What an estimator accepts as a table of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from federated_anon.arrays import Labels, Points
from federated_anon.errors import DataRefused
from federated_anon.som.parallel import slices

CHUNK_ROWS = 1 << 14


def require_points(table: Any, name: str = "X") -> Points:
    """``table`` as a contiguous (n, d) float array, or ``DataRefused`` with ``name`` and what is wrong."""
    array = np.asarray(table)
    if array.dtype.kind not in "fiub":
        raise DataRefused(f"{name} must hold numbers, got an array of type {array.dtype}")
    if array.ndim != 2:
        raise DataRefused(f"{name} must have two dimensions (records, columns), got {array.ndim}")
    if 0 in array.shape:
        raise DataRefused(f"{name} is empty: {array.shape[0]} records, {array.shape[1]} columns")
    wide = array.dtype if array.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    points = np.ascontiguousarray(array, dtype=wide)
    if not all(np.isfinite(points[rows]).all() for rows in slices(len(points), CHUNK_ROWS)):
        raise DataRefused(f"{name} must be finite, but holds NaN or infinite values")
    return points


def require_labels(labels: Any, records: int, name: str = "labels") -> Labels:
    """``labels`` as (records,) non-negative integers, or ``DataRefused`` naming the argument."""
    array = np.asarray(labels)
    if array.shape != (records,) or array.dtype.kind not in "iu":
        raise DataRefused(f"{name} must be {records} integers, got {array.dtype} of shape {array.shape}")
    if records and int(array.min()) < 0:
        raise DataRefused(f"{name} must not be negative")
    return array.astype(np.int64, copy=False)
