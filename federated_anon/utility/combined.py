"""One figure out of two, and one figure over many tables, as the papers combine them."""

from __future__ import annotations

from collections.abc import Mapping

from federated_anon.errors import DataRefused


def combined_utility(separability: float, structural: float, alpha: float = 0.5) -> float:
    r""":math:`\alpha \cdot separability + (1 - \alpha) \cdot structural`, all of them shares from 0 to 1."""
    if not (0.0 <= alpha <= 1.0 and 0.0 <= separability <= 1.0 and structural <= 1.0):
        raise DataRefused(f"shares from 0 to 1 are combined, got {separability}, {structural} by {alpha}")
    return alpha * separability + (1.0 - alpha) * structural


def scores(utility: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    r"""``utility[method][table]`` -> per method :math:`\sum_j u(A_i, D_j) / \max_i u(A_i, D_j)`.

    At most the number of tables, reached by a method that is best on each. Every method needs every table.
    """
    tables = {frozenset(row) for row in utility.values()}
    if len(tables) != 1:
        raise DataRefused("a score compares methods on the same tables")
    (common,) = tables
    best = {table: max(row[table] for row in utility.values()) for table in common}
    if any(top <= 0 for top in best.values()):
        raise DataRefused("a score needs a method with a positive utility on every table")
    return {name: sum(row[table] / best[table] for table in sorted(common)) for name, row in utility.items()}
