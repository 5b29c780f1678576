"""Utility-guided ants (UGAC): records that contain a rule are gathered, so that the rule survives in one chunk.

Awad et al. 2020 (and IDEAS 2019), with these corrections: supports are counted after initialisation, not during it;
the loop ends when no ant is in need *or* no ant can move (as printed it need not end); a donor never falls below its
own target nor below k people. Every move then lowers the total need by one, so at most as many moves as records.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from federated_anon.setvalued.rules import Holdings

ITERATIONS = 2000
"""Rounds in which every ant moves at most one record."""


def gather(holdings: Holdings, k: int, rng: np.random.Generator, iterations: int = ITERATIONS) -> list[list[int]]:
    """For each rule, the records in its cluster; every record is in one cluster of a rule that it contains."""
    colony = Colony(holdings, k)
    colony.take_turns(rng)
    for _ in range(iterations):
        if not colony.work():
            break
    return [sorted(cluster) for cluster in colony.clusters]


class Colony:
    """One ant per rule. The sizes of ``held[i][n]``, records with rule ``i`` in cluster ``n``, are the pheromones."""

    def __init__(self, holdings: Holdings, k: int) -> None:
        self._holdings, self._k = holdings, k
        count = len(holdings.holders)
        self.clusters: list[set[int]] = [set() for _ in range(count)]
        self._held: list[dict[int, dict[int, None]]] = [defaultdict(dict) for _ in range(count)]

    def take_turns(self, rng: np.random.Generator) -> None:
        """Each ant in turn takes one free record that contains its rule, until none is free."""
        queues = [rng.permutation(own).tolist() for own in self._holdings.holders]
        taken: set[int] = set()
        while any(queues):
            for ant, queue in enumerate(queues):
                while queue:
                    row = queue.pop()
                    if row not in taken:
                        taken.add(row)
                        self._put(row, ant)
                        break

    def work(self) -> bool:
        """One round: an ant in need picks up for itself, another for the neediest. False if nothing moved."""
        moved = False
        for ant in range(len(self.clusters)):
            needy = ant if self._need(ant) > 0 else self._neediest()
            if needy is None:
                return False
            moved |= self._pick_up(needy)
        return moved

    def _need(self, ant: int) -> int:
        return self._holdings.targets[ant] - len(self.clusters[ant])

    def _neediest(self) -> int | None:
        """The ant that lacks most records, the first of equals; None if no ant lacks any."""
        ant = max(range(len(self.clusters)), key=lambda one: (self._need(one), -one))
        return ant if self._need(ant) > 0 else None

    def _pick_up(self, ant: int) -> bool:
        """Move a record with the ant's rule from the cluster that is densest in it; False if no donor may give."""
        donors = [n for n, rows in self._held[ant].items() if n != ant and rows and self._may_give(n)]
        if not donors:
            return False
        held = self._held[ant]
        donor = max(donors, key=lambda n: (len(held[n]) / len(self.clusters[n]), -n))
        row = next(iter(held[donor]))
        self.clusters[donor].remove(row)
        for rule in self._holdings.rules[row]:
            del self._held[rule][donor][row]
        self._put(row, ant)
        return True

    def _may_give(self, donor: int) -> bool:
        """Whether a cluster keeps its own target, and k people or none, without one of its records."""
        left = len(self.clusters[donor]) - 1
        return left >= self._holdings.targets[donor] and (left == 0 or left >= self._k)

    def _put(self, row: int, ant: int) -> None:
        self.clusters[ant].add(row)
        for rule in self._holdings.rules[row]:
            self._held[rule][ant][row] = None
