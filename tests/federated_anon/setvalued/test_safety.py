"""The cover problem: the condition against every original that a small cluster allows, and its cure."""

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_anon.errors import GuaranteeBroken
from federated_anon.setvalued import (
    Chunk,
    Cluster,
    Disassociated,
    disassociate,
    exposed,
    require_covered,
    require_disassociated,
    suppressed,
)
from federated_anon.setvalued.safety import shortage
from tests.federated_anon.setvalued.sets import transactions


def singles(size: int, counts: list[int], terms: int) -> Cluster:
    """A cluster whose chunks have one item each."""
    chunks = tuple(Chunk((item,), ((item,),) * count) for item, count in enumerate(counts))
    return Cluster(size, chunks, tuple(range(len(counts), len(counts) + terms)))


def most_together(size: int, counts: list[int], terms: int, k: int) -> int:
    """Over all placements that leave nobody without an item: the most people who have both of the first two items."""
    best = 0
    for held in product(*(combinations(range(size), count) for count in counts)):
        bare = size - len(set().union(*held))
        if bare <= terms * (k - 1):
            best = max(best, len(set(held[0]) & set(held[1])))
    return best


@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("terms", [0, 1])
def test_the_condition_is_exact_for_two_items(size, terms):
    k = 2
    for counts in product(range(k, size + 1), repeat=2):
        has_room = most_together(size, list(counts), terms, k) >= k
        assert (shortage(singles(size, list(counts), terms), k, 2) == 0) == has_room


@pytest.mark.parametrize("counts", list(product([2, 3], repeat=3)))
def test_the_condition_is_exact_for_two_items_of_three_chunks(counts):
    has_room = most_together(6, list(counts), 0, 2) >= 2
    assert (shortage(singles(6, list(counts), 0), 2, 2) == 0) == has_room


def test_a_cluster_without_room_is_found_and_cured():
    form = Disassociated(3, 2, (singles(6, [3, 3], 0), singles(3, [3], 0)), ("a", "b"))
    assert exposed(form) == [0]
    with pytest.raises(GuaranteeBroken, match="cover problem"):
        require_covered(form)
    cured = suppressed(form)
    require_covered(cured)
    require_disassociated(cured)
    assert cured.clusters[0] == Cluster(6, (Chunk((1,), ((1,),) * 3),), (0,))
    assert cured.clusters[1] == form.clusters[1]


@given(transactions(min_size=4, items=6), st.integers(2, 4), st.integers(1, 4))
def test_suppression_always_ends_and_keeps_every_promise(data, k, m):
    plain = disassociate(data, k, m, 12)
    form = disassociate(data, k, m, 12, suppress=True)
    require_covered(form)
    assert form.kept <= plain.kept
    assert exposed(plain) or form == plain
