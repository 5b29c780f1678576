import numpy as np
import pytest

from federated_anon.sealed.directions import leading_directions


@pytest.mark.parametrize("shape", [(50, 4), (5, 30), (200, 12), (6, 6)])
def test_directions_are_principal_axes_with_fixed_signs(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(shape[0])
    rows = rng.standard_normal(shape) * np.geomspace(8.0, 0.1, shape[1])
    rows -= rows.mean(axis=0)
    found = leading_directions(rows, 3)
    expected = np.linalg.svd(rows)[2][:3]
    assert np.abs((found * expected).sum(axis=1)) == pytest.approx(1.0, abs=1e-3)
    assert (found[np.arange(3), np.abs(found).argmax(axis=1)] > 0).all()
    assert leading_directions(-rows, 3) == pytest.approx(found)


def test_there_are_as_many_directions_as_the_rows_span() -> None:
    assert leading_directions(np.zeros((5, 3)), 3).shape == (0, 3)
    line = np.outer([-1.0, 0.0, 1.0], [3.0, 4.0])
    assert leading_directions(line, 3) == pytest.approx(np.array([[0.6, 0.8]]))
