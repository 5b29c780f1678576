from collections.abc import Callable
from typing import Any

import pytest

from federated_anon.microaggregation import compiled


def add_one(value: int) -> int:
    return value + 1


def test_loops_compile_where_no_folder_can_hold_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = compiled.njit

    def without_cache(cache: bool = False, **options: Any) -> Callable[..., Any]:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return whole(**options)  # type: ignore[no-any-return]

    monkeypatch.setattr(compiled, "njit", without_cache)
    assert compiled.compiled(add_one)(1) == 2
    assert compiled.vectorised(add_one)(2) == 3
