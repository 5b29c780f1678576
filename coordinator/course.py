"""What a course of steps is: it yields what to ask, is sent the replies, and returns a value."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from federated_anon.messages import Step
from federated_anon.study import Study

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask:
    """One step: a request per holder concerned, and what is new since the last one, for people to read."""

    step: Step
    requests: Mapping[str, Any]
    news: tuple[str, ...] = ()


Course = Generator[Ask, Mapping[str, Any], T]


def everyone(study: Study, payload: Any) -> dict[str, Any]:
    """The same request for all holders."""
    return dict.fromkeys(study.holders, payload)
