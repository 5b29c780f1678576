"""Blocks of all holders -> one table; refuses a table that breaks its guarantee."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from coordinator.verification import Reached, require_promises
from federated_anon.arrays import Labels
from federated_anon.columns import Kind, Role
from federated_anon.crypto.agreement import derive
from federated_anon.crypto.pseudonyms import shuffle_within
from federated_anon.errors import DataRefused, MessageRefused
from federated_anon.messages.payloads import Block, Enrolled
from federated_anon.study import Study


@dataclass(frozen=True, slots=True)
class Published:
    """A column of the release: whose it is, and what it is."""

    name: str
    holder: str
    role: Role
    kind: Kind
    levels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Roster:
    """Who takes part, under which keys, and which columns they bring, in the order of the study."""

    identities: tuple[bytes, ...]
    agreements: tuple[bytes, ...]
    signatures: tuple[bytes, ...]
    columns: tuple[Published, ...]

    def published(self, holder: str) -> tuple[str, ...]:
        """The columns that one holder brings."""
        return tuple(column.name for column in self.columns if column.holder == holder)

    def named(self, *roles: Role) -> tuple[str, ...]:
        """All columns with one of these roles."""
        return tuple(column.name for column in self.columns if column.role in roles)


@dataclass(frozen=True, slots=True)
class Release:
    """The joint table, as it is published: verified, rows shuffled."""

    study: Study
    table: pa.Table
    columns: tuple[Published, ...]
    groups: int
    reached: Reached
    veiled: Mapping[str, int]

    def csv(self) -> bytes:
        """The table as CSV: the form that is digested, because equal tables give equal bytes."""
        return csv_bytes(self.table)

    def parquet(self) -> bytes:
        """The table as Parquet."""
        sink = pa.BufferOutputStream()
        pyarrow.parquet.write_table(self.table, sink)
        return sink.getvalue().to_pybytes()

    def files(self) -> dict[str, bytes]:
        """What is published, by file name."""
        return {"release.parquet": self.parquet(), "release.csv": self.csv()}

    def endorsement(self, report: Mapping[str, Any]) -> bytes:
        """What every holder signs: SHA-256 over study, columns, table and report."""
        return endorsement(self.study.digest, self.table, report)


def csv_bytes(table: pa.Table) -> bytes:
    """A table as CSV bytes; missing values are empty, empty text is quoted."""
    sink = io.BytesIO()
    pa.csv.write_csv(table, sink)
    return sink.getvalue()


def endorsement(study: str, table: pa.Table, report: Mapping[str, Any]) -> bytes:
    """SHA-256 over the study's digest, the table's types and CSV, and the report's canonical JSON."""
    digest = hashlib.sha256(study.encode())
    digest.update(json.dumps([[field.name, str(field.type)] for field in table.schema]).encode())
    digest.update(hashlib.sha256(csv_bytes(table)).digest())
    digest.update(json.dumps(report, sort_keys=True).encode())
    return digest.digest()


def roster_of(study: Study, replies: Mapping[str, Enrolled]) -> Roster:
    """The holders' enrolments, in the study's order; two columns of one name are refused."""
    ordered = [replies[name] for name in study.holders]
    columns = tuple(
        column for holder, reply in zip(study.holders, ordered, strict=True) for column in _published(holder, reply)
    )
    _require_distinct(columns)
    wished = {column.name for column in columns if column.role is Role.WISH}
    columns = tuple(column for column in columns if column.role is not Role.WISH)
    if study.privacy.personal and study.privacy.personal not in wished:
        raise DataRefused(f"no holder brings the wishes '{study.privacy.personal}': declare them with the role 'wish'")
    if not any(column.role is Role.QUASI for column in columns):
        raise DataRefused("no holder brings a quasi-identifier: there is nothing to anonymise")
    promised = study.privacy.l is not None or study.privacy.t is not None
    if promised and not any(column.role is Role.SENSITIVE for column in columns):
        raise DataRefused("l and t are about sensitive columns, and no holder brings one: declare one, or drop l and t")
    if study.labels and study.labels.column not in {column.name for column in columns}:
        raise DataRefused(f"no holder brings the labels '{study.labels.column}': is it kept or sensitive there?")
    return Roster(
        tuple(reply.identity for reply in ordered),
        tuple(reply.agreement for reply in ordered),
        tuple(reply.signature for reply in ordered),
        columns,
    )


def _published(holder: str, reply: Enrolled) -> list[Published]:
    try:
        rows = zip(reply.names, reply.roles, reply.kinds, reply.levels, strict=True)
        return [Published(n, holder, Role(r), Kind(k), tuple(json.loads(levels))) for n, r, k, levels in rows]
    except (ValueError, TypeError):
        raise MessageRefused(f"'{holder}' enrolled with columns that cannot be understood") from None


def _require_distinct(columns: tuple[Published, ...]) -> None:
    owners: dict[str, list[str]] = {}
    for column in columns:
        owners.setdefault(column.name, []).append(column.holder)
    twice = [f"'{name}' ({', '.join(who)})" for name, who in owners.items() if len(who) > 1]
    if twice:
        raise DataRefused(f"columns that two holders bring under one name: {'; '.join(twice)}; rename or drop one")


def assembled(study: Study, roster: Roster, groups: Labels, blocks: Mapping[str, Block], secret: bytes) -> Release:
    """Join the blocks, shuffle the rows, and check k, l and t on the joined table by independent code.

    The holders know each other's order inside groups, so the rows are shuffled once more under the coordinator's own
    ``secret``: otherwise a holder could tell its partners' sensitive values of its own people.
    """
    sizes = np.bincount(groups)
    rows = np.repeat(np.arange(len(sizes)), sizes)
    parts = [_expanded(name, blocks[name], rows, len(sizes)) for name in study.holders]
    joined = {name: column for part in parts for name, column in zip(part.column_names, part.columns, strict=True)}
    names = [column.name for column in roster.columns]
    if set(names) != set(joined):
        raise MessageRefused("the blocks do not hold the columns that were enrolled")
    order = shuffle_within(np.zeros(len(rows), dtype=np.int64), derive(secret, "rows", study.digest))
    table = pa.table({name: joined[name] for name in names}).take(pa.array(order)).combine_chunks()
    reached = require_promises(study, roster, table)
    veiled = {name: blocks[name].veiled for name in study.holders}
    return Release(study, table, roster.columns, len(sizes), reached, veiled)


def _expanded(name: str, block: Block, rows: Labels, groups: int) -> pa.Table:
    """One holder's columns, a row per record in the order of groups."""
    plain, shuffled = block.representatives, block.values
    if (plain.num_columns and plain.num_rows != groups) or (shuffled.num_columns and shuffled.num_rows != len(rows)):
        raise MessageRefused(f"the block of '{name}' does not fit the groups")
    wide = plain.take(pa.array(rows)) if plain.num_columns else plain
    for field, column in zip(shuffled.schema, shuffled.columns, strict=True):
        wide = wide.append_column(field, column) if wide.num_columns else pa.table({field.name: column})
    return wide
