r"""Integer noise without floating point: discrete Laplace and discrete Gaussian, sampled exactly.

Canonne, Kamath & Steinke (2020), The Discrete Gaussian for Differential Privacy, NeurIPS 33, algorithms 1 to 3. Every
coin is a comparison of integers, so no probability is rounded: samplers that transform floats give away the value below
their noise (Mironov 2012, ACM CCS, 650-661).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Coins:
    """Random integers from the key stream of ChaCha20 under a secret of 32 bytes: the same secret, the same coins."""

    def __init__(self, secret: bytes) -> None:
        self._stream = Cipher(ChaCha20(secret, bytes(16)), mode=None).encryptor()

    def words(self, count: int) -> NDArray[np.uint64]:
        """(count,) uniform words of 64 bits."""
        return np.frombuffer(self._stream.update(bytes(8 * count)), dtype="<u8")

    def below(self, bounds: Ints) -> Ints:
        """Uniform integers, each below its bound of at most 2^62; draws that would be uneven are drawn again."""
        drawn = np.empty(len(bounds), dtype=np.int64)
        left = np.arange(len(bounds))
        while len(left):
            words = (self.words(len(left)) >> np.uint64(1)).astype(np.int64)
            wanted = bounds[left]
            is_even = words < (np.int64(2**63 - 1) // wanted) * wanted
            drawn[left[is_even]] = words[is_even] % wanted[is_even]
            left = left[~is_even]
        return drawn

    def below_large(self, bounds: NDArray[Any]) -> NDArray[Any]:
        """The same for Python integers of any size, by as many words as the largest bound needs and one more."""
        return np.array([self._below(int(bound)) for bound in bounds], dtype=object)

    def _below(self, bound: int) -> int:
        size = bound.bit_length() // 8 + 9
        most = (1 << 8 * size) // bound * bound
        while (drawn := int.from_bytes(self._stream.update(bytes(size)), "little")) >= most:
            pass
        return drawn % bound


def discrete_laplace(scale: int, count: int, coins: Coins) -> Ints:
    r"""(count,) integers with :math:`P(x) \propto e^{-|x| / \text{scale}}`."""

    def draw(left: int) -> tuple[Ints, Flags]:
        low = coins.below(np.full(left, scale))
        is_taken = _falls_below_exponential(low, np.full(left, scale), coins.below)
        size = low + scale * _geometric(left, coins)
        sign = coins.below(np.full(left, 2))
        return np.where(sign == 1, -size, size), is_taken & ~((sign == 1) & (size == 0))

    return _until_taken(count, draw)


def discrete_gaussian(sigma: int, count: int, coins: Coins) -> Ints:
    r"""(count,) integers with :math:`P(x) \propto e^{-x^2 / 2 \sigma^2}`, by rejection from a discrete Laplace."""
    scale, bottom = sigma + 1, 2 * sigma**2 * (sigma + 1) ** 2

    def draw(left: int) -> tuple[Ints, Flags]:
        tried = discrete_laplace(scale, left, coins)
        gap = (np.abs(tried).astype(object) * scale - sigma**2) ** 2
        whole, rest = gap // bottom, gap % bottom
        bottoms = np.full(left, bottom, dtype=object)
        is_taken = _falls_below_exponential(rest, bottoms, coins.below_large)
        return tried, is_taken & _all_heads(whole.astype(np.int64), coins)

    return _until_taken(count, draw)


def zero_concentrated(epsilon: float, delta: float) -> float:
    r"""The :math:`\rho` that gives (epsilon, delta).

    .. math:: \rho = (\sqrt{\ln(1/\delta) + \epsilon} - \sqrt{\ln(1/\delta)})^2

    Bun & Steinke (2016), TCC, proposition 1.3.
    """
    spare = math.log(1 / delta)
    return (math.sqrt(spare + epsilon) - math.sqrt(spare)) ** 2


def laplace_scale(reach: int, columns: int, epsilon: float) -> int:
    """Scale of the noise on sums that one person moves by ``reach`` in each of some columns, which share epsilon."""
    return math.ceil(reach * columns / Fraction(epsilon))


def gaussian_sigma(reach: int, columns: int, epsilon: float, delta: float) -> int:
    """The same for a Gaussian, rounded up generously where floats were used to find it."""
    return math.ceil(reach * math.sqrt(columns / (2 * zero_concentrated(epsilon, delta))) * (1 + 1e-9))


def _until_taken(count: int, draw: Callable[[int], tuple[Ints, Flags]]) -> Ints:
    found = np.empty(count, dtype=np.int64)
    left = np.arange(count)
    while len(left):
        tried, is_taken = draw(len(left))
        found[left[is_taken]] = tried[is_taken]
        left = left[~is_taken]
    return found


def _falls_below_exponential(tops: Any, bottoms: Any, below: Callable[[Any], Any]) -> Flags:
    """Coins that show heads with probability exp(-top / bottom), for 0 <= top <= bottom."""
    turns = np.ones(len(tops), dtype=np.int64)
    left = np.arange(len(tops))
    while len(left):
        is_going = np.asarray(below(bottoms[left] * turns[left]) < tops[left], dtype=bool)
        left = left[is_going]
        turns[left] += 1
    return np.asarray(turns % 2 == 1)


def _geometric(count: int, coins: Coins) -> Ints:
    """How many times heads come before tails, with heads of probability 1/e."""
    heads = np.zeros(count, dtype=np.int64)
    left = np.arange(count)
    while len(left):
        one = np.ones(len(left), dtype=np.int64)
        left = left[_falls_below_exponential(one, one, coins.below)]
        heads[left] += 1
    return heads


def _all_heads(wanted: Ints, coins: Coins) -> Flags:
    """Coins that show heads with probability exp(-wanted)."""
    is_open, done = np.ones(len(wanted), dtype=bool), np.zeros(len(wanted), dtype=np.int64)
    while len(left := np.flatnonzero(is_open & (done < wanted))):
        one = np.ones(len(left), dtype=np.int64)
        is_open[left] = _falls_below_exponential(one, one, coins.below)
        done[left] += 1
    return is_open
