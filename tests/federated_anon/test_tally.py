from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_anon.errors import DataRefused
from federated_anon.tally import group_sizes, ranked, tally


def test_values_rank_sorted_and_missing_ranks_last():
    found = ranked(pa.array(["b", None, "a", "b"]))
    assert found.positions.tolist() == [1, 2, 0, 1]
    assert found.distinct.to_pylist() == ["a", "b"]


def test_declared_levels_rank_first_and_in_order():
    assert ranked(pa.array(["a", "x", "high", "low"]), ("low", "mid", "high")).distinct.to_pylist() == [
        "low",
        "high",
        "a",
        "x",
    ]


def test_dictionaries_of_several_chunks_rank_as_their_values():
    parts = [pa.array(["b", "a"]).dictionary_encode(), pa.array(["a", None, "c"]).dictionary_encode()]
    assert ranked(pa.chunked_array(parts)).positions.tolist() == [1, 0, 0, 3, 2]


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["a", "b", None])), min_size=1))
def test_every_pair_is_counted_once(pairs):
    groups = np.unique([group for group, _ in pairs], return_inverse=True)[1]
    values = [value for _, value in pairs]
    ranks = ranked(pa.array(values, pa.string()))
    found = tally(ranks.positions, groups)
    spelled = [*ranks.distinct.to_pylist(), None]
    counted = {(g, spelled[v]): c for g, v, c in zip(found.group, found.level, found.count, strict=True)}
    expected = {p: list(zip(groups, values, strict=True)).count(p) for p in zip(groups, values, strict=True)}
    assert counted == expected
    assert found.sizes.sum() == found.totals.sum() == len(pairs)


def test_groups_without_records_or_below_zero_are_refused():
    with pytest.raises(DataRefused, match="1 of 3 groups have no records"):
        group_sizes(np.array([0, 2]))
    with pytest.raises(DataRefused, match="counted from 0"):
        group_sizes(np.array([-1, 0]))
    with pytest.raises(DataRefused, match="2 groups for 1 values"):
        tally(np.array([0]), np.array([0, 0]))
