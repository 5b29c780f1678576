"""An authority and certificates for a trial: one command instead of a certificate infrastructure.

For a trial only: whoever runs it holds every party's private key for a moment, and the authority's for good. Between
organisations each party makes its own key and has its own authority sign it; the file names stay the same.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from federated_anon.errors import StorageFailed

LOOPBACK = ("localhost", "127.0.0.1", "::1")
SKEW = datetime.timedelta(minutes=5)
"""How far back validity begins, for clocks that are a little late."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class TrialAuthority:
    """A self-signed authority that issues certificates of parties."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls, name: str, now: datetime.datetime, days: int) -> TrialAuthority:
        """A fresh authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        builder = (
            _builder(name, name, key, now - SKEW, now + datetime.timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
        )
        return cls(builder.sign(key, SHA256()), key)

    @property
    def issued(self) -> Issued:
        """The authority's own certificate and key."""
        return Issued(self.certificate.public_bytes(Encoding.PEM), _private(self.key))

    def issue(self, party: str, hosts: Sequence[str], now: datetime.datetime, days: int) -> Issued:
        """A certificate for client and server whose first name is the party's; ``hosts`` are names or addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName(party), *map(_host, hosts)])
        uses = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH])
        issuer = self.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
        until = now + datetime.timedelta(days=days)
        builder = (
            _builder(party, str(issuer), key, min(now, until) - SKEW, until)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(names, critical=False)
            .add_extension(uses, critical=False)
        )
        return Issued(builder.sign(self.key, SHA256()).public_bytes(Encoding.PEM), _private(key))


def _builder(
    subject: str, issuer: str, key: ec.EllipticCurvePrivateKey, start: datetime.datetime, end: datetime.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_common_name(subject))
        .issuer_name(_common_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
    )


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def write_trial(folder: Path, coordinator: str, holders: Sequence[str], hosts: Sequence[str], days: int) -> None:
    """One folder per party with all it needs and pins, and the authority beside them.

    A holder's folder pins the coordinator's certificate, the coordinator's every holder's.
    """
    now = datetime.datetime.now(datetime.UTC)
    authority = TrialAuthority.create("federated-anon trial authority", now, days)
    issued = {party: authority.issue(party, (*LOOPBACK, *hosts), now, days) for party in (coordinator, *holders)}
    _make(folder)
    _write_pair(folder, "authority", authority.issued)
    for party in issued:
        partners = holders if party == coordinator else (coordinator,)
        _make(folder / party)
        write_new(folder / party / "authority.crt", authority.issued.certificate, 0o644)
        _write_pair(folder / party, party, issued[party])
        for partner in partners:
            write_new(folder / party / f"{partner}.crt", issued[partner].certificate, 0o644)


def _write_pair(folder: Path, name: str, issued: Issued) -> None:
    write_new(folder / f"{name}.crt", issued.certificate, 0o644)
    write_new(folder / f"{name}.key", issued.key, 0o600)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, mode=0o700)
    except OSError as error:
        raise StorageFailed(f"'{folder}' cannot be made: {error.strerror}; choose another folder") from None


def write_new(path: Path, content: bytes, mode: int) -> None:
    """Write a file with exactly this mode; never over an existing one."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except OSError as error:
        raise StorageFailed(f"'{path}' cannot be written: {error.strerror}") from None
    with os.fdopen(handle, "wb") as file:
        file.write(content)
