r"""wLVQ2: codewords and feature weights moved by labels, so that records lie nearer to codewords of their own class.

For a record x whose nearest codeword m_i is of another class and whose second nearest m_j is of its own, both measured
from Wx with a diagonal W, and which lies in a window around their midplane:

.. math:: m_j \mathrel{+}= a (Wx - m_j), \quad m_i \mathrel{-}= a (Wx - m_i), \quad
          w_k \mathrel{-}= b\, x_k (m_{ik} - m_{jk})

which lowers :math:`R = \lVert Wx - m_j \rVert^2 - \lVert Wx - m_i \rVert^2`: its gradients in m_j, m_i and w_k are
:math:`-2(Wx - m_j)`, :math:`2(Wx - m_i)` and :math:`2 x_k (m_{ik} - m_{jk})`. R has no lower bound, so W is clipped.
Codewords live where Wx lives; divided by W they are points of the table again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.random import Generator

from federated_anon.arrays import Codebook, Labels, Points, Weights
from federated_anon.errors import DataRefused
from federated_anon.microaggregation.compiled import compiled
from federated_anon.microaggregation.units import dissolve
from federated_anon.som.nearest import assign_units
from federated_anon.som.points import require_labels, require_points


@dataclass
class WeightedLVQ2:
    """wLVQ2 over ``passes`` of ``most`` records each, drawn at random, with rates that fall linearly to a tenth.

    ``rate`` is a, ``weight_rate`` is b, ``window`` the relative width of the window, ``bounds`` what W is clipped to.
    """

    rate: float = 0.05
    weight_rate: float = 0.005
    window: float = 0.3
    passes: int = 5
    most: int = 20_000
    bounds: tuple[float, float] = (0.25, 4.0)
    codewords_: Codebook = field(init=False, repr=False, compare=False)
    weights_: Weights = field(init=False, repr=False, compare=False)
    steps_: int = field(init=False, repr=False, compare=False)

    def fit(self, X: Points, labels: Labels, codebook: Codebook, classes: Labels, rng: Generator) -> Self:
        """Move the ``codebook``, whose prototypes have the ``classes`` given, by the labelled (n, d) records."""
        points, own = self._accepted(X, labels, codebook, classes)
        codewords = np.array(codebook, dtype=float)
        weights = np.ones(points.shape[1])
        self.steps_ = 0
        for share in np.linspace(1.0, 0.1, self.passes):
            order = rng.permutation(len(points))[: self.most]
            rates = np.array([self.rate * share, self.weight_rate * share, self.window, *self.bounds])
            self.steps_ += int(one_pass(points, own, order, codewords, np.asarray(classes), weights, rates))
        self.codewords_, self.weights_ = codewords, weights
        return self

    @property
    def codebook_(self) -> Codebook:
        """The codewords as points of the table: divided by W."""
        mapped: Codebook = self.codewords_ / self.weights_
        return mapped

    def assign(self, X: Points) -> Labels:
        """The nearest codeword of each record, in the space of Wx."""
        return assign_units(require_points(X).astype(float) * self.weights_, self.codewords_)

    def _accepted(self, X: Points, labels: Labels, codebook: Codebook, classes: Labels) -> tuple[Points, Labels]:
        points = np.ascontiguousarray(require_points(X), dtype=float)
        if np.shape(codebook)[1:] != points.shape[1:] or len(classes) != len(codebook):
            raise DataRefused("the codebook must have the columns of X, and every prototype one class")
        if not (0 < self.rate < 1 and self.weight_rate >= 0 and 0 < self.window < 1 and self.passes >= 0):
            raise DataRefused("rate and window lie between 0 and 1, weight_rate and passes are not negative")
        if not 0 < self.bounds[0] <= 1 <= self.bounds[1]:
            raise DataRefused(f"bounds of the weights must hold 1 and be positive, got {self.bounds}")
        return points, require_labels(labels, len(points))


@compiled
def one_pass(
    points: Points,
    labels: Labels,
    order: Labels,
    codewords: Codebook,
    classes: Labels,
    weights: Weights,
    rates: Weights,
) -> int:
    """All records once, in ``order``; edits codewords and weights, returns how many steps were taken."""
    steps = 0
    narrowest = (1 - rates[2]) / (1 + rates[2])
    for record in order:
        x = points[record]
        first, second, near, far = two_codewords(x, codewords, weights)
        if second < 0 or classes[first] == labels[record] or classes[second] != labels[record]:
            continue
        if near >= narrowest * narrowest * far:
            step(x, codewords[first], codewords[second], weights, rates)
            steps += 1
    return steps


@compiled
def two_codewords(x: Points, codewords: Codebook, weights: Weights) -> tuple[int, int, float, float]:
    """The nearest and the second nearest codeword of Wx, and their squared distances; ties go to the lowest."""
    first, second, near, far = -1, -1, np.inf, np.inf
    for word in range(len(codewords)):
        apart = 0.0
        for column in range(len(x)):
            gap = weights[column] * x[column] - codewords[word, column]
            apart += gap * gap
        if apart < near:
            first, second, near, far = word, first, apart, near
        elif apart < far:
            second, far = word, apart
    return first, second, near, far


@compiled
def step(x: Points, wrong: Points, right: Points, weights: Weights, rates: Weights) -> None:
    """One step in place, codewords first, then the weights by the moved codewords: either part lowers the cost.

    ``rates`` holds a, b, the window, and the least and largest weight.
    """
    for column in range(len(x)):
        seen = weights[column] * x[column]
        right[column] += rates[0] * (seen - right[column])
        wrong[column] -= rates[0] * (seen - wrong[column])
        moved = weights[column] - rates[1] * x[column] * (wrong[column] - right[column])
        weights[column] = min(max(moved, rates[3]), rates[4])


def cost(x: Points, wrong: Points, right: Points, weights: Weights) -> float:
    """R of one record: how much nearer the right codeword is than the wrong one; lower is better."""
    seen = weights * x
    return float(((seen - right) ** 2).sum() - ((seen - wrong) ** 2).sum())


@dataclass(frozen=True, slots=True)
class Refined:
    """Prototypes after wLVQ2, as points of the table, and the unit of each record, none below k."""

    codebook: Codebook
    units: Labels


def refined_units(points: Points, units: Labels, codebook: Codebook, labels: Labels, k: int, rng: Generator) -> Refined:
    """Units that hold records take their most frequent class, move by wLVQ2, and take the records nearest to them.

    Units left with fewer than k records dissolve, smallest first, all in the space of Wx.
    """
    present, members = np.unique(units, return_inverse=True)
    lvq = WeightedLVQ2().fit(points, labels, codebook[present], majority(members, labels), rng)
    owners = np.asarray(lvq.assign(points))
    dissolve(np.asarray(points, dtype=float) * lvq.weights_, owners, lvq.codewords_, k)
    moved = np.array(codebook, dtype=float)
    moved[present] = lvq.codebook_
    return Refined(moved, present[owners])


def majority(units: Labels, labels: Labels) -> Labels:
    """(units,): the most frequent label in each of the units 0..u-1, all present; ties go to the lowest label."""
    classes, own = np.unique(labels, return_inverse=True)
    pairs, counts = np.unique(units * len(classes) + own, return_counts=True)
    unit, label = np.divmod(pairs, len(classes))
    order = np.lexsort((label, -counts, unit))
    _, first = np.unique(unit[order], return_index=True)
    found: Labels = classes[label[order][first]]
    return found
