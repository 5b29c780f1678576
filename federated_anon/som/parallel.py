"""Work over fixed chunks: as many threads as are allowed, the same bytes on any number of them.

A chunk's result depends on the chunk alone, BLAS runs on one thread inside each of them, and results come
back in the order of the chunks; so the number of threads changes the time and nothing else.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import OpenBLASController, ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")

_gate = threading.Lock()
_limits: list[Any] = []
_here = threading.local()


def allowed_threads() -> int:
    """``OMP_NUM_THREADS`` where it is set (Ray sets it for its tasks), else the cores this process has."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, int(asked)) if asked.isdecimal() else len(os.sched_getaffinity(0))


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Keep BLAS on one thread; the limit falls when the last of several overlapping users leaves."""
    with _gate:
        if not _limits:
            _take_control()
        _limits.append(_controller().limit(limits=1) if not _limits else None)
    try:
        yield
    finally:
        with _gate:
            last = _limits[0] if len(_limits) == 1 else None
            _limits.pop()
            if last is not None:
                _take_control()
                last.restore_original_limits()


def _take_control() -> None:
    """Newer threadpoolctl obeys the first thread that ever set a limit, and no other; here any thread may."""
    if clear := getattr(OpenBLASController, "clear_controlling_thread", None):
        clear(force=True)


def map_chunks(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """``[work(item) for item in items]``, in order, on all allowed threads; inside a chunk, on its thread."""
    threads = 1 if getattr(_here, "busy", False) else min(allowed_threads(), len(items))
    with single_blas_thread():
        if threads <= 1:
            return [work(item) for item in items]
        with ThreadPoolExecutor(threads, initializer=_mark_busy) as pool:
            return list(pool.map(work, items))


def _mark_busy() -> None:
    _here.busy = True


def slices(total: int, size: int) -> list[slice]:
    """Consecutive slices of ``size``, the last one shorter, that cover ``total`` rows."""
    return [slice(start, min(start + size, total)) for start in range(0, total, size)]
