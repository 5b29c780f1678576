"""Sealed exposure with maps: activations averaged over groups, and what a holder makes of its partners'."""

from __future__ import annotations

from dataclasses import dataclass

from federated_anon.messages.fields import IntMatrix, Ints


@dataclass(frozen=True, slots=True)
class Average:
    """Asks where the groups as they are lie on the holder's map."""

    round: int


@dataclass(frozen=True, slots=True)
class Averaged:
    """Per group, at least k records: the unit at the mean place of its records on the holder's map."""

    units: Ints


@dataclass(frozen=True, slots=True)
class Consult:
    """Partners' averages, one row each, groups as columns; the reply is a ``Candidate``."""

    round: int
    units: IntMatrix


@dataclass(frozen=True, slots=True)
class Adopt:
    """The gate's verdict on the candidate."""

    round: int
    keep: bool


@dataclass(frozen=True, slots=True)
class Adopted:
    """Whether the holder goes on with another map."""

    kept: bool
