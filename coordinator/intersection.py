"""ECDH alignment as a course of steps: the coordinator passes lists around the ring of holders, and positions back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coordinator.alignment import Overlap, matched
from coordinator.course import Ask, Course, everyone
from federated_anon.crypto.compact import WIDEST
from federated_anon.crypto.ladder import POINT_BYTES
from federated_anon.errors import MessageRefused
from federated_anon.messages import Step
from federated_anon.messages.relayed import Blind, Blinded, Trace
from federated_anon.study import Study

NONE = np.zeros(0, dtype=np.int32)


def blinded_lists(study: Study) -> Course[Mapping[str, Blinded]]:
    """Every list, by its owner, after all holders have raised it: as tags, signed by the last of them."""
    replies = yield Ask(Step.BLIND, everyone(study, Blind(0, NONE, b"", b"")))
    counts = np.array([len(replies[name].points) // POINT_BYTES for name in study.holders], dtype=np.int32)
    for number in range(1, len(study.holders)):
        before = _shifted(study, replies, -1)
        requests = {name: Blind(number, counts, one.points, one.signature) for name, one in before.items()}
        replies = yield Ask(Step.BLIND, requests, news=(f"ids blinded {number} of {len(study.holders) - 1} times",))
    return _shifted(study, replies, -1)


def traced_positions(study: Study, lists: Mapping[str, Blinded], overlap: Overlap) -> Course[Overlap]:
    """The common people as positions in each holder's own list; every holder undoes its own sorting."""
    tags = tuple(lists[name].points for name in study.holders)
    signatures = tuple(lists[name].signature for name in study.holders)
    replies = yield Ask(Step.TRACE, everyone(study, Trace(0, tags, signatures, NONE, b"")))
    for number in range(1, len(study.holders)):
        after = _shifted(study, replies, 1)
        if any(len(one.positions) != overlap.records for one in after.values()):
            raise MessageRefused("a holder traced more or fewer people than are common")
        requests = {name: Trace(number, (), (), one.positions, one.signature) for name, one in after.items()}
        replies = yield Ask(Step.TRACE, requests)
    return Overlap(overlap.records, {name: request.positions for name, request in requests.items()}, overlap.sizes)


def tagged(lists: Mapping[str, Blinded]) -> Overlap:
    """How many people are common; the positions are those in the lists of tags, which nobody can follow back alone."""
    return matched({name: one.points for name, one in lists.items()}, WIDEST)


def _shifted(study: Study, replies: Mapping[str, Any], steps: int) -> dict[str, Any]:
    """For each holder the reply of the one so many places on in the ring."""
    names = study.holders
    return {name: replies[names[(place + steps) % len(names)]] for place, name in enumerate(names)}
