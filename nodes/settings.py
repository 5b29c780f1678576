"""A holder's own settings file (TOML): its data, its columns with declared roles, its policy, whom it trusts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from federated_anon.columns import Column, Kind, Role, column_faults
from federated_anon.crypto.signing import Identity
from federated_anon.errors import SettingsRefused
from federated_anon.policy import Policy
from federated_anon.sections import Section, checked, read_toml
from federated_anon.study import Name
from nodes.service_settings import ServiceSection, ServiceSettings

PublicKey = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Holder(Section):
    name: Name
    identity: str
    ledger: str = "ledger"


class _Source(Section):
    path: str
    missing: tuple[str, ...] = ("", "NA", "NaN", "null", "?")


class _Column(Section):
    role: Role
    type: Kind = Kind.TEXT
    weight: float = Field(default=1.0, gt=0, le=1e6)
    levels: tuple[str, ...] = ()


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
    source: Path
    missing: tuple[str, ...]
    partners: Mapping[str, bytes]
    columns: tuple[Column, ...]
    policy: Policy
    service: ServiceSettings | None = None


def load_settings(path: Path | str) -> HolderSettings:
    """Read and check a settings file; paths in it are relative to its folder."""
    path = Path(path)
    file = checked(_File, read_toml(path), str(path))
    columns = tuple(Column(name, c.role, c.type, c.weight, c.levels) for name, c in file.columns.items())
    if faults := settings_faults(columns, file.policy):
        raise SettingsRefused(str(path), faults)
    base = path.resolve().parent
    return HolderSettings(
        name=file.holder.name,
        identity=Identity.load(base / file.holder.identity),
        identity_file=base / file.holder.identity,
        ledger=base / file.holder.ledger,
        source=base / file.source.path,
        missing=file.source.missing,
        partners={name: bytes.fromhex(key) for name, key in file.partners.items()},
        columns=columns,
        policy=file.policy,
        service=file.service.resolved(base) if file.service else None,
    )


def settings_faults(columns: tuple[Column, ...], policy: Policy) -> list[str]:
    """Everything wrong with the columns as declared, and with what the policy says of them."""
    faults = [fault for column in columns for fault in column_faults(column)]
    keys = [column.name for column in columns if column.role is Role.KEY]
    if len(keys) != 1:
        faults.append(f"[columns] exactly one column has the role 'key', got {len(keys)}")
    strangers = sorted(set(policy.never_send) - {column.name for column in columns})
    if strangers:
        faults.append(f"[policy] never_send names unknown columns: {', '.join(strangers)}")
    return faults
