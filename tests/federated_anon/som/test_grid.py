import numpy as np
import pytest

from federated_anon.errors import DataRefused
from federated_anon.som import Grid


@pytest.mark.parametrize(("records", "units"), [(100, 50), (1080, 164), (100_000, 1581), (1_000_000, 5000)])
def test_a_grid_for_records_is_nearly_square(records: int, units: int) -> None:
    grid = Grid.for_records(records)
    assert abs(grid.units - units) <= 0.05 * units
    assert 1 <= grid.cols / grid.rows <= 1.3


def test_a_grid_is_never_a_point() -> None:
    assert Grid.for_records(1) == Grid(2, 2)


def test_coordinates_count_row_by_row() -> None:
    assert Grid(2, 3).coordinates().tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]


@pytest.mark.parametrize("radius", [0.4, 1.0, 5.0])
def test_smoothing_is_the_product_with_the_kernel(radius: float) -> None:
    grid = Grid(4, 6)
    places = grid.coordinates()
    kernel = np.exp(-((places[:, None] - places) ** 2).sum(-1) / radius**2)
    values = np.random.default_rng(0).standard_normal((24, 3))
    np.testing.assert_allclose(grid.kernel(radius), kernel, rtol=1e-12)
    np.testing.assert_allclose(grid.smooth(values, radius), kernel @ values, rtol=1e-10)


def test_a_grid_without_units_is_refused() -> None:
    with pytest.raises(DataRefused, match="rows and cols"):
        Grid(0, 4)
