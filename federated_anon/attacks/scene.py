"""A simulated study as its attackers find it: everything that crossed, and the truth to judge them by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from federated_anon.arrays import Labels, Points
from federated_anon.columns import Column, Role
from federated_anon.crypto.agreement import derive
from federated_anon.crypto.pseudonyms import shuffle_within
from federated_anon.encoding import Encoding
from federated_anon.messages import payloads as p
from federated_anon.privacy.kanonymity import joint_labels
from federated_anon.sealed import NestedPartition, SplitRules, apply
from federated_anon.side import Code, Correction, rebuild
from federated_anon.study import Study

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its reply, as payloads."""

    holder: str
    request: Any
    reply: Any


@dataclass(frozen=True)
class Scene:
    """All messages of a study, its release, both secrets, and the people behind the records.

    ``people`` holds the originals of all published columns, one row per record, in the order in which all parties
    count the common people; ``ids`` names them. Attackers get messages; the rest judges them.
    """

    study: Study
    shares: Mapping[str, tuple[Column, ...]]
    people: pa.Table
    ids: Sequence[str]
    exchanges: Sequence[Exchange]
    release: pa.Table
    key: bytes
    secret: bytes

    def asked(self, kind: type[T], holder: str) -> list[T]:
        """Requests of one kind to one holder, in their order."""
        return [one.request for one in self.exchanges if one.holder == holder and isinstance(one.request, kind)]

    def told(self, kind: type[T], holder: str) -> list[T]:
        """Replies of one kind from one holder, in their order."""
        return [one.reply for one in self.exchanges if one.holder == holder and isinstance(one.reply, kind)]

    @property
    def records(self) -> int:
        """How many people take part."""
        return self.people.num_rows

    @property
    def k(self) -> int:
        """What the study promises."""
        return self.study.privacy.k

    @property
    def first(self) -> str:
        """The first holder of the roster."""
        return self.study.holders[0]

    def named(self, *roles: Role) -> list[Column]:
        """All holders' columns with one of these roles, in the order of the roster."""
        return [column for name in self.study.holders for column in self.shares[name] if column.role in roles]

    @cached_property
    def groups(self) -> Labels:
        """(n,): the groups of the release."""
        return self.asked(p.MakeRelease, self.first)[-1].groups.astype(np.int64)

    @cached_property
    def row_of(self) -> Labels:
        """(n,): in which row of the release each person stands; both shuffles undone."""
        inside = shuffle_within(self.groups, self.key)
        outside = shuffle_within(np.zeros(self.records, dtype=np.int64), derive(self.secret, "rows", self.study.digest))
        rows = np.empty(self.records, dtype=np.int64)
        rows[inside[outside]] = np.arange(self.records)
        return rows

    @cached_property
    def encodings(self) -> dict[str, Encoding]:
        """How each holder's quasi-identifiers become points; whoever knows all originals can fit it."""
        return {
            name: Encoding.fit(self.people, [c for c in self.shares[name] if c.role is Role.QUASI])
            for name in self.study.holders
        }

    def encoded(self, table: pa.Table) -> Points:
        """(n, d): the quasi-identifiers of all holders as points."""
        return np.concatenate([self.encodings[name].encode(table) for name in self.study.holders], axis=1)

    @cached_property
    def points(self) -> Points:
        """(n, d): every person as an attacker knows them who has all raw quasi-identifiers."""
        return self.encoded(self.people)

    @cached_property
    def published(self) -> Points:
        """(n, d): the published representatives of each person's group."""
        return self.encoded(self.release.take(pa.array(self.row_of)))

    @cached_property
    def codes(self) -> list[Code]:
        """Open exposure: every holder's code, in the order of the roster."""
        told = [self.told(p.Coded, name)[-1] for name in self.study.holders]
        return [Code(self.k, one.cells, one.prototypes, one.coefficients, one.strength) for one in told]

    @cached_property
    def rebuilt(self) -> tuple[Points, ...]:
        """Open exposure: what the codes, corrected, say of every record, per holder."""
        told = [self.told(p.Corrected, name) for name in self.study.holders]
        found = [Correction(one[-1].coefficients, one[-1].strength) if one else None for one in told]
        later = [one if one is not None and len(one.coefficients) else None for one in found]
        return rebuild(self.codes, later if any(told) else ())

    @cached_property
    def leaves(self) -> Labels:
        """Sealed exposure: the groups after all splits, before any were joined."""
        rules, partition = SplitRules(self.k), NestedPartition.whole(self.records)
        for request in self.asked(p.Propose, self.first)[1:]:
            partition = apply(partition, request.winners, request.bits, rules)
        return partition.compact

    @cached_property
    def seen(self) -> Labels:
        """(n,): the classes of records that nothing the coordinator saw tells apart."""
        if self.study.exposure == "sealed":
            return joint_labels([self.leaves, self.groups], self.records)
        units = [one.units for name in self.study.holders for one in self.told(p.Mapped, name)]
        return joint_labels([*units, *(code.cells for code in self.codes), self.groups], self.records)

    @cached_property
    def view(self) -> Points:
        """(n, d): what the coordinator's whole view says of every record's values."""
        if self.study.exposure == "sealed":
            return self.published
        return np.concatenate(
            [
                points[:, : self.encodings[name].width]
                for name, points in zip(self.study.holders, self.rebuilt, strict=True)
            ],
            axis=1,
        )
