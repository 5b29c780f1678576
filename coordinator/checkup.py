"""What the coordinator can check before a study across organisations: certificates, ways, names, versions, clocks."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from coordinator.credentials import Credentials, credential_faults, load_credentials, own_files
from coordinator.link import Link, reason
from federated_anon.crypto.certificates import Certificate
from federated_anon.errors import FederatedAnonError
from federated_anon.findings import Finding
from federated_anon.messages import COORDINATOR

PATIENCE = 5.0
CLOCKS = 60.0
"""Seconds that two clocks may differ: certificates and sequence numbers lean on them."""


def examine_links(addresses: Mapping[str, str], folder: Path) -> list[Finding]:
    """Everything the coordinator can find out from its certificate folder and by knocking at each service."""
    now = datetime.datetime.now(datetime.UTC)
    if faults := credential_faults(folder, addresses, now):
        return [Finding(False, COORDINATOR, "certificates", fault) for fault in faults]
    own = Certificate.load(own_files(folder).certificate)
    credentials = load_credentials(folder, addresses)
    text = f"'{own.party}' until {own.until:%Y-%m-%d}; holders pin fingerprint {own.fingerprint}"
    found = [Finding(True, COORDINATOR, "certificate", text)]
    for name, address in addresses.items():
        found += _knocked(name, address, credentials)
    return found


def _knocked(name: str, address: str, credentials: Credentials) -> Iterator[Finding]:
    link = Link(name, address, credentials)
    try:
        before = time.time()
        said = link.hello(PATIENCE)
        gap = said.time - (before + time.time()) / 2
    except pa.ArrowException as error:
        text = f"no hello from {address} ({reason(error)}): is it served, is the port open, do both sides trust"
        yield Finding(False, name, "way", f"{text} each other's certificates?")
        return
    except FederatedAnonError as error:
        yield Finding(False, name, "way", str(error))
        return
    finally:
        link.drop()
    pinned = "pinned" if name in credentials.pins else "trusted by its authority alone: put its .crt beside the own"
    yield Finding(True, name, "way", f"{address} answers, version {said.version}, certificate {pinned}")
    yield _clock(name, gap)


def _clock(name: str, gap: float) -> Finding:
    text = f"differs by {abs(gap):.1f} s"
    if abs(gap) > CLOCKS:
        return Finding(False, name, "clock", f"{text}, at most {CLOCKS:.0f} s are fine: set both by a time server")
    return Finding(True, name, "clock", text)
