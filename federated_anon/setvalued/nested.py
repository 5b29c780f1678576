"""A split tree that several holders of the same people's items grow together; no node is ever below k.

HORPART, one round for all open nodes at once: the holder of the most frequent item of a node says who has it. A split
with fewer than k people on either side is not made, so all that is said of people is constant on nodes of at least k.
Leaves below the wanted size are joined afterwards with their neighbours, as with one holder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Labels
from federated_anon.errors import Code, MessageRefused, PolicyRefused
from federated_anon.setvalued.partition import Rows, as_rows, joined
from federated_anon.setvalued.transactions import Transactions

NOBODY = -1
MOST_BRANCHES = 255
Branches = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class SetTree:
    """Where the splitting stands: the node of each record, and which nodes nobody can split."""

    k: int
    delta: int
    nodes: Labels
    closed: tuple[bool, ...]

    @classmethod
    def whole(cls, records: int, k: int, delta: int) -> SetTree:
        """Everyone in one node."""
        return cls(k, delta, np.zeros(records, dtype=np.int64), (False,))

    @property
    def open_nodes(self) -> list[int]:
        """Nodes beyond ``delta`` that may still be split, in order."""
        sizes = np.bincount(self.nodes, minlength=len(self.closed))
        found: list[int] = np.flatnonzero((sizes > self.delta) & ~np.array(self.closed)).tolist()
        return found

    def members(self, nodes: Sequence[int] | None = None) -> dict[int, Rows]:
        """The records, rising, of some nodes, or of all."""
        wanted = list(range(len(self.closed))) if nodes is None else list(nodes)
        is_wanted = np.zeros(len(self.closed), dtype=bool)
        is_wanted[wanted] = True
        rows = np.flatnonzero(is_wanted[self.nodes])
        order = rows[np.argsort(self.nodes[rows], kind="stable")]
        ends = np.cumsum(np.bincount(self.nodes[rows], minlength=len(self.closed))).tolist()
        return {node: order[ends[node - 1] if node else 0 : ends[node]] for node in wanted}

    def split(self, winners: Sequence[int], branches: Mapping[int, Branches]) -> SetTree:
        """The tree after one round; ``winners`` by open node, ``branches`` of each winner over its nodes in a row.

        Refuses branches that do not fit their nodes, and any node below k.
        """
        opened = self.open_nodes
        members = self.members(opened)
        if len(winners) != len(opened):
            raise MessageRefused(f"{len(winners)} winners for {len(opened)} open nodes")
        used = dict.fromkeys(branches, 0)
        parts: dict[int, Branches] = {}
        for node, winner in zip(opened, winners, strict=True):
            if winner != NOBODY:
                size = len(members[node])
                start = used.get(winner, 0)
                parts[node] = branches[winner][start : start + size] if winner in branches else np.zeros(0, np.uint8)
                used[winner] = start + size
                self._require_branches(parts[node], size)
        if any(used[holder] != len(told) for holder, told in branches.items()):
            raise MessageRefused("branches that fit no node")
        stuck = {node for node, winner in zip(opened, winners, strict=True) if winner == NOBODY}
        return self._renumbered({node: (members[node], part) for node, part in parts.items()}, stuck)

    def _require_branches(self, part: Branches, size: int) -> None:
        if len(part) != size:
            raise MessageRefused("the branches do not fit their node")
        sizes = np.bincount(part)
        if len(sizes) < 2 or sizes.min() < self.k:
            raise PolicyRefused(f"a split leaves a node below k = {self.k}", Code.SMALL_GROUP)

    def _renumbered(self, parts: Mapping[int, tuple[Rows, Branches]], stuck: set[int]) -> SetTree:
        children = np.ones(len(self.closed), dtype=np.int64)
        branch = np.zeros(len(self.nodes), dtype=np.int64)
        closed = np.array(self.closed)
        closed[list(stuck)] = True
        for node, (rows, part) in parts.items():
            branch[rows] = part
            children[node] = int(part.max()) + 1
        first = np.cumsum(children) - children
        return SetTree(self.k, self.delta, first[self.nodes] + branch, tuple(np.repeat(closed, children).tolist()))

    def clusters(self, min_size: int) -> list[Rows]:
        """The leaves as clusters of ``min_size`` to ``delta`` people: large ones cut evenly, small ones joined."""
        pieces = [piece for leaf in self.members().values() for piece in self._pieces(leaf.tolist(), min_size)]
        return as_rows(joined(pieces, min_size, self.delta))

    def _pieces(self, leaf: list[int], min_size: int) -> list[list[int]]:
        count = max(1, min(-(-len(leaf) // self.delta), len(leaf) // max(min_size, 1)))
        return [leaf[len(leaf) * i // count : len(leaf) * (i + 1) // count] for i in range(count)]


def best_supports(transactions: Transactions, tree: SetTree) -> NDArray[np.int32]:
    """Per open node: how many have the most frequent own item that leaves k people on either side; 0 if none does."""
    members = tree.members(tree.open_nodes)
    return np.array([_best(transactions, rows, tree.k)[1] for rows in members.values()], dtype=np.int32)


def branches_of(transactions: Transactions, tree: SetTree, rows: Rows, bound: int) -> Branches:
    """Who of a node has the most frequent own item, then who of the rest has the next, and so on.

    It goes on while the next item is at least as frequent as ``bound``, the best of all others before the first split,
    for it can only have fallen since. Raises ``PolicyRefused`` if no own item splits the node.
    """
    told = np.zeros(len(rows), dtype=np.uint8)
    rest = np.arange(len(rows))
    for number in range(1, MOST_BRANCHES + 1):
        item, support = _best(transactions, rows[rest], tree.k)
        if support == 0 or (number > 1 and (support < bound or len(rest) <= tree.delta)):
            break
        has = _has(transactions.select(rows[rest]), item)
        told[rest[has]] = number
        rest = rest[~has]
    if not told.any():
        raise PolicyRefused("no item of this holder splits that node into parts of k", Code.SMALL_GROUP)
    return told


def _best(transactions: Transactions, rows: Rows, k: int) -> tuple[int, int]:
    supports = transactions.select(rows).supports
    fitting = np.where((supports >= k) & (supports <= len(rows) - k), supports, 0)
    item = int(fitting.argmax()) if len(fitting) else 0
    return item, int(fitting[item]) if len(fitting) else 0


def _has(part: Transactions, item: int) -> NDArray[np.bool_]:
    has = np.zeros(len(part), dtype=bool)
    has[np.repeat(np.arange(len(part)), part.lengths)[part.items == item]] = True
    return has
