"""What a release costs, in the figures of the literature: distortion, information loss, discernibility, trade-off.

Fung, Wang, Chen & Yu (2010), ACM Computing Surveys 42(4), article 14, section 4, sort them by purpose. ``labels`` are
the groups of the records; who is in which group is known to whoever made the release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from federated_anon.arrays import Labels
from federated_anon.columns import NUMERIC, Column, Kind
from federated_anon.encoding import Encoding, column_of, squared_loss
from federated_anon.errors import DataRefused
from federated_anon.privacy.information import conditional_entropy, entropy, shares
from federated_anon.quantities import quantities
from federated_anon.tally import Values, first_pair, group_sizes, ranked, tally


@dataclass(frozen=True, slots=True)
class InformationLoss:
    """100 SSE / SST of the whole table and of each column."""

    percent: float
    columns: dict[str, float]


def information_loss(original: pa.Table, released_rows: pa.Table, columns: Sequence[Column]) -> InformationLoss:
    """What publishing ``released_rows[i]`` for ``original[i]`` loses, in the encoding of distances."""
    found = squared_loss(Encoding.fit(original, columns), original, released_rows)
    total = sum(one.sst for one in found)
    each = {one.name: 100.0 * one.sse / one.sst if one.sst else 0.0 for one in found}
    return InformationLoss(100.0 * sum(one.sse for one in found) / total if total else 0.0, each)


def minimal_distortion(original: pa.Table, released_rows: pa.Table, columns: Sequence[str]) -> int:
    """Cells that changed, each one unit of distortion; missing is a value like any other.

    Samarati (2001), IEEE TKDE 13(6), 1010-1027.
    """
    return sum(_changed(column_of(original, name), column_of(released_rows, name)) for name in columns)


def least_distortion(original: pa.Table, release: pa.Table, columns: Sequence[str]) -> int:
    """Cells that must have changed whichever row stands for whom: what a column's values have not in common."""
    return sum(_uncommon(column_of(original, name), column_of(release, name)) for name in columns)


def discernibility(labels: Labels, k: int = 1) -> int:
    r"""Sum of squared group sizes; a group below ``k`` counts as suppressed, at the size of the table per record.

    .. math:: \sum_{|E| \ge k} |E|^2 + \sum_{|E| < k} |D| |E|

    Bayardo & Agrawal (2005), ICDE, 217-228.
    """
    sizes = group_sizes(labels).astype(np.int64)
    return int(np.where(sizes >= k, sizes, len(labels)) @ sizes)


def classification_metric(classes: Values, labels: Labels, k: int = 1) -> float:
    """Share of records whose class is not the most frequent of their group, or whose group is below ``k``.

    Iyengar (2002), KDD, 279-288.
    """
    counted = tally(ranked(classes).positions, labels)
    right = np.maximum.reduceat(counted.count, first_pair(counted))
    return 1.0 - float(right[counted.sizes >= k].sum()) / len(labels)


def range_loss(original: pa.Table, columns: Sequence[Column], labels: Labels) -> float:
    r"""Information loss of publishing each group's range, summed over groups and columns.

    .. math:: \sum_e |e| \Big( \sum_i \frac{\max_e N_i - \min_e N_i}{|N_i|}
              + \sum_j \frac{H(\wedge(\cup_{C_j}))}{H(T_{C_j})} \Big)

    A category has a tree of one level: 0 in a group of one value, 1 in any other. Missing makes a group's range whole.
    Byun, Kamra, Bertino & Li (2007), DASFAA, 188-200. Divide by records times columns for a share.
    """
    sizes = group_sizes(labels)
    return float(sum((sizes * _extent(column_of(original, c.name), c, labels)).sum() for c in columns))


def trade_off(classes: Values, labels: Labels) -> float:
    r"""Information gained per anonymity given up, when one group of all is specialised to ``labels``.

    .. math:: \frac{H(C) - H(C \mid E)}{(n - \min |E|) + 1}

    in bits. Fung, Wang & Yu (2007), IEEE TKDE 19(5), 711-725.
    """
    gained = entropy(shares(classes)) - conditional_entropy(classes, labels)
    return gained / (len(labels) - int(group_sizes(labels).min()) + 1)


def _changed(before: Values, after: Values) -> int:
    if len(before) != len(after):
        raise DataRefused(f"{len(before)} records need as many released rows, got {len(after)}")
    both = _alike(before, after)
    return int((both[: len(before)] != both[len(before) :]).sum())


def _uncommon(before: Values, after: Values) -> int:
    both = _alike(before, after)
    width = int(both.max(initial=0)) + 1
    had, has = (np.bincount(part, minlength=width) for part in (both[: len(before)], both[len(before) :]))
    return int(np.maximum(had - has, 0).sum())


def _alike(before: Values, after: Values) -> Labels:
    """(n + m,): codes of both columns' values, equal where the values are, whatever their numeric type."""
    first, second = (one.combine_chunks() if isinstance(one, pa.ChunkedArray) else one for one in (before, after))
    if pa.types.is_dictionary(first.type):
        first = first.cast(first.type.value_type)
    if first.type != second.type:
        second = second.cast(first.type, safe=False) if not pa.types.is_integer(first.type) else second
        first = first.cast(second.type)
    return ranked(pa.concat_arrays([first, second])).positions


def _extent(values: pa.ChunkedArray, column: Column, labels: Labels) -> np.ndarray:
    """(g,): each group's range as a share of the column's."""
    if column.kind not in NUMERIC | {Kind.ORDERED}:
        counted = tally(ranked(values).positions, labels)
        return (np.bincount(counted.group, minlength=len(counted.sizes)) > 1).astype(float)
    ranks = ranked(values, column.levels)
    if column.kind is Kind.ORDERED:
        numbers, present = ranks.positions.astype(float), ranks.positions < len(ranks.distinct)
    else:
        found = quantities(values, column.name)
        numbers, present = found.values.astype(float), found.present
    if not present.any() or np.ptp(numbers[present]) == 0:
        return np.zeros(int(labels.max()) + 1)
    return _ranges(numbers, present, labels) / float(np.ptp(numbers[present]))


def _ranges(numbers: np.ndarray, present: np.ndarray, labels: Labels) -> np.ndarray:
    groups = int(labels.max()) + 1
    low, high = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(low, labels[present], numbers[present])
    np.maximum.at(high, labels[present], numbers[present])
    absent = np.bincount(labels[~present], minlength=groups) > 0
    whole = float(np.ptp(numbers[present]))
    return np.where(absent, whole, np.maximum(high - low, 0.0))
