"""Where a party listens: ``host:port``, with brackets around an IPv6 host."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

_FORM = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")


def checked_address(text: str) -> str:
    """``text``, if it is an address; ``ValueError`` otherwise."""
    found = _FORM.fullmatch(text)
    if not found or int(found[2]) > 65535:
        raise ValueError(f"must be host:port, such as holder.example:7430 or [::1]:7430, got '{text}'")
    return text


def host_and_port(address: str) -> tuple[str, int]:
    """The two parts of an address; an IPv6 host without its brackets."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


Address = Annotated[str, AfterValidator(checked_address)]
