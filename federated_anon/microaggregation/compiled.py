"""Machine code for inner loops, kept on disk where a folder allows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])

FREE_ORDER = {"reassoc", "contract", "nsz", "arcp"}


def compiled(function: Function) -> Function:
    """Compile at the first call, without the interpreter lock; every sum in the order it is written."""
    return _cached(function, fastmath=False)


def vectorised(function: Function) -> Function:
    """As ``compiled``, but sums over columns may be added up in vector lanes: not where exact ties matter."""
    return _cached(function, fastmath=FREE_ORDER)


def _cached(function: Function, fastmath: bool | set[str]) -> Function:
    try:
        return njit(cache=True, nogil=True, fastmath=fastmath)(function)
    except RuntimeError:  # Neither this folder nor the user's own can hold a cache.
        return njit(nogil=True, fastmath=fastmath)(function)
