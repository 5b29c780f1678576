"""Secure argmax: always the same winner as in the open, and nothing but the winner in what is seen."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from federated_anon.crypto.argmax import (
    Triples,
    circuit,
    correction,
    layers,
    planes,
    shared_inputs,
    size_of,
    winners_of,
    zero_shares,
)
from federated_anon.crypto.sums import keystream
from federated_anon.errors import MessageRefused
from federated_anon.sealed import winners
from tests.federated_anon.crypto.test_sums import circles

numbers = st.one_of(
    st.floats(width=32),
    st.sampled_from([0.0, -0.0, 1.0, 1.0000001, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.4e38]),
)


def played(gains: np.ndarray, masked: bool = True):
    """All holders' shares of the result, and every hidden input that was told."""
    ring = circles(len(gains))
    size, told_all = size_of(gains.shape[1]), []
    given_ = zip(ring.values(), gains, strict=True)
    runs = [circuit(shared_inputs(planes(own), one, "0"), one.name == "holder-0") for one, own in given_]
    gates = [next(run) for run in runs]
    for layer, width in enumerate(layers(len(gains))):
        seeds = [bytes([layer, place]) + bytes(30) for place in range(len(gains))]
        drawn = [Triples.drawn(seed, width, size) for seed in seeds]
        fitting = np.frombuffer(correction(seeds, width, size), dtype=np.uint8).reshape(width, size)
        drawn[0] = Triples(drawn[0].a, drawn[0].b, fitting)
        told = [one.hidden(own) for one, own in zip(drawn, gates, strict=True)]
        told_all.append(told)
        shares = []
        for place, (run, one) in enumerate(zip(runs, drawn, strict=True)):
            try:
                gates[place] = run.send(one.outputs(told, place == 0))
            except StopIteration as end:
                shares.append(end.value)
    if masked:
        shares = [s ^ zero_shares(s.shape, circle, "0") for s, circle in zip(shares, ring.values(), strict=True)]
    return [share.tobytes() for share in shares], told_all


@settings(max_examples=60, deadline=None)
@given(data=st.data(), holders=st.integers(2, 7), groups=st.integers(1, 19))
def test_the_winner_is_the_one_that_the_gains_name(data, holders, groups):
    rows = st.lists(numbers, min_size=groups, max_size=groups)
    gains = np.array([data.draw(rows) for _ in range(holders)], dtype=np.float32)
    shares, _ = played(gains)
    assert winners_of(shares, groups).tolist() == winners(list(gains)).tolist()


def test_ties_go_to_the_first_of_the_roster():
    gains = np.array([[1, 2, 0, -0.0], [1, 3, 0, 0.0], [1, 3, 0, 0.0]], dtype=np.float32)
    assert winners_of(played(gains)[0], 4).tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize(("holders", "depth"), [(2, 6), (3, 7), (4, 8), (5, 8), (6, 9), (16, 10)])
def test_the_number_of_layers_grows_slowly(holders, depth):
    assert len(layers(holders)) == depth


def even(content: bytes) -> float:
    return float(chisquare(np.bincount(np.frombuffer(content, dtype=np.uint8), minlength=256)).pvalue)


def test_inputs_told_hidden_and_shares_of_the_result_look_uniform():
    gains = np.zeros((3, 40_000), dtype=np.float32)
    shares, told = played(gains)
    assert even(planes(gains[0]).tobytes()) == 0.0, "the test sees what is not hidden"
    for content in [*shares, *(one for layer in told for one in layer)]:
        assert even(content) > 1e-5


def dealer_recovers(masked: bool) -> float:
    """Share of the last layer's inputs that the dealer, who knows all triples, reads off the opened shares.

    A holder's share is c ^ (d and b) ^ (e and a): where a is 1 and b is 0 it tells e, and with the dealer's own b
    one input of the gate.
    """
    rng = np.random.default_rng(3)
    gains = rng.normal(size=(3, 4000)).astype(np.float32)
    shares, told = played(gains, masked)
    last = len(told) - 1
    size, width = size_of(4000), layers(3)[-1]
    drawn = [Triples.drawn(bytes([last, place]) + bytes(30), width, size) for place in range(3)]
    opened = np.bitwise_xor.reduce([np.frombuffer(one, dtype=np.uint8) for one in told[last]]).reshape(2, width, size)
    mine = np.frombuffer(shares[1], dtype=np.uint8).reshape(width, size)
    readable = drawn[1].a & ~drawn[1].b
    agrees = ~((mine ^ drawn[1].c) ^ opened[1]) & readable
    return float(np.unpackbits(agrees).sum() / np.unpackbits(readable).sum())


def test_shares_opened_bare_would_tell_the_dealer_and_masked_ones_do_not():
    assert dealer_recovers(masked=False) == 1.0
    assert abs(dealer_recovers(masked=True) - 0.5) < 0.03


def test_shares_that_name_no_winner_are_refused():
    shares, _ = played(np.arange(6, dtype=np.float32).reshape(2, 3))
    with pytest.raises(MessageRefused, match="more than one"):
        winners_of([shares[0], bytes(len(shares[1]))] if shares[0] != shares[1] else [b"\xff", b"\x00"], 3)
    with pytest.raises(MessageRefused, match="one bit per holder"):
        winners_of([shares[0], shares[1] + b"\x00"], 3)


def test_a_layer_of_another_length_is_refused():
    triples = Triples.drawn(bytes(32), 4, 2)
    with pytest.raises(MessageRefused, match="more or fewer"):
        triples.outputs([bytes(16), bytes(15)], True)
    assert len(keystream(bytes(32), 3)) == 3
