"""t-closeness: a sensitive column is spread in every group nearly as in the whole table.

Li, Li & Venkatasubramanian (2007), ICDE, 106-115: the distance is the earth mover's distance (EMD).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Labels
from federated_anon.errors import DataRefused, GuaranteeBroken
from federated_anon.tally import Tally, Values, first_pair, ranked, tally

ROUNDING = 1e-9
"""A distance that equals t may exceed it by this much."""

Distances = NDArray[np.float64]
"""(g,): the distance of each group from the whole column."""


def closeness(values: Values, labels: Labels, ordered: bool, levels: Sequence[str] = ()) -> Distances:
    r"""(g,): EMD between each group's values and the whole column's; 0 is alike, 1 the farthest possible.

    With P the group's and Q the column's shares of the m distinct values:

    .. math:: \text{ordered: } \frac{1}{m-1} \sum_i \Big| \sum_{j \le i} (P_j - Q_j) \Big|
              \qquad \text{unordered: } \frac{1}{2} \sum_i | P_i - Q_i |

    ``ordered`` ranks numbers and dates by size and strings by ``levels`` (sorted where not declared). Missing
    is one more value, ranked last. A column of one value scores 0.
    """
    if len(values) == 0:
        raise DataRefused("t-closeness needs at least one record")
    counted = tally(ranked(values, levels).positions, labels)
    return _ordered_distance(counted) if ordered else _unordered_distance(counted)


def require_t(values: Values, labels: Labels, t: float, ordered: bool, levels: Sequence[str] = ()) -> None:
    """Raise ``GuaranteeBroken`` unless every group is within ``t`` of the whole column."""
    found = closeness(values, labels, ordered, levels)
    if (worst := float(found.max())) > t + ROUNDING:
        failing = int((found > t + ROUNDING).sum())
        raise GuaranteeBroken(f"t-closeness: every group must be within {t}, {failing} fail, the worst is {worst:.6g}")


def _unordered_distance(counted: Tally) -> Distances:
    """Half the L1 distance, as the sum of what the group has too much of: only its own values count."""
    group_share = counted.count / counted.sizes[counted.group]
    column_share = counted.totals[counted.level] / counted.sizes.sum()
    return np.add.reduceat(np.maximum(group_share - column_share, 0.0), first_pair(counted))


def _ordered_distance(counted: Tally) -> Distances:
    """Sum of the gaps between two cumulative curves, group by group.

    A group's curve is flat between the values that occur in it, so each flat stretch is summed at once from
    prefix sums of the column's curve: O(pairs log m), where a table of groups by values would need O(g m).
    """
    records, levels = int(counted.sizes.sum()), len(counted.totals)
    if levels == 1:
        return np.zeros(len(counted.sizes))
    first = first_pair(counted)
    reached = _cumulated(counted, first) / counted.sizes[counted.group]
    ends = np.append(counted.level[1:], levels)
    ends[np.append(first[1:], len(ends)) - 1] = levels
    column = _Curve(np.cumsum(counted.totals), records)
    gaps = np.add.reduceat(column.gap(reached, counted.level, ends), first)
    before = column.gap(np.zeros(len(first)), np.zeros(len(first), np.int64), counted.level[first])
    return (gaps + before) / (levels - 1)


def _cumulated(counted: Tally, first: Labels) -> NDArray[np.int64]:
    """Running count within each group."""
    running = np.cumsum(counted.count)
    return running - (running[first] - counted.count[first])[counted.group]


class _Curve:
    """A column's cumulative shares, with the prefix sums that make sums of gaps cheap."""

    def __init__(self, cumulated: NDArray[np.int64], records: int) -> None:
        self._shares = cumulated / records
        self._prefix = np.concatenate([[0], np.cumsum(cumulated)]) / records

    def gap(self, height: Distances, begin: Labels, end: Labels) -> Distances:
        """Sum over levels in [begin, end) of the distance between a constant height and the curve."""
        crossing = np.clip(np.searchsorted(self._shares, height), begin, end)
        below = height * (crossing - begin) - (self._prefix[crossing] - self._prefix[begin])
        above = (self._prefix[end] - self._prefix[crossing]) - height * (end - crossing)
        return below + above
