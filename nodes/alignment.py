"""The holder's steps of record alignment: keys between holders, pseudonyms, and the common people in common order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from federated_anon.crypto.agreement import agreement_key, statement, study_key, unwrap, wrap
from federated_anon.crypto.compact import packed
from federated_anon.crypto.pseudonyms import PSEUDONYM_BITS, pseudonyms, sorted_set
from federated_anon.crypto.signing import require_signature
from federated_anon.errors import Code, MessageRefused, PolicyRefused, VerificationFailed
from federated_anon.messages.payloads import Share
from federated_anon.study import Study
from nodes.identity import spelled
from nodes.settings import HolderSettings


@dataclass(frozen=True, slots=True)
class People:
    """A holder's table positions in the order of its pseudonyms, or of its blinded points."""

    rows: np.ndarray


@dataclass(frozen=True, slots=True)
class Roster:
    """The holders of a study with their agreement keys, all checked against the pinned identities."""

    holders: tuple[str, ...]
    agreements: tuple[bytes, ...]


def checked_roster(request: Share, study: Study, settings: HolderSettings) -> Roster:
    """Raise ``PolicyRefused`` unless every partner is the one that this holder has pinned, and signed its key."""
    if request.holders != study.holders:
        raise PolicyRefused("the roster is not the study's", Code.ROSTER)
    lists = (request.identities, request.agreements, request.signatures)
    if any(len(entries) != len(study.holders) for entries in lists):
        raise MessageRefused("the roster is incomplete")
    for name, identity, agreement, signature in zip(study.holders, *lists, strict=True):
        _require_partner(name, identity, agreement, signature, study, settings)
    return Roster(study.holders, request.agreements)


def _require_partner(
    name: str, identity: bytes, agreement: bytes, signature: bytes, study: Study, settings: HolderSettings
) -> None:
    pinned = settings.identity.public if name == settings.name else settings.partners.get(name)
    if pinned is None:
        raise PolicyRefused(f"[partners] has no key for '{name}'", Code.ROSTER)
    if identity != pinned:
        raise PolicyRefused(f"the key of '{name}' is not the pinned one", Code.ROSTER)
    try:
        require_signature(pinned, signature, statement(study.digest, name, agreement), f"keys of '{name}'")
    except VerificationFailed as error:
        raise PolicyRefused(str(error), Code.ROSTER) from None


def wrapped_keys(roster: Roster, study: Study, settings: HolderSettings) -> tuple[bytes, ...]:
    """The study's key for every holder of the roster, if this one is the first; nothing otherwise."""
    if settings.name != roster.holders[0]:
        return ()
    own, key = agreement_key(settings.identity, study.digest), study_key(settings.identity, study.digest)
    partners = zip(roster.holders, roster.agreements, strict=True)
    return tuple(wrap(key, own, public, study.digest, name) for name, public in partners)


def unwrapped_key(wrapped: bytes, roster: Roster, study: Study, settings: HolderSettings) -> bytes:
    """The study's key, as the first holder of the roster wrapped it for this one."""
    if settings.name == roster.holders[0]:
        return study_key(settings.identity, study.digest)
    own = agreement_key(settings.identity, study.digest)
    return unwrap(wrapped, own, roster.agreements[0], study.digest, settings.name)


def pseudonymised(ids: pa.Array, key: bytes) -> tuple[People, bytes]:
    """All rows under their pseudonyms, sorted, so that the file's own order does not leave; and those, packed."""
    order, values = sorted_set(pseudonyms(spelled(ids), key))
    return People(order), packed(values, PSEUDONYM_BITS)


def common_rows(
    people: People, positions: np.ndarray, study: Study, settings: HolderSettings, known: np.ndarray | None = None
) -> np.ndarray:
    """Table positions of the common people, in the common order; refuses positions that cannot be.

    ``known`` are the positions as partners signed them, where the way of alignment makes them known.
    """
    if len(positions) and (positions.min() < 0 or positions.max() >= len(people.rows)):
        raise MessageRefused("positions outside the table")
    if known is not None and not np.array_equal(positions, known):
        raise MessageRefused("positions that the partners did not trace")
    if known is None and (np.diff(positions) <= 0).any():
        raise MessageRefused("positions must rise: every person once, in pseudonym order")
    require_overlap(len(positions), study, settings)
    return people.rows[positions]


def require_overlap(count: int, study: Study, settings: HolderSettings) -> None:
    """Raise if fewer people are common than study, policy or k ask for."""
    least = max(settings.policy.minimum_overlap, study.alignment.minimum_overlap, study.privacy.k)
    if count < least:
        raise PolicyRefused(f"{count} people in common, at least {least} are needed", Code.OVERLAP)
