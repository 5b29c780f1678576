"""A holder's table in a database: one read-only query by ADBC, batch by batch.

What a driver says is not passed on: it may quote values, the query or the connection. A server that is away or lost in
the middle of the query is asked again, since nothing has left the holder yet; anything else is refused at once.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import pyarrow as pa

from federated_anon.errors import DataRefused, SettingsRefused
from nodes.scratch import Scratch

PAUSES = (1.0, 2.0, 4.0)
"""Seconds before each further attempt when the server is away."""
LOOKED_AT = 2**16
"""Rows by which SQLite, which has no types of its own, tells a column's type."""
AWAY = re.compile(
    "refused|timeout|timed out|server closed|terminating connection|connection reset|could not receive|"
    "starting up|shutting down|lost|broken pipe|no connection to the server",
    re.IGNORECASE,
)
CURES = {
    "password authentication failed": "the server refused the role or its password; see password_env, or ~/.pgpass",
    "no password supplied": "the server wants a password: name its variable in [source] password_env, or use ~/.pgpass",
    "permission denied": "the role may not read what the query names; grant it SELECT",
    "no such table": "the query names a table that does not exist, or that the role cannot see",
    "unable to open": "there is no such file, or it cannot be read",
    "failed to open": "there is no such file, or it cannot be read",
    "Type mismatch": "a column mixes numbers and text; CAST it to one type in the query",
    "not a database": "the file is not a SQLite database",
}
STATES = {
    "42P01": "the query names a table that does not exist, or that the role cannot see",
    "42703": "the query names a column that does not exist",
    "42501": "the role may not read what the query names; grant it SELECT",
    "25006": "the query would write; it runs in a read-only transaction",
}


class _Away(Exception):
    """The server is not there, or not any more."""


@dataclass(frozen=True, slots=True)
class Query:
    """One query to one database; the password, if any, stands in an environment variable."""

    database: str
    sql: str
    password_env: str = ""

    def __str__(self) -> str:
        return f"database {self.database}"

    def fetched(self, scratch: Scratch) -> pa.Table:
        """All rows; raises ``DataRefused`` with a cure."""
        for pause in (*PAUSES, None):
            try:
                with self._cursor() as cursor:
                    return _kept(cursor, self.sql, scratch)
            except _Away:
                if pause is None:
                    break
                time.sleep(pause)
        told = f"asked {len(PAUSES) + 1} times; is it running, and is its address right?"
        raise DataRefused(f"{self}: the server is away, {told}")

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        """A cursor that cannot write; what goes wrong with it becomes ``_Away`` or ``DataRefused``."""
        driver = _driver("sqlite" if self._file else "postgresql")
        try:
            with driver.connect(self._address) as connection, connection.cursor() as cursor:
                if self._file:
                    cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(LOOKED_AT)})
                else:
                    cursor.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
                    connection.commit()
                yield cursor
        except (driver.Error, OSError, pa.ArrowException) as error:
            raise self._told(error) from None

    def _told(self, error: Exception) -> Exception:
        text, state = str(error), getattr(error, "sqlstate", None) or ""
        cure = STATES.get(state) or next((cure for mark, cure in CURES.items() if mark in text), "")
        if not cure and (state.startswith(("08", "57P")) or AWAY.search(text)):
            return _Away()
        return DataRefused(f"{self}: {cure or 'the query failed there; try it with the same role and another client'}")

    @property
    def _file(self) -> str:
        return self.database.removeprefix("sqlite:") if self.database.startswith("sqlite:") else ""

    @property
    def _address(self) -> str:
        if self._file:
            return f"file:{quote(self._file)}?mode=ro"
        if not self.password_env:
            return self.database
        password = os.environ.get(self.password_env)
        if password is None:
            raise SettingsRefused(str(self), [f"[source] the environment has no variable '{self.password_env}'"])
        parts = urlsplit(self.database)
        user, _, place = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=f"{user}:{quote(password, safe='')}@{place}"))


def database_faults(database: str) -> list[str]:
    """What is wrong with a database's address as it stands in a settings file."""
    if database.startswith("sqlite:"):
        return [] if database != "sqlite:" else ["'sqlite:' needs a file after it"]
    if not database.startswith(("postgresql://", "postgres://")):
        return ["database is 'sqlite:FILE' or 'postgresql://ROLE@HOST/NAME'"]
    parts = urlsplit(database)
    faults = []
    if parts.password or "password=" in parts.query:
        faults.append("a password does not belong in this file: name its variable in password_env, or use ~/.pgpass")
    if not parts.username:
        faults.append("the address needs a role: postgresql://ROLE@HOST/NAME")
    return faults


def resolved_database(database: str, base: Path) -> str:
    """The address with a SQLite file's path relative to ``base``."""
    return f"sqlite:{base / database.removeprefix('sqlite:')}" if database.startswith("sqlite:") else database


def _driver(name: str) -> Any:
    try:
        return import_module(f"adbc_driver_{name}.dbapi")
    except ImportError:
        cure = "pip install 'federated-anon[sql]'"
        raise DataRefused(f"a table in {name} needs a driver that is not installed: {cure}") from None


def _kept(cursor: Any, sql: str, scratch: Scratch) -> pa.Table:
    cursor.execute(sql)
    reader = cursor.fetch_record_batch()
    schema = pa.schema([pa.field(field.name, _storage(field.type)) for field in reader.schema])
    return scratch.keep_batches(schema, (_plain(batch, schema) for batch in reader))


def _storage(kind: pa.DataType) -> pa.DataType:
    """Types that only a database knows as what they are stored in: exact decimals travel as text."""
    return pa.string() if str(kind).startswith("extension<arrow.uuid") else getattr(kind, "storage_type", kind)


def _plain(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    arrays = [_plain_array(array, field.type) for array, field in zip(batch.columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)


def _plain_array(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type == kind:
        return array
    if pa.types.is_string(kind) and not pa.types.is_string(array.storage.type):
        return pa.array([None if value is None else str(value) for value in array.to_pylist()], kind)
    return array.storage
