"""Packed sets: they come back as they went, in the bytes that were promised, and nothing else gets past."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federated_anon.crypto.compact import packed, unpacked
from federated_anon.crypto.matching import common_positions
from federated_anon.errors import MessageRefused

sets = st.sets(st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 60)), max_size=80)


def words(values) -> np.ndarray:
    return np.array(sorted(values), dtype=np.uint64)


@given(sets, st.sampled_from([64, 56, 20]))
def test_a_set_comes_back(values, width):
    cut = {value >> (64 - width) for value in values} | {2**width - 1}
    assert unpacked(packed(words(values))).tolist() == sorted(values)
    assert unpacked(packed(words(cut), width), width).tolist() == sorted(cut)


def test_large_sets_over_chunks_come_back_in_few_bytes():
    rng = np.random.default_rng(0)
    for count in (65535, 65536, 65537, 300_000):
        values = np.unique(rng.integers(0, 2**64, count, dtype=np.uint64))
        content = packed(values)
        assert np.array_equal(unpacked(content), values)
        assert len(content) <= 8 + len(values) * (64 - np.log2(len(values)) + 3) / 8
    assert len(content) < 6.1 * count
    assert len(packed(np.unique(values >> np.uint64(8)), 56)) < 5.1 * count


@given(sets, st.data())
def test_every_flipped_bit_gives_another_set_or_a_refusal(values, data):
    content = bytearray(packed(words(values)))
    bit = data.draw(st.integers(0, 8 * len(content) - 1))
    content[bit // 8] ^= 1 << bit % 8
    try:
        found = unpacked(bytes(content))
    except MessageRefused:
        return
    assert found.tolist() != sorted(values)
    assert packed(found) == bytes(content), "one set, one spelling"


@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_the_only_spelling_of_a_set(content):
    try:
        found = unpacked(content)
    except MessageRefused:
        return
    assert packed(found) == content


@pytest.mark.parametrize("count", [2**20, 2**40, 2**62, 2**63, 2**64 - 1])
def test_a_count_that_lies_takes_no_memory(count):
    with pytest.raises(MessageRefused, match="length"):
        unpacked(count.to_bytes(8, "little") + bytes(100))


@given(st.lists(st.sets(st.integers(0, 40), max_size=30), min_size=1, max_size=5))
def test_common_positions_are_the_intersection(groups):
    found = common_positions({str(n): words(one) for n, one in enumerate(groups)})
    expected = sorted(set.intersection(*groups))
    assert all(words(one)[found[str(n)]].tolist() == expected for n, one in enumerate(groups))
