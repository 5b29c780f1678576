r"""A holder's code, improved after all have published by what the partners' codes say about its residual.

Inside a cell the code is flat; the residual :math:`e = x - \hat{x}` is regressed on the partners' features
centred in the cells, and the coefficients are published with a strength per record,

.. math:: \hat{x}_i + \beta_i \tilde{f}_i B, \quad
          \beta_i = \min\bigl(1, (1/k - u_i) / q_i\bigr)

where u is the record's influence on its code so far and q what the correction would add. A cell of exactly k
has no room (u = 1/k, so beta = 0): corrections act where cells are larger.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from federated_anon.arrays import Points, Weights
from federated_anon.side.code import Code, Correction, features_beside, rebuild_codes
from federated_anon.side.conditional import Prediction, fit_before, influence_of_prediction
from federated_anon.side.ridge import Regression, regress

LEAST_GAIN = 0.002
"""Share of its residual a correction must remove, after cross-validation, to be worth publishing."""


def correct(points: Points, codes: Sequence[Code], position: int) -> Correction | None:
    """Correction of ``codes[position]``, the code of ``points``; None where it does not help."""
    own, base = codes[position], rebuild_codes(codes)
    features = features_beside(codes, base, position)
    if features is None or int(np.bincount(own.cells).max()) <= own.k:
        return None
    residual = points - base[position]
    regression = regress(features, residual, len(own.prototypes))
    strength = _strength(points, codes, position, regression)
    correction = Correction(regression.coefficients, strength)
    return correction if _gain(residual, regression, strength, own) > LEAST_GAIN else None


def _gain(residual: Points, regression: Regression, strength: Weights, own: Code) -> float:
    """Share of the residual that is removed, with the fall of the degrees of freedom counted against it."""
    left = residual - strength.astype(float)[:, None] * regression.fitted()
    before = float(np.einsum("ij,ij->", residual, residual))
    after = float(np.einsum("ij,ij->", left, left))
    free = len(residual) - len(own.prototypes)
    penalty = (free / max(free - regression.freedom, 1.0)) ** 2
    return 1 - penalty * after / before if before > 0 else 0.0


def _strength(points: Points, codes: Sequence[Code], position: int, regression: Regression) -> Weights:
    """Strength of the correction that keeps each record's influence on its own code within 1/k."""
    own = codes[position]
    added = regression.leverages()
    used = 1 / np.bincount(own.cells)[own.cells]
    if own.is_conditional:
        first = fit_before(points, codes[:position], own.k)
        prediction = Prediction(first, first.fitted(), first.leverages(), own.strength)
        used = used + influence_of_prediction(prediction, own.cells)
        added = added - _foreseen(regression, prediction)
    room = np.where(added > 0, 1 / own.k - used, 1 / own.k + used)
    most = np.clip(room / np.maximum(np.abs(added), 1e-12), 0.0, 1.0)
    strength: Weights = (most * (1 - 1e-6)).astype(np.float32)
    return strength


def _foreseen(regression: Regression, prediction: Prediction) -> Weights:
    r"""(n,): :math:`\tilde{f}_i^T G_2 \tilde{F}^T A F G_1 f_i`, what the prediction takes off a residual."""
    later, earlier = regression.features, prediction.regression.features
    strength = prediction.strength.astype(float)
    crossed = sum(
        later.each(lambda rows: later.rows(rows).T @ (strength[rows, None] * earlier.rows(rows))),
        start=np.zeros((later.width, earlier.width)),
    )
    bridge = regression.inverse @ crossed @ prediction.regression.inverse

    def part(rows: slice) -> Weights:
        return np.einsum("ij,ij->i", later.rows(rows) @ bridge, earlier.rows(rows))

    return np.concatenate(later.each(part))
