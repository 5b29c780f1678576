"""The map's shape: where its units lie, and how near one is to another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from federated_anon.errors import DataRefused


@dataclass(frozen=True, slots=True)
class Grid:
    """A rectangle of ``rows`` x ``cols`` units, counted row by row."""

    rows: int
    cols: int

    def __post_init__(self) -> None:
        if self.rows < 1 or self.cols < 1:
            raise DataRefused(f"rows and cols must be at least 1, got {self.rows} x {self.cols}")

    @classmethod
    def for_records(cls, records: int, scale: float = 5.0) -> Grid:
        """About ``scale * sqrt(records)`` units, nearly square (Vesanto & Alhoniemi 2000), at least 2 x 2."""
        units = max(4.0, scale * np.sqrt(records))
        rows = max(2, int(np.sqrt(units)))
        return cls(rows, max(2, round(units / rows)))

    @classmethod
    def with_units(cls, units: int) -> Grid:
        """At least ``units`` units, nearly square, but no side longer than 512."""
        rows = min(512, max(1, int(np.ceil(np.sqrt(units)))))
        return cls(rows, min(512, max(1, -(-units // rows))))

    @property
    def units(self) -> int:
        """Number of units."""
        return self.rows * self.cols

    def coordinates(self) -> NDArray[np.float64]:
        """(units, 2): row and column of each unit."""
        return np.stack(np.divmod(np.arange(self.units), self.cols), axis=1).astype(float)

    def kernel(self, radius: float) -> NDArray[np.float64]:
        r"""(units, units): :math:`K_{ab} = \exp(-\lVert a - b \rVert^2 / T^2)` for small maps."""
        return np.asarray(np.kron(axis_kernel(self.rows, radius), axis_kernel(self.cols, radius)), dtype=float)

    def smooth(self, values: NDArray[np.floating], radius: float) -> NDArray[np.float64]:
        """``kernel(radius) @ values`` for (units, m) values, axis by axis: O(units * (rows + cols) * m)."""
        along_rows = axis_kernel(self.rows, radius)
        along_cols = axis_kernel(self.cols, radius)
        return convolve(values.reshape(self.rows, self.cols, -1), along_rows, along_cols).reshape(self.units, -1)


def axis_kernel(length: int, radius: float) -> NDArray[np.float64]:
    """The factor of the neighbourhood that belongs to one axis; Euclidean distance makes it separable."""
    steps = np.arange(length, dtype=float)
    return np.asarray(np.exp(-(np.subtract.outer(steps, steps) ** 2) / radius**2))


def convolve(
    values: NDArray[np.floating], along_rows: NDArray[np.float64], along_cols: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Apply one matrix to the first axis and one to the second of (rows, cols, m) values."""
    rows, cols, width = values.shape
    half = (along_rows @ values.reshape(rows, cols * width)).reshape(-1, cols, width)
    return np.asarray(np.matmul(along_cols, half))
