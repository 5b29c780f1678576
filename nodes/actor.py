"""The Ray actor around ``DataHolder``; the only file of this side that imports ray."""

from __future__ import annotations

import os
from pathlib import Path

import ray

from nodes.holder import DataHolder
from nodes.settings import load_settings


@ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=0)
class HolderActor:
    """A holder that Ray keeps alive; only bytes cross its boundary."""

    def __init__(self, settings: str, threads: int | None = None) -> None:
        if threads:  # Ray allows an actor one thread per reserved core; holders that take turns may use all of them.
            os.environ["OMP_NUM_THREADS"] = str(threads)
        self._holder = DataHolder(load_settings(Path(settings)))

    def answer(self, request: bytes) -> bytes:
        """One request in, one reply out."""
        return self._holder.answer(request)
