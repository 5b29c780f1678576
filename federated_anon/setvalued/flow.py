"""The deterministic alternative to the ants: who goes to which rule's cluster as a maximum flow.

Records of the same rules are alike, so the network is: source -> kinds of records -> rules -> sink, with the number
of records of a kind and the target of a rule as capacities. Its maximum is the most that any gathering can reach.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from federated_anon.setvalued.rules import Holdings

Kinds = dict[tuple[int, ...], list[int]]
"""Records by the rules that they contain."""


def gather(holdings: Holdings) -> list[list[int]]:
    """For each rule, the records in its cluster: as many up to the targets as can be; the rest where it is emptiest."""
    kinds: Kinds = defaultdict(list)
    for row in sorted(holdings.rules):
        kinds[holdings.rules[row]].append(row)
    clusters: list[list[int]] = [[] for _ in holdings.targets]
    for (rules, rows), sent in zip(kinds.items(), routed(kinds, holdings.targets), strict=True):
        waiting = iter(rows)
        for rule in rules:
            clusters[rule] += [next(waiting) for _ in range(sent[rule])]
        for row in waiting:
            emptiest = min(rules, key=lambda rule: (len(clusters[rule]) / len(holdings.holders[rule]), rule))
            clusters[emptiest].append(row)
    return [sorted(cluster) for cluster in clusters]


def routed(kinds: Kinds, targets: tuple[int, ...]) -> list[dict[int, int]]:
    """For each kind, how many of its records each rule gets under a maximum flow."""
    if not kinds:
        return []
    first_rule = 1 + len(kinds)
    sink = first_rule + len(targets)
    edges = [(0, 1 + kind, len(rows)) for kind, rows in enumerate(kinds.values())]
    edges += [
        (1 + kind, first_rule + rule, len(rows)) for kind, (rules, rows) in enumerate(kinds.items()) for rule in rules
    ]
    edges += [(first_rule + rule, sink, wanted) for rule, wanted in enumerate(targets) if wanted]
    start, end, capacity = (np.array(column, dtype=np.int32) for column in zip(*edges, strict=True))
    network = csr_array((capacity, (start, end)), shape=(sink + 1, sink + 1), dtype=np.int32)
    flow = maximum_flow(network, 0, sink).flow
    return [{rule: int(flow[1 + kind, first_rule + rule]) for rule in rules} for kind, rules in enumerate(kinds)]
