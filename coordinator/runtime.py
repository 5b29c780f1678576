"""Holders as Ray actors, local or on a cluster, found by name; the only file of this side that imports ray."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import ray
from ray.exceptions import ActorDiedError, RayActorError

from federated_anon.errors import HolderLate

GLANCE = 0.2  # Seconds between looks, so that an interruption is noticed at once.


class RayHolders:
    """Holders behind actor handles of one Ray cluster, which is one trust domain."""

    def __init__(self, actors: Mapping[str, Any]) -> None:
        self._actors = dict(actors)

    @classmethod
    def found(cls, names: Mapping[str, str], namespace: str) -> RayHolders:
        """Holders whose actors somebody else started: holder name -> actor name."""
        return cls({holder: ray.get_actor(actor, namespace=namespace) for holder, actor in names.items()})

    def ask(self, requests: Mapping[str, bytes], timeout: float) -> dict[str, bytes | None]:
        """Send to all, then gather in whatever order they finish; one whose actor died is waited for, then lost."""
        pending = {self._actors[name].answer.remote(request): name for name, request in requests.items()}
        replies = self._gathered(pending, timeout)
        for name, reply in replies.items():
            if reply is None:
                self._gathered({self._actors[name].__ray_ready__.remote(): name}, timeout, again=True)
        return {name: replies[name] for name in requests}

    def _gathered(self, pending: dict[Any, str], timeout: float, again: bool = False) -> dict[str, bytes | None]:
        """Results by name; with ``again``, a call that met an absent actor is repeated until it is back."""
        replies: dict[str, bytes | None] = {}
        until = time.monotonic() + timeout
        while pending:
            ready, _ = ray.wait(list(pending), num_returns=len(pending), timeout=GLANCE)
            for reference in ready:
                name = pending.pop(reference)
                replies[name], is_away = _result(reference)
                if is_away and again:
                    time.sleep(GLANCE)
                    pending[self._actors[name].__ray_ready__.remote()] = name
            if pending and time.monotonic() > until:
                late = ", ".join(sorted(set(pending.values())))
                raise HolderLate(
                    f"no answer within {timeout:.0f} s from: {late}; is its node up and its actor running?"
                )
        return replies


def _result(reference: Any) -> tuple[bytes | None, bool]:
    """A call's result if it was bytes, and whether it met an actor that is away and may come back."""
    try:
        value = ray.get(reference)
    except RayActorError as error:
        return None, not isinstance(error, ActorDiedError)
    return (bytes(value) if isinstance(value, bytes) else None), False
