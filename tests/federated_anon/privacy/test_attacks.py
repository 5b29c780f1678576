from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from federated_anon.columns import Column, Kind, Role
from federated_anon.errors import DataRefused
from federated_anon.privacy.attacks import AttackRisk, attribute_inference, singling_out
from federated_anon.privacy.linkage import Rate

NUMBERS = [Column(name, Role.QUASI, Kind.NUMBER) for name in "abc"]
ILL = Column("ill", Role.SENSITIVE, Kind.CATEGORY)


def table(seed=0, records=200):
    rng = np.random.default_rng(seed)
    return pa.table({name: rng.normal(size=records) for name in "abc"})


def generator():
    return np.random.default_rng(5)


def test_a_table_published_as_it_is_singles_people_out_more_than_blind_guesses():
    found = singling_out(table(), table(), NUMBERS, generator(), guesses=400)
    assert found.success.value > 0.1
    assert found.success.low > found.baseline.high


def test_one_row_for_all_singles_nobody_out():
    release = pa.table({name: np.zeros(200) for name in "abc"})
    found = singling_out(table(), release, NUMBERS, generator(), guesses=200)
    assert found.success.value == 0
    assert found.advantage == 0


def test_singling_out_by_hand():
    """Only "at least 9" isolates: of the two released values, 9 is above the median and one original reaches it."""
    original = pa.table({"a": [1.0, 1.0, 1.0, 9.0]})
    release = pa.table({"a": [9.0, 1.0]})
    found = singling_out(original, release, NUMBERS[:1], generator(), guesses=4000)
    assert found.success.value == pytest.approx(0.5, abs=0.03)
    assert found.baseline.value == pytest.approx(0.5, abs=0.03)


def test_inference_by_hand():
    """Two groups of four; the nearest group's commonest illness is right for 3 + 2 of 8, with one tie of two."""
    original = pa.table({"a": [0.0, 0, 0, 0, 9, 9, 9, 9], "ill": list("xxxyyyzz")})
    release = original.take(pa.array([3, 2, 1, 0, 7, 6, 5, 4]))
    found = attribute_inference(original, release, NUMBERS[:1], ILL, generator())
    assert found.success.value == pytest.approx((3 + 4 * 0.5) / 8)
    assert found.baseline.value == pytest.approx((3 * 0.5 + 3 * 0.5) / 8)


def test_numbers_are_inferred_within_a_twentieth_of_the_range():
    pay = Column("pay", Role.SENSITIVE, Kind.NUMBER)
    original = pa.table({"a": [0.0, 0, 0, 9, 9, 9], "pay": [0.0, 4.0, 40.0, 96.0, 99.0, 100.0]})
    found = attribute_inference(original, original, NUMBERS[:1], pay, generator())
    assert found.success.value == pytest.approx((2 + 3) / 6)
    assert found.baseline.value == 0


def test_a_category_and_missing_values_take_part():
    original = pa.table({"a": [1.0, None, 3.0, 4.0], "ill": ["x", None, "y", "y"]})
    found = singling_out(original, original, [NUMBERS[0], ILL], generator(), guesses=300, width=2)
    assert found.success.value == 1
    assert 0 < found.baseline.value < 1
    assert attribute_inference(original, original, NUMBERS[:1], ILL, generator()).success.value == 1


def test_advantage_is_what_the_release_adds():
    rates = (Rate(0.6, 0.5, 0.7), Rate(0.2, 0.1, 0.3))
    assert AttackRisk(*rates).advantage == pytest.approx(0.5)
    with pytest.raises(DataRefused):
        singling_out(table(), table(records=0), NUMBERS, generator())
