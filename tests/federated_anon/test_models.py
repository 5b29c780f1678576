"""Local models: against scikit-learn, one contract for all, and holders with different ones in one study."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from federated_anon import simulate
from federated_anon.errors import SettingsRefused
from federated_anon.models import REGULARISATION, Mixture, fitted, laid_out, means, mixture
from federated_anon.som import Grid, lead_codebook

KINDS = ("som", "kmeans", "gmm")


def blobs(rows=400, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(4, 3))[rng.integers(0, 4, rows)] * 4 + rng.normal(size=(rows, 3)) * [0.3, 1.0, 0.1]


def test_means_are_scikit_learns():
    points = blobs()
    start = points[:12]
    oracle = KMeans(12, init=start, n_init=1, tol=0, max_iter=300, algorithm="lloyd").fit(points)
    assert np.allclose(means(points, start, 300), oracle.cluster_centers_)


def test_a_step_of_the_mixture_is_scikit_learns():
    points = blobs()
    start = mixture(points, points[:5], 0, np.random.default_rng(0))
    oracle = GaussianMixture(
        5,
        covariance_type="diag",
        reg_covar=REGULARISATION,
        weights_init=start.weights,
        means_init=start.codebook,
        precisions_init=start.precisions,
        max_iter=3,
        tol=0.0,
    )
    with pytest.warns(ConvergenceWarning):
        oracle.fit(points)
    found = start.improved(points).improved(points).improved(points)
    assert np.allclose(found.codebook, oracle.means_, atol=1e-6)
    assert np.allclose(found.precisions, oracle.precisions_, rtol=1e-5)
    assert np.allclose(found.weights, oracle.weights_, atol=1e-8)
    assert np.array_equal(found.assign(points), oracle.predict(points))


def test_a_mixture_sees_spreads_that_means_do_not():
    """A wide component at 0, a narrow one at 3: the record at 2.0 is nearer to 3, and belongs to the wide one."""
    found = Mixture(np.array([[0.0], [3.0]]), np.array([[1.0], [100.0]]), np.array([0.5, 0.5]))
    assert found.assign(np.array([[1.4], [2.0], [2.9]])).tolist() == [0, 0, 1]


def test_first_centres_lie_on_the_grid_as_on_the_principal_plane():
    points = np.random.default_rng(0).normal(size=(500, 2)) * [5.0, 1.0]
    places = laid_out(points, Grid(4, 6), np.random.default_rng(1)).reshape(4, 6, 2)
    across = places[:, :, 0] if abs(np.corrcoef(points @ [1, 0], points[:, 0])[0, 1]) > 0.5 else places[:, :, 1]
    assert all((np.diff(row) > 0).all() or (np.diff(row) < 0).all() for row in across)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(40, 3), (400, 1), (5, 2)])
def test_one_contract_for_all_models(kind, shape):
    points = np.random.default_rng(0).normal(size=shape)
    grid = Grid(3, 4)
    found = fitted(kind, points, grid, 6, np.random.default_rng(0))
    again = fitted(kind, points, grid, 6, np.random.default_rng(0))
    units = found.assign(points)
    assert np.array_equal(found.codebook, again.codebook)
    assert found.codebook.shape == (12, shape[1])
    assert np.isfinite(found.codebook).all()
    assert units.min() >= 0
    assert units.max() < 12
    order = np.random.default_rng(1).permutation(12)
    other = found.renumbered(order)
    assert np.array_equal(other.codebook[order], found.codebook)
    assert np.array_equal(other.codebook[other.assign(points)], found.codebook[units]), "other numbers, same prototypes"
    assert np.array_equal(found.moved(found.codebook).assign(points), units)


@pytest.mark.parametrize("kind", KINDS)
def test_a_lead_gives_the_units_their_numbers(kind):
    points, grid, rng = blobs(), Grid(3, 3), np.random.default_rng(0)
    lead = fitted("som", points[:, :2], grid, 12, rng).assign(points[:, :2])
    start = lead_codebook(points, lead, grid), 1.5
    assert (fitted(kind, points, grid, 5, rng, start).assign(points) == lead).mean() > 0.4, "chance is one in nine"


@pytest.mark.parametrize("kind", KINDS)
def test_models_separate(kind):
    rng = np.random.default_rng(0)
    blob = rng.integers(0, 4, 400)
    points = np.array([[0, 0], [9, 0], [0, 9], [9, 9]])[blob] + rng.normal(size=(400, 2))
    units = fitted(kind, points, Grid(2, 4), 12, rng).assign(points)
    most = sum(np.bincount(blob[units == unit]).max() for unit in np.unique(units))
    assert most >= 380, "nearly every unit holds records of one blob"


def people(rows=90, seed=0):
    rng = np.random.default_rng(seed)
    return pa.table({f"c{i}": rng.normal(size=rows) + rng.integers(0, 3, rows) * 4 for i in range(6)})


@settings(max_examples=8)
@given(
    st.sampled_from(["best", "k-tca", "c-tca", "mdav"]),
    st.tuples(*[st.sampled_from(KINDS)] * 3),
    st.sampled_from(["lead", "match", "none"]),
    st.integers(0, 99),
)
def test_holders_with_different_models_collaborate_and_keep_k(method, kinds, align, seed):
    models = {f"holder-{number + 1}": kind for number, kind in enumerate(kinds)}
    options = {"map": {"models": models}, "collaboration": {"align": align, "rounds": 2}}
    result = simulate(people(seed=seed), k=4, method=method, seed=seed, runtime="in-process", **options)
    assert result.summary["k_reached"] >= 4
    assert {name: told["model"] for name, told in result.report["holders"].items()} == models
    assert 0 < result.summary["information_loss_percent"] < 100


def test_the_model_changes_the_release_and_the_rounds_are_judged():
    options = {"k": 4, "method": "c-tca", "runtime": "in-process"}
    tables = [simulate(people(), map={"model": kind}, **options) for kind in KINDS]
    assert len({str(found.table.to_pydict()) for found in tables}) == 3
    assert all(found.report["rounds"] for found in tables)


@pytest.mark.parametrize(
    ("settings_of_map", "fault"),
    [({"model": "tree"}, "model must be"), ({"models": {"nobody": "gmm"}}, "unknown holders: nobody")],
)
def test_unknown_models_and_holders_are_refused(settings_of_map, fault):
    with pytest.raises(SettingsRefused, match=fault):
        simulate(people(), k=4, map=settings_of_map, runtime="in-process")
