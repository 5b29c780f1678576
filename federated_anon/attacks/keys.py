"""A dictionary of all ids against the pseudonyms: without the holders' key, and with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from federated_anon.attacks.attempt import Attempt, exactly
from federated_anon.attacks.scene import Scene
from federated_anon.crypto.compact import unpacked
from federated_anon.crypto.pseudonyms import PSEUDONYM_BITS, pseudonyms
from federated_anon.messages import payloads as p


def recognised(sent: bytes, ids: Sequence[str], key: bytes) -> int:
    """How many of the pseudonyms sent a dictionary of ids finds under ``key``."""
    return int(np.isin(unpacked(sent, PSEUDONYM_BITS), pseudonyms(ids, key)).sum())


def guessable_keys(study: str) -> Iterable[bytes]:
    """Keys that somebody tries who has none: none at all, zeros, the study's own name."""
    return (b"", bytes(32), study.encode(), bytes.fromhex(study))


def dictionary(scene: Scene) -> list[Attempt]:
    """The coordinator knows every id; then it also has the key from a holder, which is stated as a limit."""
    told = [one.pseudonyms for name in scene.study.holders for one in scene.told(p.Aligned, name)[:1]]
    told = [sent for sent in told if sent]  # Blinded points instead: there are no pseudonyms to recognise.
    if not told:
        return []
    sent, ids = told[-1], list(scene.ids)
    without = max(recognised(sent, ids, key) for key in guessable_keys(scene.study.digest)) / len(ids)
    with_key = recognised(sent, ids, scene.key) / len(ids)
    guess = 1 / len(ids)
    return [
        Attempt("dictionary", "coordinator", "every id, no key", "who a pseudonym is", exactly(without), guess, 0.0),
        Attempt(
            "dictionary-with-key",
            f"{scene.first} with coordinator",
            "every id and the holders' key",
            "who a pseudonym is",
            exactly(with_key),
            guess,
            None,
        ),
    ]
