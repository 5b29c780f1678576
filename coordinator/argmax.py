"""The winners of a level by secure argmax: the coordinator deals triples, passes sealed messages on, sees who wins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordinator.course import Ask, Course
from federated_anon.arrays import Labels
from federated_anon.crypto.agreement import derive
from federated_anon.crypto.argmax import correction, layers, size_of, winners_of
from federated_anon.errors import MessageRefused
from federated_anon.messages import Step
from federated_anon.messages.relayed import Compare, Compared
from federated_anon.study import Study


def last_round(study: Study, level: int) -> int:
    """The round of comparisons that tells the winners of a level."""
    return (level + 1) * (len(layers(len(study.holders))) + 1) - 1


def secure_winners(study: Study, level: int, groups: int, secret: bytes) -> Course[Labels]:
    """(groups,): who gains most in each open group; nothing else about the gains comes to light.

    The coordinator deals honestly and sides with no holder: with one it could open every gain.
    """
    widths = layers(len(study.holders))
    first = last_round(study, level) - len(widths)
    partners: tuple[bytes, ...] = ()
    for layer, gates in enumerate(widths):
        requests = _dealt(study, first + layer, gates, size_of(groups), partners, secret)
        replies = yield Ask(Step.COMPARE, requests)
        partners = tuple(replies[name].content for name in study.holders)
    closing = Compare(first + len(widths), b"", b"", partners)
    return opened_winners(study, (yield Ask(Step.COMPARE, dict.fromkeys(study.holders, closing))), groups)


def opened_winners(study: Study, replies: Mapping[str, Compared], groups: int) -> Labels:
    """The winners behind the shares of all holders."""
    if any(replies[name].groups != groups for name in study.holders):
        raise MessageRefused(f"a holder compared other than {groups} groups")
    return winners_of([replies[name].content for name in study.holders], groups)


def _dealt(
    study: Study, number: int, gates: int, size: int, partners: tuple[bytes, ...], secret: bytes
) -> dict[str, Any]:
    """One layer's requests: a seed each, from the coordinator's own secret, and the first holder's correction."""
    seeds = {name: derive(secret, "triples", study.digest, str(number), name) for name in study.holders}
    fitting = correction(list(seeds.values()), gates, size)
    first = study.holders[0]
    return {name: Compare(number, seed, fitting if name == first else b"", partners) for name, seed in seeds.items()}
