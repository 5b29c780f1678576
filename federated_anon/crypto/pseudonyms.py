"""Keyed pseudonyms of ids, and the one permutation that all holders share."""

from __future__ import annotations

import hmac
from collections.abc import Iterable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from federated_anon.arrays import Labels
from federated_anon.crypto.agreement import derive

PSEUDONYM_BYTES = 16


def pseudonyms(ids: Iterable[str], key: bytes) -> np.ndarray:
    """HMAC-SHA256 of each normalised id under a key derived from ``key``, cut to 16 bytes: (n,) of dtype ``V16``.

    Equal ids give equal pseudonyms: that is what aligns records, and what this option leaks.
    """
    secret = derive(key, "pseudonyms")
    joined = b"".join(hmac.digest(secret, text.encode(), "sha256")[:PSEUDONYM_BYTES] for text in ids)
    return np.frombuffer(joined, dtype=f"V{PSEUDONYM_BYTES}")


def sort_order(values: np.ndarray) -> np.ndarray:
    """The positions that put pseudonyms in rising order of their bytes."""
    parts = values.view(">u8").reshape(-1, 2).astype(np.uint64)
    return np.lexsort((parts[:, 1], parts[:, 0]))


def shuffle_within(labels: Labels, key: bytes) -> np.ndarray:
    """Record positions ordered by group, in an order inside each group that only the key's owners can know.

    Sort keys are a ChaCha20 keystream (RFC 8439) under a key derived from ``key``: the same at every holder, so the
    relation between columns of different holders survives, and no link to a person does.
    """
    cipher = Cipher(algorithms.ChaCha20(derive(key, "shuffle"), bytes(16)), mode=None).encryptor()
    draws = np.frombuffer(cipher.update(bytes(8 * len(labels))), dtype="<u8")
    return np.lexsort((draws, labels))
