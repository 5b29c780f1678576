"""Ed25519 identities: who a party is, pinned by the others as a public key in hex."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from federated_anon.errors import StorageFailed, VerificationFailed


@dataclass(frozen=True, slots=True)
class Identity:
    """A party's Ed25519 private key."""

    key: Ed25519PrivateKey

    @classmethod
    def create(cls) -> Identity:
        """A fresh random identity."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def for_simulation(cls, seed: int, name: str) -> Identity:
        """An identity anyone can recompute from the seed: for simulations, where runs must repeat."""
        secret = hashlib.sha256(f"federated-anon simulation\x1f{seed}\x1f{name}".encode()).digest()
        return cls(Ed25519PrivateKey.from_private_bytes(secret))

    @classmethod
    def load(cls, path: Path) -> Identity:
        """The identity stored at ``path`` as PEM."""
        try:
            key = load_pem_private_key(path.read_bytes(), password=None)
        except (OSError, ValueError, TypeError) as error:
            raise StorageFailed(
                f"identity key '{path}' cannot be used ({type(error).__name__}); make one with 'federated-anon keys'"
            ) from None
        if not isinstance(key, Ed25519PrivateKey):
            raise StorageFailed(f"identity key '{path}' is not an Ed25519 key; make one with 'federated-anon keys'")
        return cls(key)

    def save(self, path: Path) -> None:
        """Write the key as PEM, readable by its owner alone; never over an existing file."""
        pem = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise StorageFailed(f"identity key '{path}' cannot be written: {error.strerror}") from None
        with os.fdopen(handle, "wb") as file:
            file.write(pem)

    @property
    def public(self) -> bytes:
        """The public key, 32 bytes."""
        return self.key.public_key().public_bytes_raw()

    @property
    def secret(self) -> bytes:
        """The private key, 32 bytes; input of key derivation at the holder only."""
        return self.key.private_bytes_raw()

    def sign(self, content: bytes) -> bytes:
        """Ed25519 signature, 64 bytes."""
        return self.key.sign(content)


def require_signature(public: bytes, signature: bytes, content: bytes, what: str) -> None:
    """Raise ``VerificationFailed`` unless ``signature`` is the owner's of ``public`` over ``content``."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, content)
    except (InvalidSignature, ValueError):
        raise VerificationFailed(f"{what}: the signature does not fit") from None
