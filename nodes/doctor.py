"""What a holder can check before a study runs: settings, keys, data, pins, and its policy against the study."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from federated_anon.errors import FederatedAnonError
from federated_anon.ledger import released_partitions
from federated_anon.policy import require_permitted
from federated_anon.study import Study
from nodes.block import read_records
from nodes.settings import HolderSettings, load_settings


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: is it in order, and if not, what to do."""

    ok: bool
    subject: str
    text: str

    def as_dict(self) -> dict[str, Any]:
        """The finding as plain data."""
        return asdict(self)


def examine_holder(path: Path, study: Study | None = None) -> list[Finding]:
    """Everything that can be said of one holder from its own files."""
    try:
        settings = load_settings(path)
    except FederatedAnonError as error:
        return [Finding(False, f"settings {path}", str(error))]
    return [*_findings(settings, study), key_is_private(settings.identity_file)]


def _findings(settings: HolderSettings, study: Study | None) -> Iterator[Finding]:
    yield Finding(True, f"{settings.name}: settings", f"{len(settings.columns)} columns declared")
    yield Finding(True, f"{settings.name}: identity", f"partners pin {settings.identity.public.hex()}")
    yield _data(settings)
    if study is not None:
        yield _permitted(settings, study)
        yield _pins(settings, study)


def _data(settings: HolderSettings) -> Finding:
    def look() -> str:
        records = read_records(settings)
        before = released_partitions(settings.ledger, records.version, "partition")
        told = "; this version was released before: only the same groups can leave again" if before else ""
        return f"{records.table.num_rows} rows, ids unique, all columns as declared{told}"

    return _tried(f"{settings.name}: data", look)


def _permitted(settings: HolderSettings, study: Study) -> Finding:
    def look() -> str:
        columns = [column for column in settings.columns if column.name not in settings.policy.never_send]
        require_permitted(settings.policy, study, columns)
        return "the policy allows this study"

    return _tried(f"{settings.name}: policy", look)


def _pins(settings: HolderSettings, study: Study) -> Finding:
    absent = [name for name in study.holders if name != settings.name and name not in settings.partners]
    subject = f"{settings.name}: partners"
    if settings.name not in study.holders:
        return Finding(False, subject, f"'{settings.name}' is not a holder of the study: {', '.join(study.holders)}")
    if absent:
        return Finding(False, subject, f"pin the public key of: {', '.join(absent)} (under [partners])")
    return Finding(True, subject, "every partner's key is pinned")


def _tried(subject: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(True, subject, look())
    except FederatedAnonError as error:
        return Finding(False, subject, str(error))


def key_is_private(path: Path) -> Finding:
    """Only its owner may read an identity key."""
    mode = stat.S_IMODE(path.stat().st_mode)
    fine = not mode & 0o077
    return Finding(fine, f"key {path.name}", "readable by its owner alone" if fine else f"mode {mode:o}: chmod 600 it")
