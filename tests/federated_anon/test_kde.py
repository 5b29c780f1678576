"""Column densities: against the definition, SciPy and KDEpy; cells by hand; the k that recoding reaches."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import gaussian_kde

from federated_anon.errors import DataRefused
from federated_anon.kde import (
    RULES,
    DensityCells,
    Extrema,
    binned,
    density,
    extrema,
    isj,
    joined,
    recoded,
    scott,
    silverman,
)
from federated_anon.microaggregation import JointCells


def two_hills(rows=2000, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(0, 1, rows // 2), rng.normal(8, 0.5, rows - rows // 2)])


def test_linear_binning_by_hand():
    """Grid 0, 1, 2: 0.25 gives 3/4 to 0 and 1/4 to 1; 2 gives all to 2."""
    assert binned(np.array([0.25, 2.0]), 0.0, 2.0, 3) == pytest.approx([0.75, 0.25, 1.0])


def test_the_density_of_one_record_is_the_kernel():
    found = density(np.array([3.0]), 0.5)
    expected = np.exp(-((found.grid - 3.0) ** 2) / (2 * 0.25)) / (0.5 * np.sqrt(2 * np.pi))
    assert np.abs(found.heights - expected).max() < 1e-4


@pytest.mark.parametrize("bandwidth", [0.05, 0.3, 2.0])
def test_the_density_is_scipys(bandwidth):
    values = two_hills(300)
    found = density(values, bandwidth)
    oracle = gaussian_kde(values, bandwidth / values.std(ddof=1))
    assert np.abs(found.heights - oracle(found.grid)).max() < 0.01 * found.heights.max()
    assert found.heights.sum() * (found.grid[1] - found.grid[0]) == pytest.approx(1, abs=1e-3)


def test_bandwidth_rules_by_hand():
    """1..9: standard deviation 2.7386, interquartile range 4, so A = min(2.7386, 2.9652)."""
    values = np.arange(1.0, 10.0)
    assert silverman(values) == pytest.approx(0.9 * 2.7386128 * 9**-0.2)
    assert scott(values) == pytest.approx(1.0592238 * 2.7386128 * 9**-0.2)


@pytest.mark.parametrize("rows", [500, 5000])
def test_bandwidth_rules_of_kdepy(rows):
    """KDEpy 1.1 calls the normal reference rule Silverman's. Its ISJ multiplies by the range of the data where the
    transform was over a grid of that range and half of it (at least 6) on either side: that is undone here."""
    selection = pytest.importorskip("KDEpy.bw_selection")
    values = two_hills(rows) * 10
    assert scott(values) == pytest.approx(selection.silvermans_rule(values[:, None]), rel=1e-3)
    assert isj(values) == pytest.approx(2 * selection.improved_sheather_jones(values[:, None]), rel=0.02)


def test_isj_is_near_the_best_bandwidth_of_a_normal_density():
    for seed in range(3):
        values = np.random.default_rng(seed).normal(size=5000)
        assert isj(values) == pytest.approx(1.06 * 5000**-0.2, rel=0.15)


def test_isj_sees_hills_that_silverman_smooths_away():
    values = two_hills()
    assert isj(values) < silverman(values) / 3


@pytest.mark.parametrize("rule", RULES)
def test_two_hills_are_cut_between_and_coded_with_their_tops(rule):
    values = two_hills(20000)
    cells = DensityCells(k=6000, bandwidth=rule).fit(values)
    assert len(cells.modes_) == 2
    assert cells.modes_ == pytest.approx([0, 8], abs=0.35)
    assert 2 < cells.cuts_[0] < 7
    assert set(cells.recode(values)) == set(cells.modes_)
    assert (cells.assign(values) == np.repeat([0, 1], 10000)).mean() > 0.999


def test_extrema_of_a_level_stretch_are_in_its_middle():
    values = np.array([0.0, 100.0])
    found = extrema(density(values, 1.0))
    assert found.modes == pytest.approx([0.0, 100.0], abs=0.2)
    assert found.cuts == pytest.approx([50.0], abs=0.2)


def test_joining_by_hand():
    """Cells {0, 1}, {4}, {9, 9}: 4 joins the hill at 1, which is nearer, and the higher top stays."""
    found = Extrema(np.array([3.0, 7.0]), np.array([1.0, 4.0, 9.0]), np.array([1.0, 0.4, 0.9]))
    cuts, modes = joined(found, np.array([0.0, 1.0, 4.0, 9.0, 9.0]), 2)
    assert (cuts.tolist(), modes.tolist()) == ([7.0], [1.0, 9.0])


@settings(max_examples=60)
@given(
    st.lists(st.one_of(st.floats(-1e6, 1e6), st.sampled_from([0.0, 1.0, 1e-9])), min_size=3, max_size=60),
    st.integers(1, 3),
    st.sampled_from(sorted(RULES)),
)
def test_no_cell_of_a_column_is_below_k_and_order_is_kept(values, k, rule):
    column = np.array(values)
    cells = DensityCells(k, rule).fit(column)
    own = cells.assign(column)
    assert np.unique(own, return_counts=True)[1].min() >= k
    assert (np.diff(own[np.argsort(column)]) >= 0).all()
    assert (np.diff(cells.modes_) > 0).all()
    assert len(cells.modes_) == len(cells.cuts_) + 1 == len(np.unique(own))


def test_recoding_says_which_k_it_reaches():
    points = np.random.default_rng(0).normal(size=(300, 4))
    found = recoded(points, k=10)
    assert found.k_reached == np.unique(found.cells, axis=0, return_counts=True)[1].min()
    assert all(np.bincount(column).min() >= 10 for column in found.cells.T)
    assert np.unique(found.values, axis=0).shape[0] == found.joint.max() + 1
    alone = recoded(np.random.default_rng(1).normal(size=(200, 6)) ** 3)
    assert alone.k_reached == 1, "recoding alone gives no k"
    assert np.bincount(JointCells(10).fit(found.values).labels_).min() >= 10


def test_cells_of_a_large_table_are_merged_in_blocks():
    points = np.random.default_rng(0).integers(0, 4, (5000, 5)).astype(float)
    assert np.bincount(JointCells(7).fit(points).labels_).min() >= 7


def test_a_million_values_take_less_than_a_second():
    values = two_hills(1_000_000)
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        DensityCells(k=5).fit(values).recode(values)
        seconds.append(time.process_time() - begun)
    assert min(seconds) < 1


@pytest.mark.parametrize("values", [[7.0] * 5, [7.0], [1e300, 1e300]])
def test_a_constant_column_is_one_cell(values):
    cells = DensityCells().fit(np.array(values))
    assert cells.recode(np.array(values)).tolist() == values


@pytest.mark.parametrize(("options", "values"), [({"bandwidth": "x"}, [1.0]), ({"k": 3}, [1.0]), ({}, [np.nan])])
def test_what_cannot_be_recoded_is_refused(options, values):
    with pytest.raises(DataRefused):
        DensityCells(**options).fit(np.array(values))
