import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from federated_anon.arrays import Points
from federated_anon.sealed import Proposer, SplitRules, layout, proposer
from federated_anon.sealed.groups import SealedGroups, split_down
from federated_anon.sealed.layout import canonical_order, gathered, inverse

FEW = st.sampled_from([-1.5, -0.0, 0.0, 2.0])
TABLES = st.tuples(st.integers(1, 40), st.integers(1, 4)).flatmap(lambda shape: arrays(np.float64, shape, elements=FEW))


@given(TABLES, st.integers(0, 9))
def test_rows_are_ordered_by_all_their_values_and_then_by_their_private_numbers(table: Points, seed: int) -> None:
    private = np.random.default_rng(seed).permutation(len(table))
    expected = np.lexsort((private, *(table + 0.0).T[::-1]))
    assert np.array_equal(canonical_order(table, private), expected)


@given(st.integers(1, 50), st.integers(1, 3), st.integers(1, 200), st.integers(0, 9))
def test_rows_gathered_by_buckets_are_those_gathered_at_once(rows: int, columns: int, size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table, order = rng.standard_normal((rows, columns)), rng.permutation(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "BUCKET_BYTES", size)
        assert np.array_equal(gathered(table, order, np.empty), table[order])
    assert np.array_equal(order[inverse(order)], np.arange(rows))


def split(blocks: list[Points], rules: SplitRules, made: list[int] | None = None) -> SealedGroups:
    """All rounds; ``made`` collects the rows of every table that is laid out, and none is where it is not given."""

    def empty(shape: tuple[int, int]) -> Points:
        assert made is not None
        made.append(shape[0])
        return np.full(shape, np.nan)

    draws = [np.random.default_rng(seed).permutation(len(blocks[0])) for seed in (1, 2)]
    both = zip(blocks, draws, strict=True)
    proposers = [Proposer(block, draw, rules, None if made is None else empty) for block, draw in both]
    return split_down(proposers, len(blocks[0]), rules)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_where_rows_lie_and_who_reads_them_changes_no_message(monkeypatch: pytest.MonkeyPatch, threads: str) -> None:
    rng = np.random.default_rng(4)
    blocks = [rng.standard_normal((3000, 5)), rng.integers(0, 4, (3000, 3)).astype(float)]
    rules = SplitRules(3, sample=64)
    expected = split(blocks, rules).transcript
    monkeypatch.setattr(layout, "BUCKET_BYTES", 1000)
    monkeypatch.setattr(proposer, "BUCKET_BYTES", 1000)
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    made: list[int] = []
    assert split(blocks, rules, made).transcript == expected
    assert len(made) > 10
