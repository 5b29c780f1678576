"""What disassociation promises, on random data and on published data."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_anon.errors import GuaranteeBroken, SettingsRefused
from federated_anon.setvalued import (
    Chunk,
    Cluster,
    Disassociated,
    Transactions,
    disassociate,
    horizontal,
    require_disassociated,
    vertical,
)
from federated_anon.setvalued.partition import even_parts, joined
from tests.federated_anon.setvalued.sets import is_km, transactions


@given(transactions(min_size=4), st.integers(2, 4), st.integers(1, 7), st.integers(0, 12))
def test_every_chunk_is_km_and_no_cluster_is_below_k(data, k, m, more):
    form = disassociate(data, k, m, delta=k + more)
    assert all(cluster.size >= k for cluster in form.clusters)
    assert all(is_km(chunk.records, k, m) for cluster in form.clusters for chunk in cluster.chunks)
    assert form.people == len(data)


@given(transactions(min_size=3), st.integers(1, 3))
def test_nothing_is_invented_or_lost_but_terms(data, m):
    clusters = horizontal(data, 10, 5)
    assert sorted(row for rows in clusters for row in rows.tolist()) == list(range(len(data)))
    for rows in clusters:
        cluster = vertical(data, rows, 3, m)
        before = Counter(item for row in rows for item in data.record(row))
        after = Counter(item for chunk in cluster.chunks for record in chunk.records for item in record)
        assert after == {item: count for item, count in before.items() if count >= 3}
        assert set(cluster.terms) == {item for item, count in before.items() if count < 3}


@given(transactions(min_size=1, max_size=80), st.integers(1, 12), st.integers(0, 12))
def test_clusters_keep_their_bounds(data, delta, min_size):
    sizes = [len(rows) for rows in horizontal(data, delta, min_size)]
    assert sum(sizes) == len(data)
    assert max(sizes) <= max(delta, 2 * min_size - 1)
    assert min(sizes) >= min(max(min_size, 1), len(data))


@given(st.lists(st.lists(st.integers(), min_size=1, max_size=9), max_size=20), st.integers(1, 9))
def test_joining_loses_nothing_and_keeps_order(pieces, min_size):
    assert [row for piece in joined(pieces, min_size, 9) for row in piece] == [row for piece in pieces for row in piece]


@given(st.lists(st.integers(), min_size=1), st.integers(1, 9))
def test_even_parts_differ_by_one_at_most(rows, delta):
    parts = even_parts(rows, delta)
    sizes = [len(part) for part in parts]
    assert [row for part in parts for row in part] == rows
    assert max(sizes) <= delta
    assert max(sizes) - min(sizes) <= 1


def test_clusters_follow_the_most_frequent_item():
    data = Transactions.of([["a", "b"], ["a", "c"], ["a"], ["b", "c"], ["c"], ["d"]])
    assert [rows.tolist() for rows in horizontal(data, 3, 0)] == [[0, 1, 2], [3, 4, 5]]


def test_equal_records_are_cut_without_end():
    data = Transactions.of([range(300)] * 50)
    assert [len(rows) for rows in horizontal(data, 20, 5)] == [20, 20, 10]


@given(transactions(min_size=3, max_size=40, items=6), st.randoms(), st.sampled_from([(), ((0, 1), (1,))]))
def test_the_order_of_people_leaves_no_trace(data, random, rules):
    known = [rule for rule in rules if max(rule) < len(data.names)]
    told = [[data.names[item] for item in rule] for rule in known]
    order = random.sample(range(len(data)), len(data))
    assert disassociate(data, 3, 2, 8, rules=told) == disassociate(data.select(order), 3, 2, 8, rules=told)


FORMS = {
    "people": Cluster(2, (), (0,)),
    "together 1 times": Cluster(4, (Chunk((0, 1), ((0,), (0,), (0, 1), (1,), (1,))[:4]),), ()),
    "is in 2 places": Cluster(4, (Chunk((0,), ((0,),) * 3),), (0,)),
    "has no name": Cluster(4, (), (7,)),
    "5 sub-records for 4 people": Cluster(4, (Chunk((0,), ((0,),) * 5),), ()),
    "repeats an item": Cluster(4, (Chunk((0,), ((0, 0),) * 3),), ()),
    "items of other chunks": Cluster(4, (Chunk((0,), ((0, 1),) * 3),), ()),
    "order of their own": Cluster(9, (Chunk((0, 1), ((1,), (0,)) * 3),), ()),
    "in no sub-record": Cluster(4, (Chunk((0, 1), ((0,),) * 3),), ()),
}


@pytest.mark.parametrize("told", FORMS)
def test_the_verifier_finds(told):
    with pytest.raises(GuaranteeBroken, match=told):
        require_disassociated(Disassociated(3, 2, (FORMS[told],), ("a", "b")))


@given(transactions(min_size=1, items=5, longest=4), st.integers(2, 3), st.integers(1, 4))
def test_the_verifier_agrees_with_plain_counting(data, k, m):
    records = tuple(sorted(record for record in data if record))
    items = tuple(sorted({item for record in records for item in record}))
    form = Disassociated(k, m, (Cluster(max(len(data), k), (Chunk(items, records),), ()),), data.names)
    if is_km(records, k, m):
        require_disassociated(form)
    else:
        with pytest.raises(GuaranteeBroken, match="occur together"):
            require_disassociated(form)


def test_all_faults_of_the_settings_are_told_at_once():
    with pytest.raises(SettingsRefused) as caught:
        disassociate(Transactions.of([[1]] * 9), 1, 0, delta=0, beta=2.0, method="bees")
    assert len(caught.value.faults) == 5


@pytest.mark.parametrize(("delta", "min_size"), [(2, None), (9, 2), (9, 10)])
def test_sizes_that_cannot_keep_k_are_refused(delta, min_size):
    with pytest.raises(SettingsRefused, match="delta"):
        disassociate(Transactions.of([[1]] * 9), 3, 2, delta, min_size)


def test_fewer_people_than_k_cannot_be_published():
    with pytest.raises(GuaranteeBroken, match="the data has 2"):
        disassociate(Transactions.of([[1], [2]]), 3, 2, 10)
