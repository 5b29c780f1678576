import numpy as np
import pytest
from sklearn.metrics import davies_bouldin_score

from federated_anon.errors import DataRefused
from federated_anon.som import davies_bouldin


@pytest.mark.parametrize("groups", [2, 7, 300])
def test_group_means_give_the_index_of_scikit_learn(groups: int) -> None:
    rng = np.random.default_rng(groups)
    X, labels = rng.standard_normal((900, 3)), np.arange(900) % groups
    assert davies_bouldin(X, labels) == pytest.approx(davies_bouldin_score(X, labels), rel=1e-10)


def test_prototypes_as_centres_follow_the_formula() -> None:
    X = np.array([[0.0], [2.0], [10.0], [13.0]])
    labels, codebook = np.array([0, 0, 2, 2]), np.array([[0.0], [99.0], [11.0]])
    spread = (0 + 2) / 2 + (1 + 2) / 2
    assert davies_bouldin(X, labels, codebook) == pytest.approx(spread / 11)


def test_collapsed_maps_score_infinity() -> None:
    X = np.array([[0.0], [2.0], [10.0]])
    assert davies_bouldin(X, np.array([0, 1, 1]), np.ones((2, 1))) == float("inf")
    assert davies_bouldin(X, np.zeros(3, dtype=int)) == float("inf")


def test_empty_units_do_not_count() -> None:
    rng = np.random.default_rng(0)
    X, labels = rng.standard_normal((50, 2)), rng.integers(3, size=50)
    assert davies_bouldin(X, labels * 100) == davies_bouldin(X, labels)


def test_bad_input_is_refused_by_name() -> None:
    with pytest.raises(DataRefused, match="labels must be 2 integers"):
        davies_bouldin(np.ones((2, 1)), np.array([0]))
    with pytest.raises(DataRefused, match="points must be finite"):
        davies_bouldin(np.full((2, 1), np.nan), np.array([0, 1]))
