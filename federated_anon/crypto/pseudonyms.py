"""Keyed pseudonyms of ids, and the one permutation that all holders share."""

from __future__ import annotations

import hmac
from collections.abc import Iterable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from federated_anon.arrays import Labels
from federated_anon.crypto.agreement import derive
from federated_anon.errors import DataRefused

PSEUDONYM_BITS = 56
"""Two of n people share a pseudonym with probability below n^2 / 2^57: 7e-6 at a million, 7e-4 at ten million."""

_WORD = 8  # bytes


def pseudonyms(ids: Iterable[str], key: bytes, bits: int = PSEUDONYM_BITS) -> np.ndarray:
    """HMAC-SHA256 of each normalised id under a key derived from ``key``, cut to its first ``bits``: (n,) of uint64.

    Equal ids give equal pseudonyms: that is what aligns records, and what this option leaks.
    """
    secret = derive(key, "pseudonyms")
    joined = bytearray()
    for text in ids:
        joined += hmac.digest(secret, text.encode(), "sha256")[:_WORD]
    return np.frombuffer(joined, dtype=">u8").astype(np.uint64) >> np.uint64(8 * _WORD - bits)


def sorted_set(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The positions that put numbers in rising order, and the numbers so; two alike are refused.

    They would be two people under one name, and the name of this version of the study decides that, so another
    name of the study cures it.
    """
    order = np.argsort(values, kind="stable")
    rising = values[order]
    if (rising[1:] == rising[:-1]).any():
        raise DataRefused("two people have the same pseudonym by chance; give the study another name")
    return order, rising


def shuffle_within(labels: Labels, key: bytes) -> np.ndarray:
    """Record positions ordered by group, in an order inside each group that only the key's owners can know.

    Sort keys are a ChaCha20 keystream (RFC 8439) under a key derived from ``key``: the same at every holder, so the
    relation between columns of different holders survives, and no link to a person does.
    """
    cipher = Cipher(algorithms.ChaCha20(derive(key, "shuffle"), bytes(16)), mode=None).encryptor()
    draws = np.frombuffer(cipher.update(bytes(8 * len(labels))), dtype="<u8")
    return np.lexsort((draws, labels))
