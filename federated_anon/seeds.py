"""Named random streams derived from a study's seed, so that no two draws ever share one."""

from __future__ import annotations

import hashlib

import numpy as np


def stream_seed(seed: int, *names: str) -> int:
    """A 128-bit seed for the stream that ``names`` describe: SHA-256 of the seed and the names."""
    text = "\x1f".join((str(seed), *names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")


def stream(seed: int, *names: str) -> np.random.Generator:
    """The generator of one named stream of a study."""
    return np.random.default_rng(stream_seed(seed, *names))
