"""Agreement of maps by averages over groups: right, worth something, and blind to who is who in a final group."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federated_anon.arrays import Points
from federated_anon.sealed import MapProposer, NestedPartition, SplitRules, apply, open_groups
from federated_anon.sealed.agreement import Link, facing, is_due, mean_units, tried
from federated_anon.sealed.groups import one_level
from federated_anon.som import Grid
from tests.federated_anon.sealed.tables import dealt, numbers, standardised, swap_inside

LINK = Link(1.0, 0.7)


@given(st.integers(1, 6), st.integers(2, 9), st.integers(0, 999))
def test_the_mean_unit_is_the_unit_nearest_to_the_mean_place(count, side, seed):
    rng, grid = np.random.default_rng(seed), Grid(side, side)
    units, groups = rng.integers(0, grid.units, 60), np.arange(60) % count
    found = mean_units(units, groups, grid)
    for group in range(count):
        mean = grid.coordinates()[units[groups == group]].mean(axis=0)
        assert np.abs(grid.coordinates()[found[group]] - mean).max() <= 0.5 + 1e-9


def test_a_turned_or_mirrored_map_is_turned_back():
    grid = Grid(5, 5)
    own = np.random.default_rng(0).integers(0, 25, 80)
    board = np.arange(25).reshape(5, 5)
    for turned in (board, board[::-1], board.T, np.rot90(board), np.rot90(board.T, 3)):
        assert np.array_equal(facing(own, turned.reshape(-1)[own], grid), own)


def agreement(
    blocks: list[Points], private: list[np.ndarray], rules: SplitRules
) -> tuple[NestedPartition, list[bytes]]:
    """Splits down to the level at which maps agree; and what all holders tell and make of it, as bytes."""
    proposers = [MapProposer(block, draw, rules) for block, draw in zip(blocks, private, strict=True)]
    partition = NestedPartition.whole(len(blocks[0]))
    while not is_due(partition, rules) and len(open_groups(partition, rules.k)):
        level = one_level(proposers, partition)
        partition = apply(partition, level.winners, level.bits, rules)
    groups = [one.in_order(partition.compact) for one in proposers]
    told = [mean_units(one.map.units, own, one.map.grid) for one, own in zip(proposers, groups, strict=True)]
    seen = [one.tobytes() for one in told]
    for place, one in enumerate(proposers):
        partners = [units for other, units in enumerate(told) if other != place]
        found = tried(one.points, one.map, groups[place], partners, LINK)
        seen += [np.float64(made.validity(one.points)).tobytes() for made in (one.map, found)]
        seen += [found.codebook.tobytes()]
    return partition, seen


def require_no_trace(table: Points, k: int, seed: int) -> None:
    """Swaps inside the groups averaged, let alone inside final ones, change no byte."""
    rules = SplitRules(k)
    blocks, private = dealt(table, seed), numbers(len(table), 3, seed)
    partition, first = agreement(blocks, private, rules)
    swap = swap_inside(finer(partition, k), np.random.default_rng(seed))
    for moved in ({0, 1, 2}, {1}, {0, 2}):
        swapped = [block[swap] if holder in moved else block for holder, block in enumerate(blocks)]
        carried = [draw[swap] if holder in moved else draw for holder, draw in enumerate(private)]
        assert agreement(swapped, carried, rules)[1] == first


def finer(partition: NestedPartition, k: int) -> np.ndarray:
    """Groups of at least k inside those of the partition, as later splits could make them."""
    labels = partition.compact
    within = np.empty(len(labels), dtype=np.int64)
    for group in np.unique(labels):
        members = np.flatnonzero(labels == group)
        within[members] = np.minimum(np.arange(len(members)) // k, max(len(members) // k - 1, 0))
    return labels * len(labels) + within


@pytest.mark.parametrize("name", ["census", "yeast"])
def test_swaps_leave_no_trace_in_averages_and_candidates(name: str, shared_data: Path) -> None:
    require_no_trace(standardised(shared_data, name), 3, seed=0)


@settings(max_examples=25)
@given(st.integers(20, 80), st.integers(2, 4), st.integers(0, 999), st.sampled_from([0, 1, 17]))
def test_swaps_leave_no_trace_in_averages_and_candidates_of_any_table(records, k, seed, digits):
    table = np.random.default_rng(seed).standard_normal((records, 6)).round(digits)
    require_no_trace(table, k, seed)


def test_rows_laid_out_anew_give_the_same_averages_and_candidates(monkeypatch):
    table = np.random.default_rng(3).standard_normal((400, 6))
    blocks, private, rules = dealt(table, 0), numbers(400, 3, 0), SplitRules(3)
    first = agreement(blocks, private, rules)[1]
    plain = MapProposer.__init__
    monkeypatch.setattr("federated_anon.sealed.proposer.BUCKET_BYTES", 100)
    monkeypatch.setattr(MapProposer, "__init__", lambda self, *given: plain(self, *given, np.empty))
    assert agreement(blocks, private, rules)[1] == first


def test_averages_in_the_order_of_rows_would_show_the_swap(monkeypatch):
    """The comparison above can fail: with averages of single records it does."""
    monkeypatch.setattr("tests.federated_anon.sealed.test_agreement.mean_units", lambda units, groups, grid: units)
    monkeypatch.setattr(MapProposer, "in_order", lambda self, groups: np.arange(len(groups)))
    monkeypatch.setattr(MapProposer, "points", property(lambda self: self._sorted.points[self._sorted.rank]))
    with pytest.raises(AssertionError):
        require_no_trace(np.random.default_rng(1).standard_normal((200, 6)), 3, 1)
