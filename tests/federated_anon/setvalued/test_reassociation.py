from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_anon.errors import GuaranteeBroken
from federated_anon.setvalued import Chunk, Cluster, Disassociated, Transactions, disassociate, reassociate, require_km
from federated_anon.setvalued.reassociation import parts
from federated_anon.setvalued.verifier import require_km_parts
from tests.federated_anon.setvalued.sets import is_km, transactions


def occurrences(records) -> Counter:
    return Counter(item for record in records for item in record)


def chunk_occurrences(form: Disassociated) -> Counter:
    return occurrences(record for cluster in form.clusters for chunk in cluster.chunks for record in chunk.records)


@given(transactions(min_size=3), st.sampled_from(["random", "strict"]), st.integers(0, 5))
def test_every_occurrence_of_a_record_chunk_is_kept_and_no_term_returns(data, mode, seed):
    form = disassociate(data, 3, 2, 10)
    table = reassociate(form, seed, mode)
    assert occurrences(table) == chunk_occurrences(form)
    assert all(table)
    assert mode == "strict" or len(table) <= form.people


@given(transactions(min_size=4, items=6), st.integers(2, 4), st.integers(1, 6), st.integers(0, 3))
def test_the_strict_table_is_km(data, k, m, seed):
    table = reassociate(disassociate(data, k, m, 12), seed, "strict")
    assert is_km(table, k, m)
    require_km(table, k, m)
    require_km_parts(parts(disassociate(data, k, m, 12), seed, "strict"), k, m)


def test_the_random_table_is_not_promised_to_be_km():
    form = two_chunks()
    broken = 0
    for seed in range(20):
        try:
            require_km(reassociate(form, seed), 3, 2)
        except GuaranteeBroken:
            broken += 1
    assert broken > 10


def two_chunks() -> Disassociated:
    cluster = Cluster(10, (Chunk((0,), ((0,),) * 5), Chunk((1,), ((1,),) * 4)), ())
    return Disassociated(3, 2, (cluster,), ("a", "b"))


@pytest.mark.parametrize("mode", ["random", "strict"])
def test_both_modes_meet_the_expected_support(mode):
    met = [sum(record == (0, 1) for record in reassociate(two_chunks(), seed, mode)) for seed in range(800)]
    assert sum(met) / len(met) == pytest.approx(5 * 4 / 10, abs=0.2)
    assert mode == "random" or set(met) <= {0, 3, 4}


def test_same_seed_same_table_and_another_seed_another():
    form = two_chunks()
    assert reassociate(form, 1) == reassociate(form, 1)
    assert len({tuple(reassociate(form, seed)) for seed in range(5)}) > 1


def test_one_part_that_is_not_km_is_found():
    good, bad = [(0, 1)] * 3, [(0, 1)] * 2
    with pytest.raises(GuaranteeBroken, match="part 1"):
        require_km_parts([good, bad], 3, 2)


def test_long_sets_and_many_known_items_take_no_long_time():
    rng = np.random.default_rng(0)
    data = Transactions.of([np.flatnonzero(rng.random(150) < 0.6).tolist() for _ in range(80)])
    for m in (3, 4, 10):
        form = disassociate(data, 3, m, 40)
        require_km_parts(parts(form, 0, "strict"), 3, m)
