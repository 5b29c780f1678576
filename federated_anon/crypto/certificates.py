"""X.509 certificates of parties: what a certificate says, and everything that is wrong with it.

A party is the first subject alternative name of its certificate, as the transport reports its peers.
"""

from __future__ import annotations

import datetime
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from federated_anon.errors import StorageFailed

USES = {ExtendedKeyUsageOID.CLIENT_AUTH: "client", ExtendedKeyUsageOID.SERVER_AUTH: "server"}


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate, and the rest of the chain that lies in the same file."""

    leaf: x509.Certificate
    chain: tuple[x509.Certificate, ...] = ()

    @classmethod
    def load(cls, path: Path) -> Certificate:
        """The certificate stored at ``path`` as PEM, with the chain behind it."""
        try:
            leaf, *chain = x509.load_pem_x509_certificates(path.read_bytes())
        except (OSError, ValueError) as error:
            raise StorageFailed(f"certificate '{path}' cannot be used ({type(error).__name__})") from None
        return cls(leaf, tuple(chain))

    @property
    def pem(self) -> bytes:
        """The leaf alone, as PEM."""
        return self.leaf.public_bytes(Encoding.PEM)

    @property
    def names(self) -> tuple[str, ...]:
        """Subject alternative names in their order."""
        try:
            found = self.leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            return ()
        return tuple(str(name.value) for name in found)

    @property
    def party(self) -> str:
        """The first name: who this is."""
        return self.names[0] if self.names else ""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the certificate, in hex, to be compared by another way."""
        return self.leaf.fingerprint(SHA256()).hex()

    @property
    def until(self) -> datetime.datetime:
        """The end of its validity."""
        return self.leaf.not_valid_after_utc

    @property
    def is_authority(self) -> bool:
        """Whether it may issue others."""
        try:
            return bool(self.leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca)
        except x509.ExtensionNotFound:
            return False

    def uses(self) -> set[Any]:
        """Its extended key usages; all of them when it names none."""
        try:
            return set(self.leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
        except x509.ExtensionNotFound:
            return set(USES)


def certificate_faults(found: Certificate, party: str, now: datetime.datetime) -> list[str]:
    """Everything that keeps a certificate from standing for ``party`` at ``now``, whoever issued it."""
    return list(_faults(found, party, now))


def _faults(found: Certificate, party: str, now: datetime.datetime) -> Iterator[str]:
    if found.party != party:
        yield f"the first name must be '{party}', it is '{found.party}'"
    if now > found.until:
        yield f"expired on {found.until:%Y-%m-%d %H:%M} UTC; get a new one"
    if now < found.leaf.not_valid_before_utc:
        yield f"not valid before {found.leaf.not_valid_before_utc:%Y-%m-%d %H:%M} UTC; is this clock right?"
    if found.is_authority:
        yield "belongs to an authority; a party's own certificate may not issue others"
    for use, word in USES.items():
        if use not in found.uses():
            yield f"its extended key usage lacks '{word}'"


def is_issued_by(found: Certificate, authority: Certificate) -> bool:
    """Whether one of the authority's certificates, or a link of the own chain, signed the leaf."""
    return any(_signed(found.leaf, issuer) for issuer in (authority.leaf, *authority.chain, *found.chain))


def _signed(leaf: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def key_faults(path: Path, found: Certificate) -> list[str]:
    """Everything wrong with the private key of a certificate: readable by others, unreadable, of another pair."""
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
        mode = stat.S_IMODE(path.stat().st_mode)
    except (OSError, ValueError, TypeError) as error:
        return [f"key '{path.name}' cannot be used ({type(error).__name__})"]
    faults = [f"key '{path.name}' has mode {mode:o}: chmod 600 it"] if mode & 0o077 else []
    if _raw(key.public_key()) != _raw(found.leaf.public_key()):
        faults.append(f"key '{path.name}' does not belong to the certificate")
    return faults


def _raw(key: Any) -> bytes:
    content: bytes = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return content


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """Where a party keeps its certificate, its key and the authority it trusts."""

    certificate: Path
    key: Path
    authority: Path


def own_faults(files: OwnFiles, party: str, now: datetime.datetime) -> list[str]:
    """Everything wrong with a party's own certificate, its key and its authority, file by file."""
    try:
        own, authority = Certificate.load(files.certificate), Certificate.load(files.authority)
    except StorageFailed as error:
        return [str(error)]
    faults = certificate_faults(own, party, now)
    if not is_issued_by(own, authority):
        faults.append(f"not issued by '{files.authority.name}'")
    return [f"'{files.certificate.name}': {fault}" for fault in faults] + key_faults(files.key, own)


def pin_faults(path: Path, party: str, now: datetime.datetime) -> list[str]:
    """Everything wrong with a partner's certificate that is pinned as a file."""
    try:
        pinned = Certificate.load(path)
    except StorageFailed as error:
        return [str(error)]
    return [f"'{path.name}': {fault}" for fault in certificate_faults(pinned, party, now)]
