r"""Codes in turn: each holder codes only what the codes published before it do not already tell.

With features f of the earlier codes, a ridge prediction :math:`p_i = \alpha_i f_i B` is taken off, the
residual :math:`r = x - p` is cut into cells, and the code is :math:`p_i + \bar{r}_{c(i)}`. A mean of k
records lets a record move its own code by 1/k of its own change. The prediction has an influence of its own, so
cells hold k + 1 records and alpha takes what is left:

.. math:: \alpha_i h_i + \frac{1}{n_c} - \frac{1}{n_c} \sum_{j \in c(i)} \alpha_j f_j^T G f_i \le \frac{1}{k}

(cells and penalty held fixed). It is used only where it lowers the holder's own loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from federated_anon.arrays import Labels, Points, Weights
from federated_anon.errors import DataRefused
from federated_anon.side.code import Code, cell_means, features_before, features_beside, plain_code, rebuild_codes
from federated_anon.side.ridge import Regression, regress, remaining_share

LEAST_R2 = 0.3
LEAST_LOSS = 0.1
"""Share of its variance a plain code must lose before a conditional one is tried: fine cells leave it no gain."""
LEAST_FALL = 0.1

Partition: TypeAlias = Callable[[Points, int], Labels]
"""(points, least size) -> cells of at least that many records, 0..c-1."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A fit from the earlier codes, its fitted values and leverages, and how far each record follows it."""

    regression: Regression
    fitted: Points
    leverages: Weights
    strength: Weights

    @property
    def values(self) -> Points:
        """(n, d): p, a shift of the points that whoever holds the codes can compute."""
        shift: Points = self.strength.astype(float)[:, None] * self.fitted
        return shift


def encode_block(points: Points, partners: Sequence[Code], k: int, partition: Partition) -> Code:
    """The holder's code, given the codes published before it; the cells are those of ``partition``.

    A conditional code replaces the plain one only if cells alone lose much (``LEAST_LOSS``), the prediction
    explains much (``LEAST_R2``), and its loss is clearly below what the plain code would lose once the partners'
    codes are read beside it (``LEAST_FALL``): the grouping reads them anyway.
    """
    plain = plain_code(points, partition(points, k), k)
    enough = LEAST_LOSS * _spread(points - points.mean(axis=0))
    prediction = predict(points, partners, k) if own_loss(points, plain, ()) > enough else None
    if prediction is None:
        return plain
    cells = partition(points - prediction.values, k + 1)
    candidate = conditional_code(points, prediction, cells, k)
    bar = (1 - LEAST_FALL) * _loss_beside(points, plain, partners)
    return candidate if own_loss(points, candidate, partners) < bar else plain


def _loss_beside(points: Points, plain: Code, partners: Sequence[Code]) -> float:
    """Loss of the plain code after a regression of its residual, inside cells, on the partners' codes."""
    codes = [*partners, plain]
    residual = points - plain.prototypes[plain.cells]
    features = features_beside(codes, rebuild_codes(codes), len(partners))
    if features is None:
        return _spread(residual)
    taken = len(plain.prototypes)
    return _spread(residual) * remaining_share(residual, regress(features, residual, taken), 1.0, taken)


def own_loss(points: Points, code: Code, partners: Sequence[Code]) -> float:
    """Sum of squared distances of the records to their code points."""
    return _spread(points - rebuild_codes([*partners, code])[-1])


def _spread(gaps: Points) -> float:
    return float(np.einsum("ij,ij->", gaps, gaps))


def predict(points: Points, partners: Sequence[Code], k: int) -> Prediction | None:
    """Prediction from the earlier codes, or None where it explains too little to be worth a larger cell."""
    if features_before(partners, rebuild_codes(partners), k) is None:
        return None
    regression = fit_before(points, partners, k)
    fitted, leverages = regression.fitted(), regression.leverages()
    room = 1 / k - 1 / (k + 1) - 1 / len(points)
    strength = np.clip(room / np.maximum(leverages, 1e-12), 0.0, 1.0).astype(np.float32)
    prediction = Prediction(regression, fitted, leverages, strength)
    return prediction if explained(points, prediction) > LEAST_R2 else None


def fit_before(points: Points, partners: Sequence[Code], k: int) -> Regression:
    """The regression of the points on the codes published before; the same whenever it is asked again."""
    features = features_before(partners, rebuild_codes(partners), k)
    if features is None:
        raise DataRefused("a prediction needs codes published before, with room for their features")
    return regress(features, points - points.mean(axis=0), 1)


def explained(points: Points, prediction: Prediction) -> float:
    """R^2 of the damped prediction, adjusted for the degrees of freedom it used."""
    centred = points - points.mean(axis=0)
    left = centred - prediction.values
    free = max(len(points) - prediction.regression.freedom - 1, 1.0)
    return 1 - _spread(left) / free * len(points) / max(_spread(centred), 1e-12)


def conditional_code(points: Points, prediction: Prediction, cells: Labels, k: int) -> Code:
    """Code of the residual's cells, with the strength lowered where a record would weigh more than 1/k."""
    strength = prediction.strength * safe_share(prediction, cells, k)[cells].astype(np.float32)
    shift = strength.astype(float)[:, None] * prediction.fitted
    means = cell_means(points - shift, cells)
    return Code(k, cells.astype(np.int32), means, prediction.regression.coefficients, strength)


def safe_share(prediction: Prediction, cells: Labels, k: int) -> Weights:
    """(cells,): largest common factor of the strengths in a cell that keeps each own influence within 1/k."""
    sizes = np.bincount(cells)[cells]
    slope = influence_of_prediction(prediction, cells)
    room = np.where(slope > 0, 1 / k - 1 / sizes, 1 / k + 1 / sizes)
    most = np.clip(room / np.maximum(np.abs(slope), 1e-12), 0.0, 1.0)
    share = np.ones(int(cells.max()) + 1)
    np.minimum.at(share, cells, most)
    return np.where(share < 1, share * (1 - 1e-6), share)


def influence_of_prediction(prediction: Prediction, cells: Labels) -> Weights:
    """(n,): what the prediction adds to a record's influence on its own code, 1/n_c apart."""
    features, inverse = prediction.regression.features, prediction.regression.inverse
    strength = prediction.strength.astype(float)
    pulled = np.zeros((int(cells.max()) + 1, features.width))
    for rows in features.each(lambda rows: rows):
        pulled += cell_sums(strength[rows, None] * features.rows(rows), cells[rows], len(pulled))
    pulled /= np.bincount(cells)[:, None]

    def cross(rows: slice) -> Weights:
        return np.einsum("ij,ij->i", features.rows(rows) @ inverse, pulled[cells[rows]])

    influence: Weights = strength * prediction.leverages - np.concatenate(features.each(cross))
    return influence


def cell_sums(values: Points, cells: Labels, count: int) -> Points:
    """(count, width): sums of the rows of each cell."""
    return np.stack([np.bincount(cells, column, minlength=count) for column in values.T], axis=1)
