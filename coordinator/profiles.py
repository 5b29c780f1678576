"""What holders told of their own columns, checked before it enters the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from coordinator.assembly import Roster
from federated_anon.columns import Role
from federated_anon.errors import MessageRefused
from federated_anon.messages.payloads import Evaluated
from federated_anon.profiles import Profile
from federated_anon.study import Study


def profiles_of(study: Study, roster: Roster, records: int, losses: Mapping[str, Evaluated]) -> dict[str, Any]:
    """Each holder's profile as plain data; None from a holder whose policy keeps it.

    Raises ``MessageRefused`` for one that is malformed, speaks of other columns, or counts fewer than k people.
    """
    return {
        name: _checked(name, study, roster, records, losses[name].profile) if losses[name].profile else None
        for name in study.holders
    }


def _checked(holder: str, study: Study, roster: Roster, records: int, text: str) -> dict[str, Any]:
    try:
        profile = Profile.model_validate_json(text)
    except ValidationError:
        raise MessageRefused(f"the profile of '{holder}' cannot be understood") from None
    quasi = [c.name for c in roster.columns if c.holder == holder and c.role is Role.QUASI]
    told = [column.name for column in profile.columns]
    related = profile.correlations.names if profile.correlations else ()
    if told != quasi or not set(related) <= set(quasi):
        raise MessageRefused(f"the profile of '{holder}' is not about its own columns")
    for column in profile.columns:
        sides, least = (column.before, column.after), min(column.before, default=0)
        if any(len(side) != len(column.labels) or sum(side) != records for side in sides):
            raise MessageRefused(f"the profile of '{holder}' does not count everybody once")
        if least < study.privacy.k and not (least == 0 and min(n for n in column.before if n) >= study.privacy.k):
            raise MessageRefused(f"the profile of '{holder}' counts fewer than {study.privacy.k} people")
    return profile.model_dump(mode="json")
