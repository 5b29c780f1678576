"""Ridge regression on side features, with the penalty chosen by generalised cross-validation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Points, Weights
from federated_anon.side.features import SideFeatures

PENALTIES = np.logspace(-1, 5, 25)


@dataclass(frozen=True, slots=True)
class Regression:
    r"""Coefficients :math:`B = G F^T y` with :math:`G = (F^T F + \lambda I)^{-1}`, and G for leverages."""

    features: SideFeatures
    coefficients: Points
    inverse: NDArray[np.float64]
    freedom: float

    def fitted(self) -> Points:
        """(n, d): :math:`F B`."""
        return np.concatenate(self.features.each(lambda rows: self.features.rows(rows) @ self.coefficients))

    def leverages(self) -> Weights:
        r"""(n,): :math:`h_i = f_i^T G f_i`, the influence of a record on its own fit."""

        def leverage(rows: slice) -> Weights:
            part = self.features.rows(rows)
            return np.einsum("ij,ij->i", part @ self.inverse, part)

        return np.concatenate(self.features.each(leverage))


def regress(features: SideFeatures, targets: Points, taken: int) -> Regression:
    """Fit (n, d) targets, centred as the features are; ``taken`` degrees of freedom are used already."""
    gram, cross = _moments(features, targets)
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 0.0)
    turned = vectors.T @ cross
    power = float(np.einsum("ij,ij->", targets, targets))
    penalty = _best_penalty(values, (turned**2).sum(axis=1), power, len(targets) - taken)
    shrunk = 1 / (values + penalty)
    return Regression(
        features,
        vectors @ (shrunk[:, None] * turned),
        (vectors * shrunk) @ vectors.T,
        float((values * shrunk).sum()),
    )


def remaining_share(residual: Points, regression: Regression, strength: Weights | float, taken: int) -> float:
    """Share of the residual a damped fit leaves, with its degrees of freedom counted against it; at most 1."""
    left = residual - np.reshape(strength, (-1, 1)) * regression.fitted()
    before = float(np.einsum("ij,ij->", residual, residual))
    after = float(np.einsum("ij,ij->", left, left))
    free = len(residual) - taken
    penalty = (free / max(free - regression.freedom, 1.0)) ** 2
    return min(1.0, penalty * after / before) if before > 0 else 1.0


def _moments(features: SideFeatures, targets: Points) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    def moment(rows: slice) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        part = features.rows(rows)
        return part.T @ part, part.T @ targets[rows]

    parts = features.each(moment)
    return np.sum([part[0] for part in parts], axis=0), np.sum([part[1] for part in parts], axis=0)


def _best_penalty(values: Weights, aligned: Weights, power: float, freedom: int) -> float:
    r"""Least :math:`RSS / (n - df)^2`. Golub, Heath & Wahba (1979), Technometrics 21(2), 215-223."""
    shrunk = 1 / (values + PENALTIES[:, None])
    residual = power - 2 * shrunk @ aligned + (values * shrunk**2) @ aligned
    left = np.maximum(freedom - (values * shrunk).sum(axis=1), 1.0)
    return float(PENALTIES[np.argmin(residual / left**2)])
