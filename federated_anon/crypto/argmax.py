"""Who has the largest number, without the numbers: an argmax over shares, for many questions at once.

Every holder's number is 32 bits, shared by exclusive or among all holders (GMW: Goldreich, Micali and Wigderson 1987,
How to play any mental game, STOC). Exclusive or and negation are local; a layer of AND gates costs one exchange
and one dealt triple per gate (Beaver 1991, Efficient multiparty protocols using circuit randomization, CRYPTO). All
pairs of holders are compared at once, by a tree over the bits, and a holder wins if it beats all others: 6 layers and
log2(holders - 1) more. A holder beats those after it in the roster also with an equal number.

Bits lie in bytes, one bit per question: arrays end in (questions / 8).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Labels, Weights
from federated_anon.crypto.sums import Circle, keystream
from federated_anon.errors import MessageRefused

Bits: TypeAlias = NDArray[np.uint8]
WIDTH = 32


@dataclass(frozen=True, slots=True)
class Gates:
    """The inputs of one layer of AND gates, as one holder's shares: (gates, bytes) each."""

    left: Bits
    right: Bits


Circuit = Generator[Gates, Bits, Bits]


def planes(gains: Weights) -> Bits:
    """(32, bytes): numbers as bits that compare like them, the highest first; not-a-number is the lowest of all."""
    single = np.asarray(gains, dtype=np.float32) + np.float32(0)
    word = np.where(np.isnan(single), np.float32(-np.inf), single).astype(np.float32).view(np.uint32)
    rising = np.where(word >> np.uint32(31), ~word, word | np.uint32(1 << 31))
    bits = np.unpackbits(rising.astype(">u4").view(np.uint8).reshape(-1, 4), axis=1)
    return np.packbits(bits.T, axis=1)


def size_of(questions: int) -> int:
    """Bytes of one bit per question."""
    return (questions + 7) // 8


def shared_inputs(own: Bits, circle: Circle, label: str) -> Bits:
    """(holders, 32, bytes): this holder's shares of everyone's bits; nothing needs to be sent for them."""
    shares = np.zeros((len(circle.holders), *own.shape), dtype=np.uint8)
    shares[circle.holders.index(circle.name)] = own
    for place, partner in enumerate(circle.holders):
        if partner != circle.name:
            shares[place] = _pad(circle, partner, own.shape, "argmax input", partner, label)
            mask = _pad(circle, partner, own.shape, "argmax input", circle.name, label)
            shares[circle.holders.index(circle.name)] ^= mask
    return shares


def zero_shares(shape: tuple[int, ...], circle: Circle, label: str) -> Bits:
    """Shares of zero that only holders can compute.

    Opened as it stands, a result's shares would tell the dealer, who knows the triples, the inputs of the last gates.
    """
    share = np.zeros(shape, dtype=np.uint8)
    for partner in circle.holders:
        if partner != circle.name:
            share ^= _pad(circle, partner, shape, "argmax result", label)
    return share


def _pad(circle: Circle, partner: str, shape: tuple[int, ...], *label: str) -> Bits:
    size = int(np.prod(shape))
    return circle.stream(partner, -(-size // 8), *label).view(np.uint8)[:size].reshape(shape)


def circuit(shares: Bits, is_first: bool) -> Circuit:
    """Yields the inputs of each layer of AND gates, is sent its outputs, and returns (holders, bytes): who wins.

    ``shares`` is (holders, 32, bytes); the first holder of the roster negates for all.
    """
    flip = np.uint8(255 if is_first else 0)
    pairs = list(combinations(range(len(shares)), 2))
    earlier, later = shares[[i for i, _ in pairs]], shares[[j for _, j in pairs]]
    more = (yield _gates(later, earlier ^ flip)).reshape(later.shape)
    same = later ^ earlier ^ flip
    while same.shape[1] > 1:
        upper, lower = slice(0, None, 2), slice(1, None, 2)
        out = yield _gates(
            np.concatenate([same[:, upper]] * 2, axis=1), np.concatenate([more[:, lower], same[:, lower]], axis=1)
        )
        first, second = np.split(out.reshape(len(pairs), -1, shares.shape[2]), 2, axis=1)
        more, same = more[:, upper] ^ first, second
    beaten = {pair: more[place, 0] for place, pair in enumerate(pairs)}
    wins = np.stack(
        [
            np.stack([beaten[i, j] ^ flip if i < j else beaten[j, i] for j in range(len(shares)) if j != i])
            for i in range(len(shares))
        ]
    )
    while (width := wins.shape[1]) > 1:
        half = width // 2
        out = yield _gates(wins[:, :half], wins[:, half : 2 * half])
        wins = np.concatenate([out.reshape(len(shares), half, -1), wins[:, 2 * half :]], axis=1)
    return wins[:, 0]


def _gates(left: Bits, right: Bits) -> Gates:
    size = left.shape[-1]
    return Gates(left.reshape(_rows(left), size), right.reshape(_rows(right), size))


def _rows(array: Bits) -> int:
    return int(np.prod(array.shape[:-1]))


@cache
def layers(holders: int) -> tuple[int, ...]:
    """AND gates per question in each layer."""
    running = circuit(np.zeros((holders, WIDTH, 1), dtype=np.uint8), True)
    widths: list[int] = []
    try:
        gates = next(running)
        while True:
            widths.append(len(gates.left))
            gates = running.send(np.zeros_like(gates.left))
    except StopIteration:
        return tuple(widths)


@dataclass(frozen=True, slots=True)
class Triples:
    """One holder's shares of random bits a, b and of c = a and b: (gates, bytes) each."""

    a: Bits
    b: Bits
    c: Bits

    @classmethod
    def drawn(cls, seed: bytes, gates: int, size: int) -> Triples:
        """The shares behind a seed; the first holder's c is not drawn but dealt."""
        stream = keystream(seed, -(-3 * gates * size // 8)).view(np.uint8)[: 3 * gates * size]
        return cls(*stream.reshape(3, gates, size))

    def hidden(self, gates: Gates) -> bytes:
        """The inputs under a and b: what is told to all other holders."""
        return (gates.left ^ self.a).tobytes() + (gates.right ^ self.b).tobytes()

    def outputs(self, told: Sequence[bytes], is_first: bool) -> Bits:
        """This holder's shares of the gates' outputs, once everyone's hidden inputs are known."""
        if any(len(one) != 2 * self.a.size for one in told):
            raise MessageRefused("a holder told more or fewer bits than the layer has")
        opened = np.bitwise_xor.reduce([np.frombuffer(one, dtype=np.uint8) for one in told])
        left, right = opened.reshape(2, *self.a.shape)
        own = self.c ^ (left & self.b) ^ (right & self.a)
        return own ^ (left & right) if is_first else own


def correction(seeds: Sequence[bytes], gates: int, size: int) -> bytes:
    """The dealer's part: the first holder's share of c that makes all shares of a layer fit."""
    drawn = [Triples.drawn(seed, gates, size) for seed in seeds]
    a, b = np.bitwise_xor.reduce([one.a for one in drawn]), np.bitwise_xor.reduce([one.b for one in drawn])
    return np.bitwise_xor.reduce([a & b, *(one.c for one in drawn[1:])]).tobytes()


def winners_of(shares: Sequence[bytes], questions: int) -> Labels:
    """(questions,): the winner's place in the roster, from all holders' opened shares; exactly one wins each."""
    size, holders = size_of(questions), len(shares)
    if any(len(one) != holders * size for one in shares):
        raise MessageRefused("a share of the result has not one bit per holder and group")
    opened = np.bitwise_xor.reduce([np.frombuffer(one, dtype=np.uint8) for one in shares]).reshape(holders, size)
    bits = np.unpackbits(opened, axis=1)[:, :questions]
    if (bits.sum(axis=0) != 1).any():
        raise MessageRefused("the holders' shares name no winner, or more than one")
    return np.argmax(bits, axis=0)
