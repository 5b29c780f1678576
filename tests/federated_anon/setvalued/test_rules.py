"""Ants and flow: every record in one cluster of a rule of its own, targets as far as they can be, always an end."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_anon.errors import SettingsRefused
from federated_anon.setvalued import Transactions, ants, disassociate, flow, require_disassociated
from federated_anon.setvalued.generator import power_law
from federated_anon.setvalued.measures import top_pairs
from federated_anon.setvalued.rules import Holdings, coded, target
from tests.federated_anon.setvalued.sets import transactions

ITEMS = 7
RULES = st.lists(st.frozensets(st.integers(0, ITEMS - 1), min_size=1, max_size=3), min_size=1, max_size=8)
BETA = st.floats(0, 1)


def known(rules, data: Transactions) -> list[tuple[int, ...]]:
    return list(dict.fromkeys(tuple(sorted(rule)) for rule in rules if max(rule) < len(data.names)))


def gathered(method: str, holdings: Holdings, k: int, seed: int = 0) -> list[list[int]]:
    if method == "flow":
        return flow.gather(holdings)
    return ants.gather(holdings, k, np.random.default_rng(seed))


@pytest.mark.parametrize("method", ["ants", "flow"])
@given(data=transactions(items=ITEMS), rules=RULES, beta=BETA, k=st.integers(2, 4))
def test_each_record_with_a_rule_is_in_one_cluster_of_its_rules(method, data, rules, beta, k):
    holdings = Holdings.of(data, known(rules, data), beta, k)
    clusters = gathered(method, holdings, k)
    assert sorted(row for cluster in clusters for row in cluster) == sorted(holdings.rules)
    assert all(rule in holdings.rules[row] for rule, cluster in enumerate(clusters) for row in cluster)


@given(transactions(items=ITEMS), RULES, BETA, st.integers(2, 4))
def test_flow_reaches_what_a_matching_reaches_and_ants_never_more(data, rules, beta, k):
    holdings = Holdings.of(data, known(rules, data), beta, k)
    best = matched(holdings)
    assert holdings.reached(flow.gather(holdings)) == best
    assert holdings.reached(gathered("ants", holdings, k)) <= best


def matched(holdings: Holdings) -> int:
    """The most records that can be given to rules up to their targets: augmenting paths, one record at a time."""
    given_to: list[set[int]] = [set() for _ in holdings.targets]

    def place(row: int, tried: set[int]) -> bool:
        for rule in holdings.rules[row]:
            if rule in tried:
                continue
            tried.add(rule)
            if len(given_to[rule]) < holdings.targets[rule]:
                given_to[rule].add(row)
                return True
            for other in list(given_to[rule]):
                if place(other, tried):
                    given_to[rule].remove(other)
                    given_to[rule].add(row)
                    return True
        return False

    return sum(place(row, set()) for row in holdings.rules)


@pytest.mark.parametrize("method", ["ants", "flow"])
@given(data=transactions(min_size=4, items=ITEMS), rules=RULES, beta=BETA, k=st.integers(2, 4), more=st.integers(0, 9))
def test_whatever_the_rules_the_promise_holds_and_nobody_is_lost(method, data, rules, beta, k, more):
    told = [[data.names[item] for item in rule] for rule in known(rules, data)]
    form = disassociate(data, k, 2, k + more, rules=told, beta=beta, method=method)
    require_disassociated(form)
    assert form.people == len(data)


def test_rules_that_nobody_holds_or_all_hold_do_no_harm():
    data = Transactions.of([["a", "b"]] * 9 + [["c"]] * 2)
    for beta in (0.0, 1.0):
        form = disassociate(data, 3, 2, 5, rules=[["a", "c"], ["a"], ["b"], ["a", "b"]], beta=beta)
        assert form.people == 11


def test_ants_come_within_one_percent_of_the_optimum():
    data = power_law(20_000, seed=1)
    pairs = list(top_pairs(data, 400))[::6]
    require_near_optimum(data, coded(pairs, data.names))


def test_ants_come_within_one_percent_of_the_optimum_on_published_data(shared_data):
    with gzip.open(shared_data / "bms1.txt.gz", "rt") as file:
        data = Transactions.of(line.split() for line in file)
    require_near_optimum(data, coded(list(top_pairs(data, 2000))[::29], data.names))


def require_near_optimum(data: Transactions, rules) -> None:
    for beta in (0.3, 0.6, 0.9):
        holdings = Holdings.of(data, rules, beta, 3)
        best = holdings.reached(flow.gather(holdings))
        assert holdings.reached(gathered("ants", holdings, 3)) >= 0.99 * best > 0


def test_gathering_keeps_a_rule_that_plain_partitioning_tears():
    torn = [["a", "b", str(i % 5)] for i in range(10)]  # Two of these records in each of five clusters, below k.
    data = Transactions.of([["x", str(i % 5)] for i in range(50)] + [[*one, "x"] for one in torn])

    def together(form) -> int:
        codes = {data.names.index("a"), data.names.index("b")}
        return sum(codes <= set(r) for cluster in form.clusters for chunk in cluster.chunks for r in chunk.records)

    assert together(disassociate(data, 3, 2, 12)) < together(disassociate(data, 3, 2, 12, rules=[["a", "b"]], beta=1.0))


def test_targets():
    assert target(10, 0.6, 3) == 6
    assert target(10, 0.61, 3) == 7
    assert target(4, 0.0, 3) == 3
    assert target(2, 0.5, 3) == 1
    assert target(0, 1.0, 3) == 0


def test_rules_with_unknown_items_or_none_are_refused_together():
    with pytest.raises(SettingsRefused) as caught:
        coded([["a", "z"], [], ["y"], ["a"]], ("a", "b"))
    assert len(caught.value.faults) == 3
    assert coded([["b", "a", "a"], ["a", "b"]], ("a", "b")) == ((0, 1),)
