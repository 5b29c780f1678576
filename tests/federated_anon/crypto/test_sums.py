"""Secure sums: exact in total, and uniform in every part of it."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from federated_anon.crypto.agreement import agreement_key
from federated_anon.crypto.signing import Identity
from federated_anon.crypto.sums import Circle, from_fixed, mask, to_fixed, total
from federated_anon.errors import DataRefused, MessageRefused, PolicyRefused

STUDY = "5" * 64


def circles(count: int, study: str = STUDY) -> dict[str, Circle]:
    names = tuple(f"holder-{number}" for number in range(count))
    keys = {name: agreement_key(Identity.for_simulation(0, name), study) for name in names}
    publics = tuple(keys[name].public_key().public_bytes_raw() for name in names)
    return {name: Circle(study, names, publics, keys[name], name) for name in names}


@settings(max_examples=40, deadline=None)
@given(
    holders=st.integers(3, 7),
    rows=st.lists(st.lists(st.integers(-(2**50), 2**50), min_size=7, max_size=7), min_size=0, max_size=6),
    label=st.text(st.characters(codec="ascii"), max_size=5),
)
def test_the_total_is_exact(holders, rows, label):
    values = np.array(rows, dtype=np.int64).reshape(-1, 7).T[:holders]
    ring = circles(holders)
    masked = {name: mask(own.view(np.uint64), ring[name], label) for name, own in zip(ring, values.copy(), strict=True)}
    assert total(masked, tuple(ring)).view(np.int64).tolist() == values.sum(axis=0).tolist()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=2), min_size=3, max_size=5))
def test_fixed_point_totals_are_exact_to_the_last_binary_place(rows):
    ring = circles(len(rows))
    masked = {n: mask(to_fixed(np.array(own), len(rows)), ring[n]) for n, own in zip(ring, rows, strict=True)}
    found = from_fixed(total(masked, tuple(ring)))
    assert np.allclose(found, np.sum(rows, axis=0), rtol=0, atol=len(rows) * 2.0**-20)


def even(words: np.ndarray) -> float:
    """The chance of bytes as uneven as these, if they were uniform."""
    return float(chisquare(np.bincount(words.view(np.uint8), minlength=256)).pvalue)


def test_a_masked_vector_and_every_partial_sum_look_uniform():
    ring = circles(4)
    zeros = np.zeros(40_000, dtype=np.uint64)
    masked = {name: mask(zeros, circle, "evaluate", "0") for name, circle in ring.items()}
    names = tuple(ring)
    assert even(zeros) == 0.0, "the test sees what is not masked"
    for coalition in [names[:1], names[1:2], names[3:], names[:2], names[1:3], names[:3], names[1:]]:
        assert even(np.sum([masked[name] for name in coalition], axis=0, dtype=np.uint64)) > 1e-4
    for first, second in pairwise(names):
        assert even(masked[first] ^ masked[second]) > 1e-4
        assert even(masked[first] - masked[second]) > 1e-4
    assert not total(masked, names).any()


def test_masks_come_again_for_the_same_label_and_for_no_other():
    values, own = np.arange(50, dtype=np.uint64), circles(3)["holder-1"]
    before = mask(values, own, "evaluate", "0")
    assert np.array_equal(before, mask(values, own, "evaluate", "0"))
    others = [
        mask(values, own, "evaluate", "1"),
        mask(values, own, "count", "0"),
        mask(values[:49], own, "evaluate", "0"),
    ]
    others.append(mask(values, circles(3, "6" * 64)["holder-1"], "evaluate", "0"))
    others.append(mask(values, circles(4)["holder-1"], "evaluate", "0"))
    for other in others:
        assert not (before[:49] == other[:49]).any()


def test_without_every_holder_there_is_no_total():
    ring = circles(3)
    masked = {name: mask(np.ones(4, dtype=np.uint64), circle) for name, circle in ring.items()}
    for lost in ring:
        with pytest.raises(MessageRefused, match=lost):
            total({name: one for name, one in masked.items() if name != lost}, tuple(ring))
    with pytest.raises(MessageRefused, match="one length"):
        total(masked | {"holder-1": masked["holder-1"][:2]}, tuple(ring))
    with pytest.raises(MessageRefused, match="one per holder"):
        total(masked | {"stranger": masked["holder-1"]}, tuple(ring))


def test_two_holders_are_too_few():
    with pytest.raises(PolicyRefused, match="at least 3"):
        mask(np.ones(4, dtype=np.uint64), circles(2)["holder-0"])


@pytest.mark.parametrize("value", [2.0**42, -(2.0**43), np.inf, np.nan])
def test_numbers_that_could_overflow_the_total_are_refused(value):
    with pytest.raises(DataRefused, match="finite"):
        to_fixed(np.array([1.0, value]), 3)
