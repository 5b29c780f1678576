"""Holders as Ray actors, local or on a cluster, found by name; the only file of this side that imports ray."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ray
from ray.exceptions import RayActorError

from federated_anon.errors import HolderLate

LIVENESS = 0.2  # Seconds between looks, so that an interruption is noticed at once.


class RayHolders:
    """Holders behind actor handles of one Ray cluster, which is one trust domain."""

    def __init__(self, actors: Mapping[str, Any]) -> None:
        self._actors = dict(actors)

    @classmethod
    def found(cls, names: Mapping[str, str], namespace: str) -> RayHolders:
        """Holders whose actors somebody else started: holder name -> actor name."""
        return cls({holder: ray.get_actor(actor, namespace=namespace) for holder, actor in names.items()})

    def ask(self, requests: Mapping[str, bytes], timeout: float) -> dict[str, bytes | None]:
        """Send to all, then gather whatever order they finish in."""
        pending = {self._actors[name].answer.remote(request): name for name, request in requests.items()}
        replies: dict[str, bytes | None] = {}
        waited = 0.0
        while pending:
            ready, _ = ray.wait(list(pending), num_returns=len(pending), timeout=LIVENESS)
            for reference in ready:
                replies[pending.pop(reference)] = _reply(reference)
            waited += LIVENESS
            if pending and waited > timeout:
                late = ", ".join(sorted(pending.values()))
                raise HolderLate(f"no answer within {timeout:.0f} s from: {late}; is its process running?")
        return {name: replies[name] for name in requests}


def _reply(reference: Any) -> bytes | None:
    try:
        return bytes(ray.get(reference))
    except RayActorError:
        return None
