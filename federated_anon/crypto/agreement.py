"""The key that only the holders share: X25519 between holders, relayed by a coordinator who cannot read it.

The first holder of the roster derives the study's key and wraps it for each partner. Every agreement key is
derived from its owner's identity and the study, so a holder that restarts has the same one again, and is signed by that
identity, which the partners have pinned: a relay that swaps keys is noticed.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from federated_anon.crypto.signing import Identity
from federated_anon.errors import Code, PolicyRefused

_NONCE = bytes(12)  # Each wrapping key encrypts one message only, so a fixed nonce is safe.


def derive(secret: bytes, *info: str) -> bytes:
    """32 bytes by HKDF-SHA256 (RFC 5869), bound to ``info``."""
    context = "\x1f".join(("federated-anon 1", *info)).encode()
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=context).derive(secret)


def agreement_key(identity: Identity, study: str) -> X25519PrivateKey:
    """This holder's X25519 key for one study."""
    return X25519PrivateKey.from_private_bytes(derive(identity.secret, "agreement", study))


def study_key(identity: Identity, study: str) -> bytes:
    """The key that the first holder of the roster hands to its partners."""
    return derive(identity.secret, "study key", study)


def statement(study: str, holder: str, agreement: bytes) -> bytes:
    """What a holder signs to bind its agreement key to its name and the study."""
    return b"\x1f".join((b"federated-anon agreement 1", study.encode(), holder.encode(), agreement))


def wrap(key: bytes, own: X25519PrivateKey, partner: bytes, study: str, holder: str) -> bytes:
    """``key`` encrypted for ``holder``, whose agreement key is ``partner``."""
    return ChaCha20Poly1305(_pair_key(own, partner, study, holder)).encrypt(_NONCE, key, study.encode())


def unwrap(wrapped: bytes, own: X25519PrivateKey, partner: bytes, study: str, holder: str) -> bytes:
    """The inverse of ``wrap`` at ``holder``; raises if anyone touched the wrapped key."""
    try:
        return ChaCha20Poly1305(_pair_key(own, partner, study, holder)).decrypt(_NONCE, wrapped, study.encode())
    except InvalidTag:
        raise PolicyRefused("the study's key was changed on its way", Code.ROSTER) from None


def pair_secret(own: X25519PrivateKey, partner: bytes) -> bytes:
    """What two holders share and nobody else can compute: input of key derivation only."""
    try:
        return own.exchange(X25519PublicKey.from_public_bytes(partner))
    except ValueError:
        raise PolicyRefused("a partner's agreement key is not a valid point", Code.ROSTER) from None


def _pair_key(own: X25519PrivateKey, partner: bytes, study: str, holder: str) -> bytes:
    return derive(pair_secret(own, partner), "wrap", study, holder)
