"""What a holder sends about its records, and the one function that turns it back into points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from federated_anon.arrays import Codebook, Labels, Points, Weights
from federated_anon.errors import DataRefused
from federated_anon.side.features import SideFeatures, side_features


@dataclass(frozen=True, slots=True)
class Code:
    r"""A holder's block as it leaves: :math:`\hat{x}_i = \alpha_i f_i B + w_{c(i)}`.

    ``cells`` (n,) is c, ``prototypes`` (cells, d) are w, the mean residuals of at least k records each;
    ``coefficients`` (features, d) are B and ``strength`` (n,) is alpha, both empty without a prediction from
    the codes published before. ``k`` is the anonymity it was made for.
    """

    k: int
    cells: Labels
    prototypes: Codebook
    coefficients: Points
    strength: Weights

    @property
    def is_conditional(self) -> bool:
        """Whether the code leans on the codes published before it."""
        return len(self.coefficients) > 0


@dataclass(frozen=True, slots=True)
class Correction:
    r"""What the partners' codes add later: :math:`\hat{x}_i + \beta_i (f_i - \bar{f}_{c(i)}) B`."""

    coefficients: Points
    strength: Weights


def plain_code(points: Points, cells: Labels, k: int) -> Code:
    """Code without side information: the cell means."""
    none = np.empty((0, points.shape[1])), np.empty(0, dtype=np.float32)
    return Code(k, cells.astype(np.int32), cell_means(points, cells), *none)


def rebuild(codes: Sequence[Code], corrections: Sequence[Correction | None] = ()) -> tuple[Points, ...]:
    """Code points of every holder, from what all of them sent, in the order of publication."""
    if corrections and len(corrections) != len(codes):
        raise DataRefused(f"corrections must match codes: {len(corrections)} for {len(codes)}")
    base = rebuild_codes(codes)
    if not corrections:
        return base
    return tuple(_corrected(codes, base, i, correction) for i, correction in enumerate(corrections))


def rebuild_codes(codes: Sequence[Code]) -> tuple[Points, ...]:
    """Code points before any correction."""
    base: list[Points] = []
    for position, code in enumerate(codes):
        points: Points = code.prototypes[code.cells]
        if code.is_conditional:
            features = features_before(codes[:position], base, code.k)
            points = points + applied(features, code.coefficients, code.strength)
        base.append(points)
    return tuple(base)


def features_before(codes: Sequence[Code], points: Sequence[Points], k: int) -> SideFeatures | None:
    """Features of the codes published so far, centred over all records."""
    if not codes:
        return None
    together = np.zeros(len(codes[0].cells), dtype=np.int32)
    return side_features(points, [code.cells for code in codes], together, k)


def features_beside(codes: Sequence[Code], points: Sequence[Points], position: int) -> SideFeatures | None:
    """Features for the correction of one code, centred inside its cells.

    A conditional code has used the codes before it, so only those after it are news.
    """
    own = codes[position]
    others = [i for i in range(len(codes)) if i > position or (i < position and not own.is_conditional)]
    return side_features([points[i] for i in others], [codes[i].cells for i in others], own.cells, own.k)


def applied(features: SideFeatures | None, coefficients: Points, strength: Weights) -> Points:
    """(n, d): strength times features times coefficients."""
    if features is None or features.width != len(coefficients):
        raise DataRefused(f"{len(coefficients)} coefficients do not fit the features of the partners' codes")
    held = features
    fitted = np.concatenate(held.each(lambda rows: held.rows(rows) @ coefficients))
    damped: Points = strength.astype(float)[:, None] * fitted
    return damped


def cell_means(points: Points, cells: Labels) -> Codebook:
    """(cells, d): mean of each cell; all cells 0..c-1 are present."""
    counts = np.bincount(cells)
    sums = np.stack([np.bincount(cells, column) for column in np.asarray(points, dtype=float).T], axis=1)
    means: Codebook = sums / counts[:, None]
    return means


def _corrected(codes: Sequence[Code], base: Sequence[Points], i: int, correction: Correction | None) -> Points:
    if correction is None:
        return base[i]
    features = features_beside(codes, base, i)
    points: Points = base[i] + applied(features, correction.coefficients, correction.strength)
    return points
