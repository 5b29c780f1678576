"""A holder's own settings file (TOML): its data, its columns with declared roles, its policy, whom it trusts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from federated_anon.columns import Column, Kind, Role, column_faults
from federated_anon.crypto.signing import Identity
from federated_anon.drafts import UNDECIDED
from federated_anon.errors import SettingsRefused
from federated_anon.policy import Policy
from federated_anon.sections import Section, checked, read_toml
from federated_anon.study import Name
from nodes.database import Query, database_faults, resolved_database
from nodes.origin import Origin
from nodes.scratch import Scratch
from nodes.service_settings import ServiceSection, ServiceSettings
from nodes.source import MISSING

PublicKey = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Holder(Section):
    name: Name
    identity: str
    ledger: str = "ledger"


class _Source(Section):
    path: str = ""
    database: str = ""
    query: str = ""
    password_env: str = ""
    missing: tuple[str, ...] = MISSING
    scratch: str = ""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if bool(self.path) == bool(self.database):
            raise ValueError("exactly one of 'path' (files) and 'database' is needed")
        if bool(self.query) != bool(self.database):
            raise ValueError("'database' and 'query' are given together or not at all")
        if self.database and (faults := database_faults(self.database)):
            raise ValueError("; ".join(faults))
        return self

    def resolved(self, base: Path) -> Origin:
        """With paths relative to ``base``."""
        place = Query(resolved_database(self.database, base), self.query, self.password_env) if self.query else None
        scratch = Scratch(base / self.scratch if self.scratch else None)
        return Origin(place or base / self.path, self.missing, scratch)


class _Column(Section):
    role: Role
    type: Kind = Kind.TEXT
    weight: float = Field(default=1.0, gt=0, le=1e6)
    levels: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None


class _File(Section):
    holder: _Holder
    source: _Source
    partners: Mapping[Name, PublicKey] = {}
    columns: Mapping[str, _Column]
    policy: Policy = Policy()
    service: ServiceSection | None = None


@dataclass(frozen=True, slots=True)
class HolderSettings:
    """A holder's settings, checked: paths are resolved, the identity is loaded."""

    name: str
    identity: Identity
    identity_file: Path
    ledger: Path
    source: Origin
    partners: Mapping[str, bytes]
    columns: tuple[Column, ...]
    policy: Policy
    service: ServiceSettings | None = None


def load_settings(path: Path | str) -> HolderSettings:
    """Read and check a settings file; paths in it are relative to its folder."""
    path = Path(path)
    content = read_toml(path)
    if faults := role_faults(content.get("columns")):
        raise SettingsRefused(str(path), [*faults, *shape_faults(content, str(path))])
    file = checked(_File, content, str(path))
    columns = tuple(Column(name, c.role, c.type, c.weight, c.levels, c.bounds) for name, c in file.columns.items())
    if faults := settings_faults(columns, file.policy):
        raise SettingsRefused(str(path), faults)
    base = path.resolve().parent
    return HolderSettings(
        name=file.holder.name,
        identity=Identity.load(base / file.holder.identity),
        identity_file=base / file.holder.identity,
        ledger=base / file.holder.ledger,
        source=file.source.resolved(base),
        partners={name: bytes.fromhex(key) for name, key in file.partners.items()},
        columns=columns,
        policy=file.policy,
        service=file.service.resolved(base) if file.service else None,
    )


def role_faults(columns: Any) -> list[str]:
    """Columns whose role is still to be chosen, and a key that is not there or not the only one."""
    entries = columns if isinstance(columns, dict) else {}
    roles = {name: entry.get("role") for name, entry in entries.items() if isinstance(entry, dict)}
    undecided = [name for name, role in roles.items() if role == UNDECIDED]
    faults = []
    if undecided:
        known = ", ".join(role.value for role in Role)
        faults.append(f"[columns] choose a role for: {', '.join(undecided)} (roles: {known})")
    keys = [name for name, role in roles.items() if role == Role.KEY.value]
    if len(keys) > 1 or not (keys or undecided):
        told = f"these have: {', '.join(keys)}" if keys else "none has"
        faults.append(f"[columns] exactly one column has the role 'key', the one that names the person; {told}")
    return faults


def shape_faults(content: dict[str, Any], where: str) -> list[str]:
    """Every other fault of the file, with columns that wait for a role left out of account."""
    entries = content.get("columns")
    if isinstance(entries, dict):
        content = content | {"columns": {name: _decided(entry) for name, entry in entries.items()}}
    try:
        file = checked(_File, content, where)
    except SettingsRefused as error:
        return list(error.faults)
    columns = tuple(Column(name, c.role, c.type, c.weight, c.levels, c.bounds) for name, c in file.columns.items())
    return settings_faults(columns, file.policy)


def _decided(entry: Any) -> Any:
    """A column's entry; one that waits for its role is taken as an identifier, of which nothing is asked."""
    is_open = isinstance(entry, dict) and entry.get("role") == UNDECIDED
    return entry | {"role": Role.IDENTIFIER.value} if is_open else entry


def settings_faults(columns: tuple[Column, ...], policy: Policy) -> list[str]:
    """Everything wrong with the columns as declared, and with what the policy says of them."""
    faults = [fault for column in columns for fault in column_faults(column)]
    strangers = sorted(set(policy.never_send) - {column.name for column in columns})
    if strangers:
        faults.append(f"[policy] never_send names unknown columns: {', '.join(strangers)}")
    return faults
