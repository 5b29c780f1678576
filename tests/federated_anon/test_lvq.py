"""wLVQ2: hand-computed steps, a cost that falls in every step, weights in bounds, codewords mapped back."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from federated_anon.errors import DataRefused
from federated_anon.lvq import WeightedLVQ2, cost, majority, one_pass, refined_units, step, two_codewords

RATES = np.array([0.1, 0.05, 0.3, 0.25, 4.0])


def test_a_step_by_hand():
    """x = (2, 1), wrong (1, 1), right (4, 0), W = 1, a = 0.1, b = 0.05.

    right += 0.1 ((2,1) - (4,0)) = (3.8, 0.1); wrong -= 0.1 ((2,1) - (1,1)) = (0.9, 1.0);
    w1 -= 0.05 * 2 * (0.9 - 3.8) = 1.29; w2 -= 0.05 * 1 * (1.0 - 0.1) = 0.955.
    """
    x, wrong, right, weights = np.array([2.0, 1.0]), np.array([1.0, 1.0]), np.array([4.0, 0.0]), np.ones(2)
    step(x, wrong, right, weights, RATES)
    assert right == pytest.approx([3.8, 0.1])
    assert wrong == pytest.approx([0.9, 1.0])
    assert weights == pytest.approx([1.29, 0.955])


def test_the_cost_by_hand():
    """|Wx - right|^2 - |Wx - wrong|^2 with Wx = (4, 1): (0 + 1) - (9 + 0) = -8."""
    assert cost(np.array([2.0, 1.0]), np.array([1.0, 1.0]), np.array([4.0, 0.0]), np.array([2.0, 1.0])) == -8.0


def printed(x, wrong, right, weights, rates):
    """The signs as printed in the thesis (Algorithm 6)."""
    seen = weights * x
    moved = wrong + rates[0] * (seen - right)
    right[:] = right - rates[0] * (seen - right)
    wrong[:] = moved


number = st.floats(-4, 4).map(lambda value: round(value, 3))


@st.composite
def scenes(draw):
    """A record, the nearest codeword (wrong), the second nearest (right), and weights."""
    columns = draw(st.integers(1, 5))
    x, one, two = (np.array(draw(st.lists(number, min_size=columns, max_size=columns))) for _ in range(3))
    weights = np.array(draw(st.lists(st.floats(0.25, 4.0), min_size=columns, max_size=columns)))
    near = ((weights * x - one) ** 2).sum() <= ((weights * x - two) ** 2).sum()
    wrong, right = (one, two) if near else (two, one)
    assume(((weights * x - right) ** 2).sum() > 1e-3)
    return x, wrong, right, weights


@given(scenes(), st.floats(0.001, 0.9), st.floats(0.0, 0.5))
def test_every_step_lowers_the_cost(scene, rate, weight_rate):
    x, wrong, right, weights = scene
    before = cost(x, wrong, right, weights)
    step(x, wrong, right, weights, np.array([rate, weight_rate, 0.3, 0.25, 4.0]))
    assert cost(x, wrong, right, weights) < before
    assert weights.min() >= 0.25
    assert weights.max() <= 4.0


def test_the_printed_signs_hardly_ever_lower_it():
    rng = np.random.default_rng(0)
    fell = []
    for _ in range(500):
        x, one, two = rng.normal(size=(3, 4))
        wrong, right = (one, two) if ((x - one) ** 2).sum() < ((x - two) ** 2).sum() else (two, one)
        before = cost(x, wrong, right, np.ones(4))
        printed(x, wrong, right, np.ones(4), RATES)
        fell.append(cost(x, wrong, right, np.ones(4)) < before)
    assert np.mean(fell) < 0.1


def test_a_step_is_taken_only_for_a_wrong_nearest_and_a_right_second_inside_the_window():
    words, classes = np.array([[0.0], [1.0], [9.0]]), np.array([0, 1, 0])
    tried = {
        "wrong, inside": (0.45, 1, 1),
        "nearest is right": (0.45, 0, 0),
        "second is wrong too": (0.45, 2, 0),
        "outside the window": (0.1, 1, 0),
    }
    for x, label, expected in tried.values():
        taken = one_pass(np.array([[x]]), np.array([label]), np.array([0]), words.copy(), classes, np.ones(1), RATES)
        assert taken == expected


def test_the_two_nearest_are_found():
    assert two_codewords(np.array([2.0]), np.array([[5.0], [1.0], [3.5]]), np.array([1.0])) == (1, 2, 1.0, 2.25)
    assert two_codewords(np.array([2.0]), np.array([[5.0]]), np.array([1.0]))[1] == -1


def two_classes(rows=400, seed=0):
    """The first column tells the classes apart, the second is noise of larger range."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, rows)
    return np.column_stack([labels + rng.normal(0, 0.45, rows), rng.normal(0, 2.0, rows)]), labels


def test_labels_sharpen_the_codewords():
    points, labels = two_classes()
    start = points[:30].copy()
    classes = labels[:30]
    lvq = WeightedLVQ2(passes=20).fit(points, labels, start, classes, np.random.default_rng(1))
    before = ((points[:, None] - start) ** 2).sum(axis=2).argmin(axis=1)
    assert (classes[lvq.assign(points)] == labels).mean() > (classes[before] == labels).mean() + 0.02
    assert lvq.steps_ > 0
    assert lvq.weights_[0] > lvq.weights_[1]
    assert lvq.codebook_ * lvq.weights_ == pytest.approx(lvq.codewords_)


def test_without_a_wrong_record_nothing_moves():
    points = np.array([[0.0], [0.1], [5.0], [5.1]])
    lvq = WeightedLVQ2().fit(
        points, np.array([0, 0, 1, 1]), np.array([[0.0], [5.0]]), np.array([0, 1]), np.random.default_rng(0)
    )
    assert (lvq.steps_, lvq.codewords_.tolist(), lvq.weights_.tolist()) == (0, [[0.0], [5.0]], [1.0])


@given(st.integers(8, 60), st.integers(1, 12), st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_refined_units_hold_k_and_keep_to_known_units(rows, units, k, seed):
    rng = np.random.default_rng(seed)
    points, labels = rng.normal(size=(rows, 2)), rng.integers(0, 3, rows)
    codebook = rng.normal(size=(units, 2))
    own = ((points[:, None] - codebook) ** 2).sum(axis=2).argmin(axis=1)
    found = refined_units(points, own, codebook, labels, k, rng)
    assert np.unique(found.units, return_counts=True)[1].min() >= k
    assert set(found.units) <= set(own)
    assert np.isfinite(found.codebook).all()


def test_the_majority_by_hand():
    assert majority(np.array([0, 0, 0, 1, 1, 2]), np.array([7, 5, 7, 9, 4, 5])).tolist() == [7, 4, 5]


@pytest.mark.parametrize("options", [{"rate": 0.0}, {"window": 1.0}, {"bounds": (0.0, 2.0)}, {"bounds": (2.0, 3.0)}])
def test_settings_that_cannot_work_are_refused(options):
    with pytest.raises(DataRefused):
        WeightedLVQ2(**options).fit(
            np.zeros((2, 1)), np.array([0, 1]), np.zeros((1, 1)), np.array([0]), np.random.default_rng(0)
        )
