import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.grouping import as_code, merged
from federated_anon.errors import MessageRefused
from federated_anon.messages.payloads import Coded


def test_a_failing_group_joins_the_nearest():
    points = np.repeat([[0.0], [1.0], [10.0], [11.5]], 3, axis=0)
    groups = np.repeat([0, 1, 2, 3], 3)
    joined = merged(groups, np.array([False, False, False, True]), points)
    assert joined.tolist() == [0] * 3 + [1] * 3 + [2] * 6


def test_groups_that_lie_on_one_spot_still_join_another():
    points = np.zeros((9, 2))
    joined = merged(np.repeat([0, 1, 2], 3), np.array([True, True, True]), points)
    assert len(np.unique(joined)) < 3


@given(st.integers(2, 30), st.integers(0, 2**32 - 1))
def test_merging_only_ever_joins_whole_groups_and_every_failing_one(count, seed):
    rng = np.random.default_rng(seed)
    groups = np.concatenate([np.arange(count), rng.integers(0, count, 3 * count)])
    points = rng.normal(size=(len(groups), 2)).round(1)
    failing = rng.random(count) < 0.5
    failing[0] = True
    joined = merged(groups, failing, points)
    pairs = {(int(a), int(b)) for a, b in zip(groups, joined, strict=True)}
    assert len(pairs) == count, "a group never splits"
    partners = [sum(b == new for _, b in pairs) for _, new in sorted(pairs)]
    assert all(partners[group] > 1 for group in np.flatnonzero(failing))
    assert np.array_equal(np.unique(joined), np.arange(joined.max() + 1))


@pytest.mark.parametrize(
    "cells", [[0, 0, 0, 1, 1], [0, 0, 0, 2, 2, 2], [0, 0, 0, -1, 1, 1, 1], [0, 0, 0, 1, 1, 1, 2, 2, 2]]
)
def test_a_code_with_a_cell_below_k_or_without_its_mean_is_refused(cells):
    coded = Coded(np.array(cells, np.int32), np.zeros((2, 1)), np.zeros((0, 0)), np.zeros(0, np.float32))
    with pytest.raises(MessageRefused, match="at least 3 records"):
        as_code("north", coded, 3)
