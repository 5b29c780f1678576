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
from federated_anon.side.ridge import Regression, regress, remaining_share

LEAST_GAIN = 0.02
"""Share of its residual a correction must remove, after cross-validation, to be worth publishing."""
LEAST_ROOM = 0.25
"""Share of records in cells above k below which no correction is tried."""


def correct(points: Points, codes: Sequence[Code], position: int) -> Correction | None:
    """Correction of ``codes[position]``, the code of ``points``; None where it does not help."""
    own, base = codes[position], rebuild_codes(codes)
    sizes = np.bincount(own.cells)[own.cells]
    features = features_beside(codes, base, position) if (sizes > own.k).mean() >= LEAST_ROOM else None
    if features is None:
        return None
    residual = points - base[position]
    regression = regress(features, residual, len(own.prototypes))
    strength = _strength(points, codes, position, regression)
    left = remaining_share(residual, regression, strength.astype(float), len(own.prototypes))
    return Correction(regression.coefficients, strength) if left < 1 - LEAST_GAIN else None


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
