"""Supports, errors, ranks, rules and the attack, each computed by hand, by enumeration or by another library."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federated_anon.setvalued import Chunk, Cluster, Disassociated, Transactions, disassociate, reassociate
from federated_anon.setvalued.measures import (
    association_rules,
    associations,
    expected_supports,
    frequent_itemsets,
    items_kept,
    rank_preservation,
    reidentification,
    relative_association_error,
    rules_kept,
    supports,
    top_pairs,
    visible_supports,
)

NAMES = ("a", "b", "c", "d")
ORIGINAL = Transactions.of([["a", "b", "c"], ["a", "b"], ["a", "c"], ["c"], ["d"]])
FORM = Disassociated(
    2, 2, (Cluster(5, (Chunk((0, 1), ((0,), (0, 1), (0, 1))), Chunk((2,), ((2,), (2,), (2,)))), (3,)),), NAMES
)
SETS = st.lists(st.lists(st.sampled_from("abcdef"), max_size=4, unique=True), min_size=3, max_size=14)


def test_supports_by_hand():
    wanted = [("a", "b"), ("b", "c"), ("a", "b", "c"), ("d",), ("a", "z"), ()]
    assert list(supports(ORIGINAL, wanted).values()) == [2, 1, 1, 1, 0, 0]


@settings(max_examples=50, deadline=None)
@given(SETS)
def test_supports_and_top_pairs_by_enumeration(sets):
    transactions = Transactions.of(sets, names="abcdef")
    wanted = [*combinations("abcdef", 2), *combinations("abcdef", 3)]
    truth = {one: sum(set(one) <= set(record) for record in sets) for one in wanted}
    assert supports(transactions, wanted) == truth
    pairs = sorted((-truth[pair], pair) for pair in combinations("abcdef", 2) if truth[pair])
    for count in (1, 4, 20):
        assert list(top_pairs(transactions, count).items()) == [(pair, -n) for n, pair in pairs[:count]]


def test_visible_and_expected_support_by_hand():
    """a with b is visible twice; a (3 of 5) meets c (3 of 5) in 9/5 records on average; a term is gone."""
    wanted = [("a", "b"), ("a", "c"), ("a", "b", "c"), ("c", "d"), ("a",)]
    assert list(visible_supports(FORM, wanted).values()) == [2, 0, 0, 0, 3]
    assert list(expected_supports(FORM, wanted).values()) == pytest.approx([2, 9 / 5, 6 / 5, 0, 3])


def test_expected_support_is_the_mean_over_all_placements():
    """Two chunks of two sub-records on three people: nine equally likely pairs of places for each pair of records."""
    form = Disassociated(2, 2, (Cluster(3, (Chunk((0,), ((0,), (0,))), Chunk((1,), ((1,), (1,)))), ()),), ("a", "b"))
    places = list(combinations(range(3), 2))
    mean = np.mean([len(set(one) & set(other)) for one, other in product(places, places)])
    assert expected_supports(form, [("a", "b")])[("a", "b")] == pytest.approx(mean)


def test_expected_support_is_the_mean_of_many_reassociations():
    rng = np.random.default_rng(0)
    original = Transactions.of([rng.choice(8, rng.integers(1, 5), replace=False).tolist() for _ in range(60)])
    form = disassociate(original, 3, 2, 12)
    wanted = list(combinations(original.names, 2))
    drawn = [supports(reassociate(form, seed), wanted) for seed in range(400)]
    expected = expected_supports(form, wanted)
    for pair in wanted:
        values = np.array([one[pair] for one in drawn])
        assert abs(values.mean() - expected[pair]) <= 4.5 * values.std() / 20 + 1e-9


def test_associations_by_hand():
    found = {one.items: one for one in associations(ORIGINAL, FORM, [("a", "b"), ("b", "c"), ("a", "d")])}
    assert (found["a", "b"].alpha_visible, found["a", "b"].alpha_expected) == (1.0, 1.0)
    assert found["b", "c"].alpha_visible == 0.0
    assert found["b", "c"].alpha_expected == pytest.approx(6 / 5)
    assert found["a", "d"].alpha_expected == 1.0, "nothing was there to be lost"
    assert items_kept(ORIGINAL, FORM) == pytest.approx(8 / 9)


def test_relative_association_error_by_hand():
    """4 to 2: 2/3. 2 to 4: 2/3, where the printed formula would cancel the first. 3 to 0: 2. 0 to 0: nothing."""
    before = {("a",): 4, ("b",): 2, ("c",): 3, ("d",): 0}
    assert relative_association_error(before, {("a",): 2, ("b",): 4}) == pytest.approx(2 / 3 + 2 / 3 + 2)


def test_rank_preservation_by_hand():
    published = Transactions.of([["a", "b"], ["a", "c"], ["a", "c"], ["d"]])
    found = rank_preservation(ORIGINAL, published, top_pairs(ORIGINAL, 3), top_pairs(published, 2))
    assert (found.sets, found.staying) == (3, 2)
    assert found.ratio == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert found.correlation == pytest.approx(0.8660254, abs=1e-6), "ranks 2.5 2.5 1 and 2 3 1"
    same = rank_preservation(ORIGINAL, ORIGINAL, top_pairs(ORIGINAL, 3), top_pairs(ORIGINAL, 3))
    assert (same.staying, same.correlation, same.ratio) == (3, pytest.approx(1.0), 1.0)


@settings(max_examples=30, deadline=None)
@given(SETS)
def test_frequent_itemsets_of_the_library_equal_enumeration(sets):
    pytest.importorskip("mlxtend", reason="frequent sets need the 'sets' extra")
    transactions = Transactions.of(sets, names="abcdef")
    wanted = [*combinations("abcdef", 2), *combinations("abcdef", 3)]
    truth = {one: n for one, n in supports(transactions, wanted).items() if n >= 2}
    assert frequent_itemsets(transactions, 2) == truth


def test_rules_by_hand():
    pytest.importorskip("mlxtend", reason="rules need the 'sets' extra")
    found = {(rule.body, rule.head): (rule.support, rule.confidence) for rule in association_rules(ORIGINAL, 2, 0.6)}
    assert found == {
        (("b",), "a"): (2, 1.0),
        (("a",), "b"): (2, pytest.approx(2 / 3)),
        (("a",), "c"): (2, pytest.approx(2 / 3)),
        (("c",), "a"): (2, pytest.approx(2 / 3)),
    }
    published = Transactions.of([["a", "b"], ["a", "b"], ["c"]])
    kept = rules_kept(ORIGINAL, published, 2, 0.6)
    assert (kept.before, kept.after, kept.kept) == (4, 2, 2)
    assert kept.confidence_error == pytest.approx((0 + 1 / 3 + 2 / 3 + 2 / 3) / 4)


def test_reidentification_by_hand():
    """Everybody with two items is known by one: alone in the original, or one of two."""
    original = Transactions.of([["a", "b"], ["c", "d"], ["e"]])
    on_itself = reidentification(original, original, 1, 2, np.random.default_rng(0))
    assert (on_itself.attacked, on_itself.found.value, on_itself.few.value) == (2, 1.0, 1.0)
    assert on_itself.disclosed.value == 1.0
    published = Transactions.of([["a", "b"], ["a"], ["b"], ["e"]])
    after = reidentification(original, published, 1, 2, np.random.default_rng(0))
    assert (after.found.value, after.few.value, after.disclosed.value) == (0.5, 0.0, 0.25)


def test_nobody_to_attack():
    found = reidentification(ORIGINAL, ORIGINAL, 9, 2, np.random.default_rng(0))
    assert (found.attacked, found.disclosed.value) == (0, 0.0)
