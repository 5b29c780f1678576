"""The leading principal directions of a small set of records, from additions and products alone.

No call leaves for a linear algebra library: the same records in the same order give the same bits anywhere.
"""

from __future__ import annotations

import numpy as np

from federated_anon.arrays import Points
from federated_anon.microaggregation.compiled import compiled

POWER_STEPS = 24
AGREEMENT = 1e-10
NEGLIGIBLE = 1e-12


@compiled
def leading_directions(rows: Points, most: int) -> Points:
    """(q, d) unit vectors, q <= ``most``: leading eigenvectors of ``rows.T @ rows`` for centred (n, d) rows.

    The smaller of the two products of the rows with themselves is taken apart. The entry of largest size of each
    vector is positive. Rows that are all zero have no direction.
    """
    n, d = rows.shape
    if d <= n:
        return leading_vectors(products(rows), min(most, d))
    weights = leading_vectors(products(rows.T.copy()), most)
    found = np.zeros((len(weights), d))
    for number in range(len(weights)):
        for record in range(n):
            for column in range(d):
                found[number, column] += weights[number, record] * rows[record, column]
        orient(found[number])
    return found


@compiled
def products(rows: Points) -> Points:
    """``rows.T @ rows``, summed in the order of the rows."""
    n, d = rows.shape
    found = np.zeros((d, d))
    for record in range(n):
        for a in range(d):
            value = rows[record, a]
            for b in range(a + 1):
                found[a, b] += value * rows[record, b]
    for a in range(d):
        for b in range(a):
            found[b, a] = found[a, b]
    return found


@compiled
def leading_vectors(matrix: Points, most: int) -> Points:
    """Up to ``most`` eigenvectors of a symmetric matrix, one after another; ``matrix`` is used up.

    Power steps from the axis of the largest diagonal entry, then the part found is taken off the matrix:
    Hotelling (1933), J. Educational Psychology 24, 417-441. A near tie of eigenvalues may leave a mixture of their
    vectors, which serves as well as a direction to cut along.
    """
    d, total = len(matrix), 0.0
    for axis in range(d):
        total += matrix[axis, axis]
    found = np.zeros((most, d))
    for number in range(most):
        value = power_steps(matrix, found[number])
        if value <= NEGLIGIBLE * total:
            return found[:number]
        orient(found[number])
        for a in range(d):
            for b in range(d):
                matrix[a, b] -= value * found[number, a] * found[number, b]
    return found


@compiled
def power_steps(matrix: Points, vector: Points) -> float:
    """Turn ``vector`` to the leading eigenvector and give its eigenvalue."""
    d, largest, value = len(matrix), 0, 0.0
    for axis in range(d):
        if matrix[axis, axis] > matrix[largest, largest]:
            largest = axis
    image = matrix[largest].copy()
    for _ in range(POWER_STEPS):
        length = np.sqrt(dot(image, image))
        if length == 0.0:
            return 0.0
        before = value
        vector[:] = image / length
        for a in range(d):
            image[a] = dot(matrix[a], vector)
        value = dot(image, vector)
        if abs(value - before) <= AGREEMENT * value:
            break
    return value


@compiled
def orient(vector: Points) -> None:
    """Scale to length one with the entry of largest size positive; the first of equals decides."""
    largest = 0
    for axis in range(1, len(vector)):
        if abs(vector[axis]) > abs(vector[largest]):
            largest = axis
    length = np.sqrt(dot(vector, vector))
    if vector[largest] < 0.0:
        length = -length
    vector /= length


@compiled
def dot(a: Points, b: Points) -> float:
    """Inner product, summed from the first entry to the last."""
    total = 0.0
    for axis in range(len(a)):
        total += a[axis] * b[axis]
    return total
