"""The ``[service]`` section of a holder's settings: where it listens, as whom, and whom it lets in."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from federated_anon.addresses import Address
from federated_anon.crypto.certificates import OwnFiles, own_faults, pin_faults
from federated_anon.errors import SettingsRefused
from federated_anon.messages import COORDINATOR
from federated_anon.sections import Section
from federated_anon.study import Name


class ServiceSection(Section):
    """The section as written; paths are relative to the settings file."""

    address: Address
    certificate: str
    key: str
    authority: str
    coordinator: Name = COORDINATOR
    coordinator_certificate: str | None = None
    requests_per_minute: int = Field(default=1200, ge=1, le=1_000_000)

    def resolved(self, base: Path) -> ServiceSettings:
        """The section with its paths below ``base``."""
        pin = self.coordinator_certificate
        return ServiceSettings(
            address=self.address,
            files=OwnFiles(base / self.certificate, base / self.key, base / self.authority),
            coordinator=self.coordinator,
            pin=None if pin is None else base / pin,
            requests_per_minute=self.requests_per_minute,
        )


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """How a holder serves: ``pin`` is the one certificate it accepts; without it, any of its authority's will do."""

    address: str
    files: OwnFiles
    coordinator: str
    pin: Path | None
    requests_per_minute: int


def service_faults(name: str, settings: ServiceSettings, now: datetime.datetime) -> list[str]:
    """Everything wrong with a holder's own files and the pinned ones."""
    faults = own_faults(settings.files, name, now)
    if settings.pin is not None:
        faults += pin_faults(settings.pin, settings.coordinator, now)
    return [f"[service] {fault}" for fault in faults]


def require_service(name: str, settings: ServiceSettings | None) -> ServiceSettings:
    """The settings of a service that can start; raises ``SettingsRefused`` with all faults."""
    if settings is None:
        raise SettingsRefused(f"holder '{name}'", ["[service] is missing: address, certificate, key, authority"])
    if faults := service_faults(name, settings, datetime.datetime.now(datetime.UTC)):
        raise SettingsRefused(f"holder '{name}'", faults)
    return settings
