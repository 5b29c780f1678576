"""The best split of one group by one holder's columns: cuts along directions, then two means of bounded size."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Labels, Points, Weights
from federated_anon.microaggregation.compiled import compiled
from federated_anon.sealed.directions import dot, leading_directions

SLIGHT = 1e-9
EVENNESS = 0.2
"""How much an even split counts: 1 is the fall of SSE, 0 the distance of the means; 0.1 to 0.5 do about as well."""

Sides = NDArray[np.uint8]
"""(n,): 0 for the first part of a split, 1 for the second."""


class Sorted(NamedTuple):
    """A holder's table in its canonical order, and the way there and back."""

    points: Points  # (n, d)
    order: Labels  # (n,) the record at each position
    rank: Labels  # (n,) the position of each record


class Search(NamedTuple):
    """How to search, as compiled code takes it."""

    k: int
    directions: int
    refinements: int
    waste_free: int
    sample: int
    unseen: float
    unseen_near: float
    near: int
    shrink: Weights  # (n // k + 1,) see SplitRules.shrinkage


@compiled
def split(points: Points, positions: Labels, search: Search, sides: Sides) -> float:
    """Fill ``sides`` with the best split of the records at ``positions``; gives its ``gain``.

    Only the records that are searched are copied; of a large group all others are read where they lie.
    """
    step = 1 + (len(positions) - 1) // max(search.sample, 2 * search.waste_free * search.k)
    centre = mean_of(points, positions[::step])
    rows = centred(points, positions[::step], centre)
    order, size = best_cut(rows, step, search)
    if step == 1:
        sides[:] = 1
        for place in range(size):
            sides[order[place]] = 0
    else:
        axis, few = np.empty(points.shape[1]), np.empty(len(rows))
        total(rows, order[:size], axis)
        project(rows, axis, few)
        divide(few, size, project_from(points, positions, centre, axis), search.k, sides)
    return gain(points, positions, centre, sides)


@compiled
def mean_of(points: Points, positions: Labels) -> Points:
    """The mean of the records at some positions, summed in their order."""
    centre = np.zeros(points.shape[1])
    for record in positions:
        for column in range(len(centre)):
            centre[column] += points[record, column]
    return centre / len(positions)


@compiled
def centred(points: Points, positions: Labels, centre: Points) -> Points:
    """The records at some positions less ``centre``."""
    rows = np.empty((len(positions), len(centre)))
    for record in range(len(positions)):
        for column in range(len(centre)):
            rows[record, column] = points[positions[record], column] - centre[column]
    return rows


@compiled
def best_cut(rows: Points, step: int, search: Search) -> tuple[Labels, int]:
    """Order of the rows, and how many of them come before the cut, of the least predicted SSE.

    Each direction is followed by size-constrained 2-means: project on the difference of the two means, cut again, for
    as long as the score falls. Rows that are all alike are halved.
    """
    n, d = rows.shape
    axes = leading_directions(rows, search.directions)
    squares = np.empty(n)
    for record in range(n):
        squares[record] = dot(rows[record], rows[record])
    order, size, least = np.arange(n), n // 2, np.inf
    scores, axis = np.empty(n), np.empty(d)
    for number in range(len(axes)):
        axis[:] = axes[number]
        before = np.inf
        for _ in range(search.refinements):
            project(rows, axis, scores)
            tried = np.argsort(scores, kind="mergesort")
            cost, place = scan(rows, squares, tried, step, search)
            if cost >= before * (1 - SLIGHT):
                break
            before = cost
            if cost < least:
                least, size, order = cost, place, tried
            total(rows, tried[:place], axis)
    return order, size


@compiled
def project(rows: Points, axis: Points, scores: Points) -> None:
    """Inner products of the rows with ``axis``."""
    for record in range(len(rows)):
        scores[record] = dot(rows[record], axis)


@compiled
def project_from(points: Points, positions: Labels, centre: Points, axis: Points) -> Points:
    """Inner products of the records at some positions, less ``centre``, with ``axis``."""
    scores = np.empty(len(positions))
    for record in range(len(positions)):
        row, score = points[positions[record]], 0.0
        for column in range(len(axis)):
            score += (row[column] - centre[column]) * axis[column]
        scores[record] = score
    return scores


@compiled
def total(rows: Points, chosen: Labels, out: Points) -> None:
    """Sum of the chosen rows."""
    out[:] = 0.0
    for record in chosen:
        for column in range(len(out)):
            out[column] += rows[record, column]


@compiled
def scan(rows: Points, squares: Points, order: Labels, step: int, search: Search) -> tuple[float, int]:
    r"""The cut of an order with the least predicted SSE: its score, and how many rows come before it.

    .. math:: \sum_{c \in \{0, 1\}} (SSE_c + \frac{n_c}{n} u \, SSE) \lfloor n_c / k \rfloor^{-2/D}

    u is ``unseen``, below ``near`` times k records ``unseen_near``, and D is that of ``SplitRules.shrinkage``. Rows are
    centred and stand for ``step`` records each. Both parts keep k records; a group below ``waste_free`` times k is only
    cut where no group is lost to rounding, :math:`n_0 \bmod k \le n \bmod k`.
    """
    n, d = rows.shape
    k, least, place = search.k, np.inf, n // 2
    tight = n * step < search.waste_free * k
    unseen = search.unseen_near if n * step < search.near * k else search.unseen
    whole, part, sums = squares.sum(), 0.0, np.zeros(d)
    even = unseen * whole / n
    for size in range(1, n):
        record = order[size - 1]
        part += squares[record]
        length = 0.0
        for column in range(d):
            sums[column] += rows[record, column]
            length += sums[column] * sums[column]
        left, right = size * step, (n - size) * step
        if left < k or right < k or (tight and left % k > (n * step) % k):
            continue
        cost = (part - length / size + even * size) * search.shrink[left // k]
        cost += (whole - part - length / (n - size) + even * (n - size)) * search.shrink[right // k]
        if cost < least:
            least, place = cost, size
    return least, place


@compiled
def divide(few: Points, size: int, scores: Points, k: int, sides: Sides) -> None:
    """Cut many records by their scores where the sample, whose scores are ``few``, has ``size`` before its cut.

    Records equal in score to the one at the cut are shared out as in the sample, in canonical order.
    """
    few = -np.sort(-few)
    border = few[size - 1]
    share = (few[:size] == border).sum() / (few == border).sum()
    above = (scores > border).sum()
    wanted = above + int(np.ceil(share * (scores == border).sum()))
    wanted = min(max(wanted, k), len(scores) - k)
    take(scores, border, wanted, sides)


@compiled
def take(scores: Points, border: float, wanted: int, sides: Sides) -> None:
    """Side 0 for ``wanted`` records: those above the border first, then those on it, then the rest."""
    sides[:] = 1
    for turn in range(3):
        for record in range(len(scores)):
            rank = 0 if scores[record] > border else (1 if scores[record] == border else 2)
            if wanted > 0 and rank == turn:
                sides[record] = 0
                wanted -= 1


@compiled
def gain(points: Points, positions: Labels, centre: Points, sides: Sides) -> float:
    r"""What a split is worth against those of other holders, a function of sizes and means of both parts alone.

    .. math:: (n_0 n_1)^{1/5} \, \lVert \bar{x}_0 - \bar{x}_1 \rVert^2

    The fall of SSE is :math:`n_0 n_1 / n` times the same square. By the small power an uneven split, which only the
    holder of its columns can find, comes before an even one, which leaves both sides to be split again.
    """
    d = points.shape[1]
    sums, counts = np.zeros((2, d)), np.zeros(2)
    for record in range(len(positions)):
        side, row = sides[record], points[positions[record]]
        counts[side] += 1
        for column in range(d):
            sums[side, column] += row[column] - centre[column]
    apart = sums[0] / counts[0] - sums[1] / counts[1]
    return (counts[0] * counts[1]) ** EVENNESS * dot(apart, apart)


@compiled
def split_groups(table: Sorted, records: Labels, starts: Labels, search: Search, flags: Sides) -> Points:
    """``split`` for each ``records[starts[g]:starts[g + 1]]``; fills the flags of its records, gives the gains."""
    gains = np.empty(len(starts) - 1)
    for group in range(len(gains)):
        positions = np.sort(table.rank[records[starts[group] : starts[group + 1]]])
        sides = np.empty(len(positions), np.uint8)
        gains[group] = split(table.points, positions, search, sides)
        for place in range(len(positions)):
            flags[table.order[positions[place]]] = sides[place]
    return gains
