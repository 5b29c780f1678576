"""What a holder can check of its service before it serves: certificates, key, pin, port."""

from __future__ import annotations

import datetime
import socket
from collections.abc import Iterator

from federated_anon.addresses import host_and_port
from federated_anon.crypto.certificates import Certificate
from federated_anon.errors import StorageFailed
from federated_anon.findings import Finding
from nodes.service_settings import ServiceSettings, service_faults

SOON = datetime.timedelta(days=14)


def examine_service(name: str, settings: ServiceSettings | None) -> Iterator[Finding]:
    """Findings about the ``[service]`` of a holder; none if it has no such section."""
    if settings is None:
        return
    now = datetime.datetime.now(datetime.UTC)
    faults = service_faults(name, settings, now)
    yield from (Finding(False, name, "service", fault) for fault in faults)
    if not faults:
        yield _validity(name, Certificate.load(settings.files.certificate), now)
    yield _pin(name, settings)
    yield _port(name, settings.address)


def _validity(name: str, found: Certificate, now: datetime.datetime) -> Finding:
    """How long a certificate is still good for."""
    text = f"good until {found.until:%Y-%m-%d}, fingerprint {found.fingerprint}"
    soon = found.until - now < SOON
    return Finding(
        not soon, name, "certificate", f"{text}: renew it now, it ends within {SOON.days} days" if soon else text
    )


def _pin(name: str, settings: ServiceSettings) -> Finding:
    if settings.pin is None:
        text = f"any certificate of the authority that names '{settings.coordinator}' is let in; "
        return Finding(True, name, "coordinator", text + "coordinator_certificate pins a single one")
    try:
        return Finding(
            True, name, "coordinator", f"only fingerprint {Certificate.load(settings.pin).fingerprint} is let in"
        )
    except StorageFailed as error:
        return Finding(False, name, "coordinator", str(error))


def _port(name: str, address: str) -> Finding:
    """Whether the service could listen; one that already does is told apart from a stranger by its owner."""
    host, port = host_and_port(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as door:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            door.bind((host, port))
    except OSError as error:
        text = f"cannot listen on {address}: {error.strerror or error}; if the service runs already, that is why"
        return Finding(False, name, "port", text)
    return Finding(True, name, "port", f"{address} is free")
