"""The tree edit distance equals that of ``apted``, a general algorithm for ordered trees, on small data sets."""

import numpy as np
import pyarrow as pa
import pytest

from federated_anon.setvalued.formats import from_lists
from federated_anon.setvalued.measures.distance import private_tree_edit_distance

PAIRS = 200


def transactions(sets):
    return from_lists(pa.array([[str(item) for item in one] for one in sets], pa.list_(pa.string())))


def bracketed(sets):
    """A data set as a tree in bracket notation: sorted records, one chain each."""
    chains = sorted(tuple(sorted(set(one))) for one in sets if len(one))
    return "{root" + "".join("".join(f"{{{item}" for item in chain) + "}" * len(chain) for chain in chains) + "}"


def random_sets(rng, most=7):
    return [rng.integers(0, 6, rng.integers(0, 6)).tolist() for _ in range(rng.integers(1, most))]


def test_equals_apted_on_random_pairs():
    apted = pytest.importorskip("apted", reason="the general algorithm is a development extra")
    helpers = pytest.importorskip("apted.helpers")
    rng = np.random.default_rng(0)
    for _ in range(PAIRS):
        one, other = [*random_sets(rng), [1]], [*random_sets(rng), [2, 3]]
        trees = [helpers.Tree.from_text(bracketed(sets)) for sets in (one, other)]
        expected = apted.APTED(*trees).compute_edit_distance()
        assert private_tree_edit_distance(transactions(one), transactions(other)) == expected


def test_by_hand():
    """{1,2,3}, {5} against {1,3}, {5}, {6,7}: 2 is deleted, 6 and 7 are inserted."""
    one, other = transactions([[3, 1, 2], [5]]), transactions([[6, 7], [1, 3], [5]])
    assert private_tree_edit_distance(one, other) == 3
    assert private_tree_edit_distance(other, one) == 3
    assert private_tree_edit_distance(one, one) == 0


def test_items_are_compared_by_name_and_empty_records_are_nothing():
    one, other = transactions([["a", "c"], [], ["b"]]), transactions([["b", "c"], ["a"]])
    assert private_tree_edit_distance(one, other) == 2
