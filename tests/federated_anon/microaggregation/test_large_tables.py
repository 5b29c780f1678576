import numpy as np
import pytest

from federated_anon.arrays import Points
from federated_anon.errors import DataRefused
from federated_anon.microaggregation import HAC, MDAV, Blocked, Route, best_groups, information_loss
from federated_anon.microaggregation.blocks import cut


@pytest.fixture(scope="module")
def table() -> Points:
    rng = np.random.default_rng(6)
    mixing = rng.standard_normal((8, 3, 6))
    part = rng.integers(8, size=12_000)
    factors = rng.standard_normal((12_000, 3))
    return np.einsum("nf,nfd->nd", factors, mixing[part]) + 2 * mixing[part, 0]


def test_cells_cover_every_record_once(table: Points) -> None:
    for turn in (0.0, 1.0):
        cells = cut(table, 500, np.random.default_rng(0), turn)
        assert np.array_equal(np.sort(np.concatenate(cells)), np.arange(len(table)))
        assert max(map(len, cells)) <= 500
        assert min(map(len, cells)) >= 150


def test_blocks_lose_no_more_than_mdav_over_the_whole_table(table: Points) -> None:
    blocks = information_loss(table, Blocked(5).fit(table).labels_)
    assert blocks < information_loss(table, MDAV(5).fit(table).labels_)


def test_sweeps_cross_the_borders(table: Points) -> None:
    losses = [information_loss(table, Blocked(5, sweeps=sweeps).fit(table).labels_) for sweeps in (0, 1, 2)]
    assert losses[0] > losses[1] > losses[2]


def test_threads_change_no_label(table: Points, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        found.append(best_groups(table, 4, seed=7).labels.tobytes())
    assert found[0] == found[1]


def test_the_switch_is_told(table: Points) -> None:
    large, small = best_groups(table, 5, seed=0), best_groups(table[:300], 5, seed=0)
    assert (large.route, small.route) == (Route.BLOCKS, Route.SEARCH)
    assert large.loss == pytest.approx(information_loss(table, large.labels))
    assert best_groups(table[:300], 5, seed=0, large=100).route == Route.BLOCKS


def test_any_method_groups_inside_cells(table: Points) -> None:
    labels = Blocked(4, method=HAC(4), cell=300, sweeps=0).fit(table[:2000]).labels_
    assert np.bincount(labels).min() >= 4


def test_bad_settings_are_refused(table: Points) -> None:
    with pytest.raises(DataRefused, match="cell must be at least 2k"):
        Blocked(5, cell=9).fit(table)
    with pytest.raises(DataRefused, match="method must have the same k"):
        Blocked(5, method=MDAV(4)).fit(table)
    with pytest.raises(DataRefused, match="HAC takes up to"):
        HAC(2).fit(np.zeros((20_001, 1)))
