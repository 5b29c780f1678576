"""The ladder: parties nest, climbing keeps what it promises, and verdicts tell hardly more than the release."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_anon.attacks.verdicts import flags_seen, heights_seen, sharpened
from federated_anon.errors import MessageRefused
from federated_anon.ladder import climb, joined, order_by_place, order_by_tree, party, top_rung

COUNTS = st.integers(1, 70)


@given(COUNTS)
def test_parties_nest_are_never_alone_and_end_in_one(count):
    groups = np.arange(count)
    for rung in range(top_rung(count)):
        low, high = party(groups, rung, count), party(groups, rung + 1, count)
        assert len(np.unique(np.stack([low, high]), axis=1).T) == low.max() + 1
        assert np.bincount(high).min() >= 2 ** (rung + 1)
    assert party(groups, top_rung(count), count).max() == 0


@given(COUNTS, st.integers(2, 4), st.integers(0, 999))
def test_climbing_reaches_the_diversity_asked_for_and_joins_no_more_than_the_ladder_needs(count, values, seed):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(count), 3)
    codes = rng.integers(0, values, len(groups))

    def failing(current):
        return np.array([len(set(codes[current[groups] == one])) < 2 for one in range(current.max() + 1)])

    heights = climb(count, failing)
    if heights is None:
        assert len(set(codes)) < 2
        return
    assert not failing(joined(heights)).any()
    if not failing(np.arange(count)).any():
        assert heights.max() == 0
    other = climb(count, lambda current: np.bincount(current) < min(count, 2))
    both = joined(np.maximum(heights, other))
    assert not failing(both).any(), "what two holders ask for holds together"


@pytest.mark.parametrize("heights", [[0, 1, 0, 0], [1, 1, 2, 2], [-1, 0, 0, 0], [3, 3, 3, 3], []])
def test_heights_that_no_climb_gives_are_refused(heights):
    with pytest.raises(MessageRefused):
        joined(np.array(heights, dtype=np.int64))


@given(st.integers(1, 60), st.integers(0, 999), st.booleans())
def test_orders_are_permutations(count, seed, tied):
    rng = np.random.default_rng(seed)
    centres = np.zeros((count, 2)) if tied else rng.normal(size=(count, 2)).round(1)
    assert sorted(order_by_place(centres).tolist()) == list(range(count))
    parent = [-1]
    leaves = {0}
    while len(leaves) < count:
        split = int(rng.choice(sorted(leaves)))
        leaves = (leaves - {split}) | {len(parent), len(parent) + 1}
        parent += [split, split]
    assert sorted(order_by_tree(np.array(parent), np.array(sorted(leaves))).tolist()) == list(range(count))


def test_close_groups_are_partners():
    centres = np.array([[0.0], [10.0], [0.1], [10.1], [20.0], [20.1]])
    numbers = order_by_place(centres)
    assert [numbers[a] // 2 == numbers[b] // 2 for a, b in [(0, 2), (1, 3), (4, 5)]] == [True] * 3


@pytest.mark.parametrize("values", [2, 4])
def test_heights_tell_hardly_more_than_the_release_and_flags_name_values(values):
    """300 people in threes, l = 2. Unguarded are flags per group: they settle values of many people for certain."""
    rng = np.random.default_rng(values)
    codes, groups = rng.integers(0, values, 300), rng.permutation(np.repeat(np.arange(100), 3))

    def failing(current):
        return np.array([len(set(codes[current[groups] == one])) < 2 for one in range(current.max() + 1)])

    heights = climb(100, failing)
    final = joined(heights)[groups]
    ladder = sharpened(codes, groups, final, heights_seen(2, 100), rng)
    plain = sharpened(codes, groups, final, flags_seen(2), rng)
    assert ladder.certain == 0
    assert ladder.success - ladder.without < 0.01
    assert plain.certain > 0.05
    assert plain.success - plain.without > 3 * (ladder.success - ladder.without)
