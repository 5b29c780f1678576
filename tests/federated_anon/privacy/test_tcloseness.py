from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_anon.errors import DataRefused, GuaranteeBroken
from federated_anon.privacy import closeness, require_t

# Li, Li & Venkatasubramanian (2007), section 4.2: nine salaries of 3k to 11k. {3k, 4k, 5k} is 0.375 from
# the whole column and {6k, 8k, 11k} is 0.167 (1/6); the rest is the third class of their table 3.
SALARIES = pa.array([3, 4, 5, 6, 8, 11, 7, 9, 10])
CLASSES = np.repeat([0, 1, 2], 3)


def test_the_salaries_of_the_paper():
    assert closeness(SALARIES, CLASSES, ordered=True)[:2] == pytest.approx([0.375, 1 / 6])


def test_unordered_distance_is_half_of_l1():
    values = pa.array(["flu", "flu", "cold", "ulcer"])
    assert closeness(values, np.array([0, 0, 1, 1]), ordered=False) == pytest.approx([0.5, 0.5])


def test_missing_is_one_more_value_ranked_last():
    values, groups = pa.array([1, 2, None]), np.array([0, 1, 2])
    assert closeness(values, groups, ordered=True) == pytest.approx([1 / 2, 1 / 3, 1 / 2])


def test_strings_rank_by_their_levels():
    values, groups = pa.array(["low", "mid", "high"]), np.array([0, 1, 2])
    assert closeness(values, groups, True, ("low", "mid", "high")) == pytest.approx([1 / 2, 1 / 3, 1 / 2])
    assert closeness(values, groups, True) == pytest.approx([1 / 3, 1 / 2, 1 / 2])


def test_one_value_is_everywhere_alike():
    for ordered in (True, False):
        assert closeness(pa.array([5, 5, 5]), np.array([0, 0, 1]), ordered).tolist() == [0, 0]


def by_definition(values, labels, group, ordered):
    distinct = sorted({v for v in values if v is not None}) + ([None] if None in values else [])
    inside = [v for v, g in zip(values, labels, strict=True) if g == group]
    gaps = [inside.count(v) / len(inside) - values.count(v) / len(values) for v in distinct]
    if not ordered:
        return sum(map(abs, gaps)) / 2
    return sum(map(abs, np.cumsum(gaps))) / max(len(distinct) - 1, 1)


@given(st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(0, 9)), min_size=1), st.booleans())
def test_distance_agrees_with_its_definition(pairs, ordered):
    labels, values = np.unique([g for g, _ in pairs], return_inverse=True)[1], [v for _, v in pairs]
    found = closeness(pa.array(values, pa.int64()), labels, ordered)
    expected = [by_definition(values, labels, group, ordered) for group in range(labels.max() + 1)]
    assert found == pytest.approx(expected, abs=1e-12)


def test_t_is_required():
    require_t(SALARIES, CLASSES, 0.375, ordered=True)
    with pytest.raises(GuaranteeBroken, match=r"within 0.3, 1 fail, the worst is 0.375"):
        require_t(SALARIES, CLASSES, 0.3, ordered=True)
    with pytest.raises(DataRefused, match="at least one record"):
        closeness(pa.array([], pa.int64()), np.array([], int), ordered=True)
