from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_anon.errors import DataRefused, GuaranteeBroken
from federated_anon.privacy import Diversity, distinct_diversity, entropy_diversity, require_l

DISEASES = pa.array(["flu", "flu", "cold", None, "flu", "flu", "flu", "ulcer"])
GROUPS = np.array([0, 0, 0, 0, 1, 1, 2, 2])


def test_distinct_values_are_counted_with_missing_as_one():
    assert distinct_diversity(DISEASES, GROUPS).tolist() == [3, 1, 2]


def test_entropy_is_an_effective_number_of_values():
    assert entropy_diversity(DISEASES, GROUPS) == pytest.approx([2 * math.sqrt(2), 1, 2])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1))
def test_both_agree_with_their_definitions(pairs):
    labels = np.unique([g for g, _ in pairs], return_inverse=True)[1]
    values = pa.array([v for _, v in pairs])
    distinct, entropy = distinct_diversity(values, labels), entropy_diversity(values, labels)
    for group in range(labels.max() + 1):
        counts = Counter(v for (_, v), g in zip(pairs, labels, strict=True) if g == group)
        shares = [count / counts.total() for count in counts.values()]
        assert distinct[group] == len(counts)
        assert entropy[group] == pytest.approx(math.exp(-sum(p * math.log(p) for p in shares)))
        assert entropy[group] <= distinct[group] + 1e-9


@pytest.mark.parametrize("l", range(1, 30))
def test_l_equal_shares_reach_l_in_spite_of_rounding(l):  # noqa: E741
    values = pa.array(list(range(l)) * 3)
    for kind in Diversity:
        require_l(values, np.zeros(len(values), int), l, kind)


def test_l_is_required():
    with pytest.raises(GuaranteeBroken, match=r"distinct l-diversity: every group needs 2, 1 fail, .* has 1"):
        require_l(DISEASES, GROUPS, 2, "distinct")
    with pytest.raises(GuaranteeBroken, match=r"entropy l-diversity: every group needs 2.5, 2 fail"):
        require_l(DISEASES, GROUPS, 2.5, "entropy")
    with pytest.raises(DataRefused, match="at least one record"):
        require_l(pa.array([], pa.string()), np.array([], int), 2)
