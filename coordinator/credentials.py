"""The coordinator's certificate folder: its own certificate and key, the authority, and holders' pinned certificates.

``authority.crt``, ``coordinator.crt``, ``coordinator.key``, and ``<holder>.crt`` for every holder that is pinned.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from federated_anon.crypto.certificates import Certificate, OwnFiles, own_faults, pin_faults
from federated_anon.errors import SettingsRefused
from federated_anon.messages import COORDINATOR


@dataclass(frozen=True, slots=True)
class Credentials:
    """As whom the coordinator comes, and whom it trusts, as PEM."""

    certificate: bytes
    key: bytes
    authority: bytes
    pins: Mapping[str, bytes]

    def trusted(self, holder: str) -> bytes:
        """What a holder's certificate must be, or be issued by."""
        return self.pins.get(holder, self.authority)


def own_files(folder: Path) -> OwnFiles:
    """The coordinator's own files in ``folder``."""
    return OwnFiles(folder / f"{COORDINATOR}.crt", folder / f"{COORDINATOR}.key", folder / "authority.crt")


def pinned_files(folder: Path, holders: Iterable[str]) -> dict[str, Path]:
    """Files of the holders that are pinned."""
    return {name: path for name in holders if (path := folder / f"{name}.crt").exists()}


def credential_faults(folder: Path, holders: Iterable[str], now: datetime.datetime) -> list[str]:
    """Everything wrong with the folder; the coordinator's first name is up to its holders' settings."""
    files = own_files(folder)
    party = Certificate.load(files.certificate).party if files.certificate.is_file() else COORDINATOR
    pins = pinned_files(folder, holders)
    return own_faults(files, party, now) + [
        fault for name, path in pins.items() for fault in pin_faults(path, name, now)
    ]


def load_credentials(folder: Path, holders: Iterable[str]) -> Credentials:
    """The folder's content, checked; raises ``SettingsRefused`` with all faults."""
    names, files = list(holders), own_files(folder)
    if faults := credential_faults(folder, names, datetime.datetime.now(datetime.UTC)):
        raise SettingsRefused(f"certificates in '{folder}'", faults)
    return Credentials(
        certificate=files.certificate.read_bytes(),
        key=files.key.read_bytes(),
        authority=files.authority.read_bytes(),
        pins={name: path.read_bytes() for name, path in pinned_files(folder, names).items()},
    )
