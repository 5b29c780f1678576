"""Secure sums: each holder's numbers under masks that cancel in the total, and only in the total of all holders.

Every pair of holders agrees on a key (X25519) that the coordinator never sees; the earlier of the roster adds the
keystream of that key to its numbers, the later one subtracts it, modulo 2^64. One masked vector alone is uniform, and
so is every partial sum: whoever wants one holder's numbers needs all its partners. Masks are bound to study, roster
and label, so a holder that starts again makes the same ones again; a label must never mask two different vectors.
Bonawitz et al. (2017), Practical Secure Aggregation, CCS, section 4, without its recovery of dropouts: with a
holder missing there is no total, since revealing its masks would expose a message that arrives late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray

from federated_anon.arrays import Weights
from federated_anon.crypto.agreement import derive, pair_secret
from federated_anon.errors import DataRefused, MessageRefused, PolicyRefused

Words: TypeAlias = NDArray[np.uint64]

FEWEST = 3
"""Holders a sum needs: with two, each computes the other's numbers from the total."""
FRACTION_BITS = 20
"""Binary places of a fixed-point number: totals are exact to 2^-20 per holder."""
_LARGEST = 2.0**62


@dataclass(frozen=True, slots=True)
class Circle:
    """The holders that add up, in the order of the roster, with their agreement keys, as one of them sees it."""

    study: str
    holders: tuple[str, ...]
    agreements: tuple[bytes, ...]
    own: X25519PrivateKey
    name: str

    def stream(self, partner: str, count: int, *label: str) -> Words:
        """(count,): numbers that only this holder and ``partner`` can compute, the same at both."""
        public = dict(zip(self.holders, self.agreements, strict=True))[partner]
        first, second = sorted((self.name, partner), key=self.holders.index)
        context = ("pair", self.study, "\x1e".join(self.holders), first, second, *label)
        return keystream(derive(pair_secret(self.own, public), *context), count)


def keystream(key: bytes, count: int) -> Words:
    """(count,): ChaCha20 (RFC 8439) under ``key`` as numbers modulo 2^64; one key, one use."""
    encryptor = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
    return np.frombuffer(encryptor.update(bytes(8 * count)), dtype="<u8")


def mask(values: Words, circle: Circle, *label: str) -> Words:
    """``values`` (n,) plus the masks of all partners later in the roster, minus those of the earlier ones.

    ``label`` names the step and the round; one label for one vector.
    """
    if len(circle.holders) < FEWEST:
        raise PolicyRefused(f"a secure sum needs at least {FEWEST} holders, the study has {len(circle.holders)}")
    place = circle.holders.index(circle.name)
    masked = np.array(values, dtype=np.uint64)
    for number, partner in enumerate(circle.holders):
        if number != place:
            stream = circle.stream(partner, len(masked), "sum", str(len(masked)), *label)
            masked = masked + stream if place < number else masked - stream
    return masked


def total(masked: Mapping[str, Words], holders: Sequence[str]) -> Words:
    """The sum modulo 2^64 of all holders' vectors; raises unless exactly the roster's are there, all of one length."""
    if missing := [name for name in holders if name not in masked]:
        raise MessageRefused(f"no total without all holders; missing: {', '.join(missing)}")
    if len(masked) != len(holders) or len({len(one) for one in masked.values()}) != 1:
        raise MessageRefused("the vectors of a sum must be one per holder, of one length")
    return np.sum([masked[name] for name in holders], axis=0, dtype=np.uint64)


def to_fixed(values: Weights, holders: int, bits: int = FRACTION_BITS) -> Words:
    """Numbers as fixed point modulo 2^64; ``DataRefused`` unless a total over ``holders`` stays in range."""
    scaled = np.rint(np.ldexp(np.asarray(values, dtype=float), bits))
    if not (np.abs(scaled) < _LARGEST / holders).all():
        raise DataRefused(f"numbers of a secure sum must be finite and below 2^{62 - bits} over the number of holders")
    return scaled.astype(np.int64).view(np.uint64)


def from_fixed(values: Words, bits: int = FRACTION_BITS) -> Weights:
    """The numbers behind a total of fixed-point numbers."""
    return np.ldexp(values.view(np.int64).astype(float), -bits)
