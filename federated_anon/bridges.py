"""Records that two published partitions would give away exactly, and the fewest groups to veil against it.

A holder that published the means of its cells, and later the means of the joint groups, has published the
sum of every cell and of every group. Draw one vertex per cell, one per group, and one edge per record from
its cell to its group: each published sum is the sum over the edges at one vertex. A vector of record values
that changes no sum is then a circulation of this bipartite multigraph, so a record is determined exactly
when no cycle passes through its edge: when the edge is a *bridge* (Bondy & Murty (2008), Graph Theory,
section 4.3: the cycle space).

A group is *veiled* when its mean leaves with independent noise, so its equation is lost. Dropping equations
at some vertices is the same as joining those vertices into one, since the balance of the joined vertex
follows from all others. An edge is then safe exactly when both sides of it hold a veiled group (or a cycle
passes through it). Contract every part that no bridge cuts: the bridges form a forest, and both sides of
every bridge hold a leaf of it. Hence *one veiled group in each leaf* is enough; and it is needed, for a
leaf without one leaves its own bridge determined. ``groups_to_veil`` returns such a smallest set.

The same holds when the published cell means are means of residuals ``x - p`` (side information): ``p`` is
known to whoever holds the codes, so each sum of residuals is a known shift of a sum of values. The
regression coefficients add as many linear equations as there are features. They are spread over all
records, so they single out a record only if they use up all freedom the cycles leave;
``federated_anon.side`` keeps the number of features far below that.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from federated_anon.arrays import Labels

Mask: TypeAlias = NDArray[np.bool_]
"""(n,): one answer per record, or per group."""
_Index: TypeAlias = NDArray[np.integer[Any]]


def bridges(cells: Labels, groups: Labels) -> Mask:
    """Whether each record's value follows from the sums of all cells and groups; linear in the records."""
    tails, heads = _ends(cells, groups)
    vertices = int(heads.max(initial=-1)) + 1
    ends = np.concatenate([tails, heads])
    order = np.argsort(ends, kind="stable")
    starts = np.searchsorted(ends[order], np.arange(vertices + 1))
    found: Mask = _find_bridges(tails, heads, order % max(len(tails), 1), starts)
    return found


def groups_to_veil(cells: Labels, groups: Labels) -> Mask:
    """The fewest groups whose means need noise so that no record is determined: one per leaf of the forest.

    Inside a leaf the largest group is taken, where noise of a given size on the sum moves the mean least.
    """
    sizes = np.bincount(groups)
    chosen = np.zeros(len(sizes), dtype=bool)
    found = bridges(cells, groups)
    if found.any():
        chosen[_largest_per_leaf(cells, groups, found, sizes)] = True
    return chosen


def _largest_per_leaf(cells: Labels, groups: Labels, found: Mask, sizes: _Index) -> _Index:
    """Per part with exactly one bridge, its largest group (the first of equals)."""
    tails, heads = _ends(cells, groups)
    parts = _parts_without(tails, heads, found)
    hanging = np.bincount(np.concatenate([parts[tails[found]], parts[heads[found]]]), minlength=parts.max() + 1)
    own = parts[int(tails.max()) + 1 :]
    ranked = np.lexsort((-sizes, own))
    first = ranked[np.flatnonzero(np.diff(own[ranked], prepend=-1))]
    chosen: _Index = first[hanging[own[first]] == 1]
    return chosen


def _ends(cells: Labels, groups: Labels) -> tuple[_Index, _Index]:
    """Vertices of each record's edge: cells first, groups after them."""
    tails = np.asarray(cells, dtype=np.int64)
    return tails, np.asarray(groups, dtype=np.int64) + int(tails.max(initial=-1)) + 1


def _parts_without(tails: _Index, heads: _Index, cut: Mask) -> _Index:
    """Connected part of each vertex once the ``cut`` edges are gone."""
    vertices = int(heads.max()) + 1
    kept = ~cut
    links = coo_array(
        (np.ones(int(kept.sum()), dtype=np.int32), (tails[kept], heads[kept])), shape=(vertices, vertices)
    )
    parts: _Index = connected_components(links, directed=False)[1]
    return parts


@njit(cache=True)  # type: ignore[misc, unused-ignore]
def _find_bridges(tails: _Index, heads: _Index, edge_at: _Index, starts: _Index) -> Mask:
    """Tarjan (1974), Information Processing Letters 2(6), 160-161, no recursion; parallel edges count."""
    vertices = len(starts) - 1
    seen = np.zeros(vertices, dtype=np.int64)
    low = np.zeros(vertices, dtype=np.int64)
    via = np.full(vertices, -1, dtype=np.int64)
    cursor = starts[:-1].copy()
    stack = np.empty(vertices, dtype=np.int64)
    found = np.zeros(len(tails), dtype=np.bool_)
    clock = 0
    for root in range(vertices):
        if seen[root] > 0:
            continue
        depth, clock = 1, clock + 1
        stack[0], seen[root], low[root] = root, clock, clock
        while depth > 0:
            vertex = stack[depth - 1]
            if cursor[vertex] < starts[vertex + 1]:
                edge = edge_at[cursor[vertex]]
                cursor[vertex] += 1
                other = heads[edge] if tails[edge] == vertex else tails[edge]
                if edge == via[vertex]:
                    continue
                if seen[other] > 0:
                    low[vertex] = min(low[vertex], seen[other])
                else:
                    clock += 1
                    via[other], seen[other], low[other] = edge, clock, clock
                    stack[depth] = other
                    depth += 1
            else:
                depth -= 1
                if depth > 0:
                    above = stack[depth - 1]
                    low[above] = min(low[above], low[vertex])
                    found[via[vertex]] = low[vertex] > seen[above]
    return found
