"""Every message is a function of the final groups: who is who inside a group leaves no trace in any byte."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federated_anon.arrays import Points
from federated_anon.sealed import MapProposer, Proposer, SplitRules, Transcript
from tests.federated_anon.sealed.tables import dealt, grouped, numbers, standardised, swap_inside


def full_of_ties(records: int = 600, columns: int = 9) -> Points:
    rng = np.random.default_rng(5)
    return rng.integers(0, 3, size=(records, columns)) * np.array([1.0, 0.1, 1 / 3] * (columns // 3))


def require_no_trace(
    table: Points, k: int, seed: int, rules: SplitRules | None = None, proposer: type[Proposer] = Proposer
) -> Transcript:
    rules = rules or SplitRules(k)
    blocks, private = dealt(table, seed), numbers(len(table), 3, seed)
    first = grouped(blocks, private, rules, proposer)
    swap = swap_inside(first.labels, np.random.default_rng(seed))
    for moved in ({0, 1, 2}, {1}, {0, 2}):
        swapped = [block[swap] if holder in moved else block for holder, block in enumerate(blocks)]
        carried = [draw[swap] if holder in moved else draw for holder, draw in enumerate(private)]
        assert grouped(swapped, carried, rules, proposer).transcript == first.transcript
    assert (swap != np.arange(len(table))).any()
    return first.transcript


PROPOSERS = pytest.mark.parametrize("proposer", [Proposer, MapProposer])


@PROPOSERS
@pytest.mark.parametrize("name", ["census", "yeast"])
@pytest.mark.parametrize("k", [3, 10])
def test_swaps_inside_groups_leave_no_trace_on_published_tables(
    name: str, k: int, proposer: type[Proposer], shared_data: Path
) -> None:
    for seed in range(2):
        require_no_trace(standardised(shared_data, name), k, seed, proposer=proposer)


@PROPOSERS
@pytest.mark.parametrize("k", [2, 3, 5])
def test_swaps_inside_groups_leave_no_trace_among_ties(k: int, proposer: type[Proposer]) -> None:
    require_no_trace(full_of_ties(), k, seed=1, proposer=proposer)
    require_no_trace(np.zeros((57, 3)), k, seed=2, proposer=proposer)


def test_swaps_inside_groups_leave_no_trace_where_groups_are_sampled_and_winners_go_on() -> None:
    rng = np.random.default_rng(0)
    heavy = rng.standard_t(1.5, size=(3000, 6)).round(1)
    rules = SplitRules(3, chain_from=100, sample=128, waste_free=2)
    require_no_trace(heavy, 3, seed=3, rules=rules)


@st.composite
def tables(draw: st.DrawFn) -> Points:
    records, columns = draw(st.integers(8, 60)), draw(st.integers(3, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    table = rng.standard_normal((records, columns)) * 10.0 ** rng.integers(-3, 4, columns)
    return np.round(table, draw(st.sampled_from([0, 1, 17])))


@PROPOSERS
@settings(max_examples=50)
@given(table=tables(), k=st.integers(2, 4), seed=st.integers(0, 1000))
def test_swaps_inside_groups_leave_no_trace_on_any_table(
    proposer: type[Proposer], table: Points, k: int, seed: int
) -> None:
    rules = SplitRules(k)
    blocks, private = dealt(table, seed), numbers(len(table), 3, seed)
    first = grouped(blocks, private, rules, proposer)
    swap = swap_inside(first.labels, np.random.default_rng(seed))
    for moved in ({0, 1, 2}, {seed % 3}):
        swapped = [block[swap] if holder in moved else block for holder, block in enumerate(blocks)]
        carried = [draw[swap] if holder in moved else draw for holder, draw in enumerate(private)]
        assert grouped(swapped, carried, rules, proposer).transcript == first.transcript


def test_without_canonical_order_the_same_swap_shows(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "federated_anon.sealed.proposer.canonical_order", lambda points, private: np.arange(len(points))
    )
    with pytest.raises(AssertionError):
        require_no_trace(standardised(shared_data, "yeast"), 3, seed=0)


def test_private_numbers_decide_between_equal_rows_and_nothing_else() -> None:
    rules = SplitRules(3)
    for table, is_tied in ((full_of_ties(), True), (np.random.default_rng(0).standard_normal((300, 6)), False)):
        first, other = (grouped(dealt(table, 0), numbers(len(table), 3, seed), rules).transcript for seed in (0, 9))
        assert first.levels[0].gains == other.levels[0].gains
        assert (first != other) == is_tied
