"""What a check-up before a study finds: one value for every side that looks."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: whose it is, is it in order, and if not, what to do."""

    ok: bool
    holder: str
    subject: str
    text: str

    def as_dict(self) -> dict[str, Any]:
        """The finding as plain data."""
        return asdict(self)
