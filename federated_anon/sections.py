"""Settings files are checked once, whole, at the door: unknown keys and every other fault in one message."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from federated_anon.errors import SettingsRefused


class Section(BaseModel):
    """A part of a settings file: frozen, strictly typed, closed to keys it does not know."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


S = TypeVar("S", bound=Section)


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file, or ``SettingsRefused`` that says what is wrong with the file itself."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SettingsRefused(str(path), ["there is no such file"]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsRefused(str(path), [f"cannot be read: {error}"]) from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsRefused(str(path), [f"is not TOML: {error}"]) from None


def checked(model: type[S], content: dict[str, Any], where: str) -> S:
    """``content`` as a ``model``; all faults together in one ``SettingsRefused``."""
    try:
        return model.model_validate_json(json.dumps(content))
    except TypeError:
        raise SettingsRefused(where, ["dates and times are written as text here"]) from None
    except ValidationError as error:
        raise SettingsRefused(where, [describe(model, fault) for fault in error.errors()]) from None


def describe(model: type[BaseModel], fault: Any) -> str:
    """One fault as a line: where it is, what was expected, what came."""
    path = [str(part) for part in fault["loc"]]
    section, key = ".".join(path[:-1]), path[-1] if path else ""
    place = f"[{section}] " if section else ""
    if fault["type"] == "extra_forbidden":
        return f"{place}unknown key '{key}'; known keys: {', '.join(known_keys(model, path[:-1]))}"
    if fault["type"] == "missing":
        return f"{place}'{key}' is missing"
    if fault["type"] == "value_error":
        return f"[{'.'.join(path)}] {fault['ctx']['error']}" if path else str(fault["ctx"]["error"])
    text = fault["msg"].removeprefix("Input should be ").replace("greater than or equal to", "at least")
    text = text.replace("less than or equal to", "at most")
    return f"{place}{key} must be {text}, got {fault['input']!r}"


def known_keys(model: type[BaseModel], path: list[str]) -> list[str]:
    """The keys that are known at ``path`` below ``model``, sorted."""
    current: Any = model
    for part in path:
        current = inner_model(current, part)
    return sorted(current.model_fields)


def inner_model(model: type[BaseModel], part: str) -> type[BaseModel]:
    """The section behind one key; a mapping of sections leads to its values' section."""
    if part not in model.model_fields:
        return model
    annotation: Any = model.model_fields[part].annotation
    candidates = [annotation, *get_args(annotation)]
    return next(c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel))
