import tracemalloc

import numpy as np
import pytest

from federated_anon.arrays import Points
from federated_anon.errors import DataRefused
from federated_anon.som import BatchSOM, assign_units, unit_statistics
from federated_anon.som.batch import train_pass


def blobs(records: int = 3000, columns: int = 5) -> Points:
    rng = np.random.default_rng(1)
    centres = 4 * rng.standard_normal((6, columns))
    return centres[rng.integers(6, size=records)] + rng.standard_normal((records, columns))


def fitted(X: Points, **settings: object) -> BatchSOM:
    return BatchSOM(6, 8, **settings).fit(X, np.random.default_rng(0))  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_assignment_is_the_nearest_prototype(dtype: str) -> None:
    X = blobs(400)
    som = fitted(X, dtype=dtype)
    distances = ((X[:, None] - som.codebook_.astype(float)) ** 2).sum(-1)
    chosen = np.take_along_axis(distances, som.assign(X)[:, None], axis=1)[:, 0]
    np.testing.assert_allclose(chosen, distances.min(axis=1), rtol=1e-4)
    assert som.codebook_.dtype == dtype
    assert som.quantization_error(X) == pytest.approx(np.sqrt(distances.min(axis=1)).mean(), rel=1e-4)


def test_a_pass_is_the_kernel_weighted_mean() -> None:
    X = blobs(300)
    som = fitted(X, dtype="float64")
    weights = som.grid.kernel(1.5)[som.assign(X)]
    expected = weights.T @ X / weights.sum(axis=0)[:, None]
    np.testing.assert_allclose(train_pass(X, som.codebook_, som.grid, 1.5), expected, rtol=1e-10)


def test_statistics_of_chunks_add_up() -> None:
    X = blobs(1000)
    units = fitted(X).assign(X)
    whole = unit_statistics(X, units, 48)
    parts = unit_statistics(X[:300], units[:300], 48) + unit_statistics(X[300:], units[300:], 48)
    assert np.array_equal(whole.counts, parts.counts)
    np.testing.assert_allclose(whole.sums, parts.sums, rtol=1e-12, atol=1e-12)


def test_a_map_describes_better_than_its_start_and_keeps_neighbours() -> None:
    X = blobs()
    trained, rough = fitted(X), fitted(X, passes=1, end_radius=6.0)
    assert trained.quantization_error(X) < 0.75 * rough.quantization_error(X)
    assert trained.topographic_error(X) < 0.35


def test_a_subsample_and_two_full_passes_are_as_good_as_all_passes() -> None:
    X = blobs(20_000)
    sampled, whole = fitted(X), fitted(X, subsample=0)
    assert sampled.quantization_error(X) < 1.03 * whole.quantization_error(X)
    assert not np.array_equal(sampled.codebook_, whole.codebook_)


def test_threads_change_no_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    X = blobs(70_000, 3).astype(np.float32)
    maps = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        maps.append(fitted(X).codebook_.tobytes())
    assert len(set(maps)) == 1


def test_a_given_codebook_is_where_training_starts() -> None:
    X = blobs(500)
    start = X[:48]
    assert fitted(X, passes=1, initial=start).codebook_.shape == (48, 5)
    with pytest.raises(DataRefused, match="initial must be 48 x 5"):
        fitted(X, initial=start[:3])


def test_units_nobody_reaches_keep_their_prototype() -> None:
    X = np.zeros((10, 2))
    start = np.array([[0.0, 0.0], [9.0, 9.0]])
    som = BatchSOM(1, 2, passes=1, end_radius=0.05, initial=start).fit(X, np.random.default_rng(0))
    assert som.codebook_.tolist() == start.tolist()


@pytest.mark.parametrize("records", [1, 2, 3])
def test_tiny_and_constant_tables_give_finite_maps(records: int) -> None:
    for X in (np.ones((records, 3)), np.arange(records, dtype=float)[:, None]):
        assert np.isfinite(fitted(X).codebook_).all()


def test_radii_fall_from_half_the_side_to_the_end() -> None:
    radii = BatchSOM(10, 20).radii()
    assert radii[0] == pytest.approx(10)
    assert radii[-1] == pytest.approx(0.7)
    assert (np.diff(radii) < 0).all()
    assert BatchSOM(10, 20, passes=1).radii().tolist() == [0.7]


@pytest.mark.parametrize(
    ("X", "settings", "message"),
    [
        ([[np.nan]], {}, "X must be finite"),
        ([["a"]], {}, "X must hold numbers"),
        ([[1e30]], {}, "squares exceed float32"),
        ([[1.0]], {"dtype": "int8"}, "dtype must be"),
        ([[1.0]], {"passes": 0}, "passes and end_radius"),
    ],
)
def test_bad_input_is_refused_by_name(X: Points, settings: dict[str, object], message: str) -> None:
    with pytest.raises(DataRefused, match=message):
        fitted(X, **settings)


def test_few_units_and_many_columns_take_little_memory() -> None:
    tracemalloc.start()
    assign_units(np.zeros((50, 1000)), np.zeros((2, 1000)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


def test_ties_go_to_the_lowest_unit() -> None:
    assert assign_units(np.zeros((3, 2)), np.zeros((4, 2))).tolist() == [0, 0, 0]
