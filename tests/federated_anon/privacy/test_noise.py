"""Integer noise has the distribution that its name says, and depends on the secret alone."""

import math

import numpy as np
import pytest
from scipy import stats

from federated_anon.privacy.noise import (
    Coins,
    discrete_gaussian,
    discrete_laplace,
    gaussian_sigma,
    laplace_scale,
    zero_concentrated,
)

DRAWS = 20_000


def require_distribution(drawn: np.ndarray, weight) -> None:
    """Chi-square of counts against exact probabilities, the tails together."""
    edge = int(np.quantile(np.abs(drawn), 0.98))
    inner = np.arange(-edge, edge + 1)
    far = np.arange(-60 * (edge + 1), 60 * (edge + 1) + 1)
    chance = np.array([weight(x) for x in inner]) / sum(weight(x) for x in far)
    counts = np.array([(drawn == x).sum() for x in inner])
    observed, expected = [*counts, len(drawn) - counts.sum()], [*chance, 1 - chance.sum()]
    assert stats.chisquare(observed, np.array(expected) * len(drawn)).pvalue > 1e-4


@pytest.mark.parametrize("scale", [1, 2, 7])
def test_laplace_noise_has_its_distribution(scale):
    drawn = discrete_laplace(scale, DRAWS, Coins(bytes([scale]) * 32))
    require_distribution(drawn, lambda x: math.exp(-abs(x) / scale))


@pytest.mark.parametrize("sigma", [1, 3, 9])
def test_gaussian_noise_has_its_distribution(sigma):
    drawn = discrete_gaussian(sigma, DRAWS, Coins(bytes([sigma]) * 32))
    require_distribution(drawn, lambda x: math.exp(-(x**2) / (2 * sigma**2)))


def test_large_scales_have_their_spread():
    laplace = discrete_laplace(40_960, DRAWS, Coins(b"l" * 32))
    gauss = discrete_gaussian(50_000, 3000, Coins(b"g" * 32))
    assert np.abs(laplace).mean() == pytest.approx(40_960, rel=0.03)
    assert gauss.std() == pytest.approx(50_000, rel=0.06)
    assert abs(gauss.mean()) < 4 * 50_000 / math.sqrt(3000)


def test_the_same_secret_gives_the_same_noise_and_another_secret_another():
    first, again, other = (discrete_laplace(100, 50, Coins(key)) for key in (b"a" * 32, b"a" * 32, b"b" * 32))
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize("bound", [1, 3, 2**40 + 1, 2**62])
def test_uniform_integers_stay_below_their_bound(bound):
    drawn = Coins(b"u" * 32).below(np.full(2000, bound))
    assert drawn.min() >= 0
    assert drawn.max() < bound
    assert drawn.mean() == pytest.approx((bound - 1) / 2, rel=0.06)


def test_scales_follow_from_reach_columns_and_epsilon():
    assert laplace_scale(4096, 1, 1.0) == 4096
    assert laplace_scale(4096, 3, 0.5) == 3 * 2 * 4096
    rho = zero_concentrated(1.0, 1e-6)
    assert rho + 2 * math.sqrt(rho * math.log(1e6)) == pytest.approx(1.0)
    sigma = gaussian_sigma(4096, 4, 1.0, 1e-6)
    assert 4 * 4096**2 / (2 * sigma**2) <= rho
