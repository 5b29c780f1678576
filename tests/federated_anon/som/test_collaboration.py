"""The linear-time form against the printed one, record by unit."""

import numpy as np
import pytest

from federated_anon.arrays import Codebook, Labels, Points
from federated_anon.errors import DataRefused
from federated_anon.som import Grid, collaborative_update, lead_codebook, link_strength, match_units

GRID = Grid(5, 7)


def naive_update(X: Points, own: Labels, partners: list[Labels], strengths: list[float], radius: float) -> Codebook:
    kernel = GRID.kernel(radius)
    weights = kernel[own]
    for partner, strength in zip(partners, strengths, strict=True):
        weights = weights + strength**2 * (kernel[own] - kernel[partner]) ** 2
    return np.asarray(weights.T @ X / weights.sum(axis=0)[:, None])


@pytest.fixture
def views() -> tuple[Points, Labels, list[Labels]]:
    rng = np.random.default_rng(3)
    return rng.standard_normal((200, 4)), rng.integers(35, size=200), list(rng.integers(35, size=(2, 200)))


@pytest.mark.parametrize("radius", [0.7, 1.0, 2.0, 5.0])
def test_update_equals_the_naive_form(views: tuple[Points, Labels, list[Labels]], radius: float) -> None:
    X, own, partners = views
    fast = collaborative_update(X, own, partners, [0.4, 1.7], GRID, radius, np.zeros((35, 4)))
    np.testing.assert_allclose(fast, naive_update(X, own, partners, [0.4, 1.7], radius), atol=1e-10)


@pytest.mark.parametrize("radius", [0.7, 1.0, 3.0])
def test_strength_equals_the_naive_form(views: tuple[Points, Labels, list[Labels]], radius: float) -> None:
    _, own, (partner, _) = views
    kernel = GRID.kernel(radius)
    expected = kernel[own].sum() / (2 * ((kernel[own] - kernel[partner]) ** 2).sum())
    assert link_strength(own, partner, GRID, radius) == pytest.approx(expected, rel=1e-10)


def test_maps_that_agree_have_nothing_to_weigh(views: tuple[Points, Labels, list[Labels]]) -> None:
    _, own, _ = views
    assert link_strength(own, own, GRID, 1.0) == float("inf")


def test_the_update_lowers_the_objective(views: tuple[Points, Labels, list[Labels]]) -> None:
    X, own, partners = views
    start = np.random.default_rng(1).standard_normal((35, 4))
    kernel = GRID.kernel(1.0)
    weights = kernel[own] + 0.49 * (kernel[own] - kernel[partners[0]]) ** 2

    def objective(codebook: Codebook) -> float:
        return float((weights * ((X[:, None] - codebook) ** 2).sum(-1)).sum())

    update = collaborative_update(X, own, partners[:1], [0.7], GRID, 1.0, start)
    assert objective(update) < objective(start)
    assert objective(update) < objective(update + 0.01)


def test_unreached_units_keep_their_prototype() -> None:
    start = np.arange(70.0).reshape(35, 2)
    update = collaborative_update(np.ones((3, 2)), np.zeros(3, dtype=int), [], [], GRID, 0.2, start)
    assert update[0].tolist() == [1, 1]
    assert update[34].tolist() == start[34].tolist()


def test_a_lead_map_places_units_where_its_records_lie() -> None:
    rng = np.random.default_rng(0)
    units = rng.integers(35, size=3000)
    X = GRID.coordinates()[units] + 0.1 * rng.standard_normal((3000, 2))
    codebook = lead_codebook(X, units, GRID, radius=0.3)
    np.testing.assert_allclose(codebook, GRID.coordinates(), atol=0.05)


def test_matching_undoes_a_renaming_of_units() -> None:
    rng = np.random.default_rng(0)
    lead, names = rng.integers(35, size=2000), rng.permutation(35)
    match = match_units(lead, names[lead], GRID)
    assert sorted(match) == list(range(35))
    assert np.array_equal(match[names[lead]], lead)


def test_matching_leaves_unused_units_in_place() -> None:
    lead = np.array([3, 3, 9])
    match = match_units(lead, lead, GRID)
    assert np.array_equal(match, np.arange(35))


def test_bad_units_are_refused() -> None:
    with pytest.raises(DataRefused, match="units must be 0 to 34"):
        link_strength(np.array([35]), np.array([0]), GRID, 1.0)
    with pytest.raises(DataRefused, match="strengths must match"):
        collaborative_update(np.ones((1, 1)), np.array([0]), [], [1.0], GRID, 1.0, np.zeros((35, 1)))
