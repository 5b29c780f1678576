from __future__ import annotations

import logging
import sqlite3
import threading
import time

import pytest

from federated_anon.columns import Column, Kind, Role
from federated_anon.errors import DataRefused, SettingsRefused
from nodes import database
from nodes.database import Query, database_faults
from nodes.origin import Origin
from nodes.scratch import Scratch
from tests.postgres import running_server

COLUMNS = (
    Column("id", Role.KEY, Kind.TEXT),
    Column("age", Role.QUASI, Kind.INTEGER),
    Column("pay", Role.QUASI, Kind.NUMBER),
    Column("born", Role.QUASI, Kind.DATE),
    Column("well", Role.QUASI, Kind.BOOLEAN),
    Column("town", Role.QUASI, Kind.CATEGORY),
)
QUERY = "SELECT id, age, pay, born, well, town FROM people"
PASSWORD = "s3cret & #slash/"


@pytest.fixture(scope="module")
def server():
    with running_server() as one:
        one.execute(
            "CREATE TABLE people AS SELECT 'p' || i AS id, i % 90 AS age, (i * 1.25)::numeric(12, 2) AS pay, "
            "date '1950-01-01' + i AS born, i % 2 = 0 AS well, CASE WHEN i % 3 > 0 THEN 'town' || i % 7 END AS town, "
            "gen_random_uuid() AS uid FROM generate_series(1, 3000) i",
            f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'",
            "GRANT SELECT ON people TO reader",
            "CREATE TABLE hidden (id text)",
        )
        yield one


@pytest.fixture
def quick(monkeypatch):
    """No long pauses between attempts; passwords are where settings say."""
    monkeypatch.setattr(database, "PAUSES", (0.3, 0.6, 1.2))
    monkeypatch.setenv("READER_PASSWORD", PASSWORD)
    monkeypatch.delenv("PGPASSWORD", raising=False)


def reader(server, sql=QUERY):
    return Query(server.address("reader"), sql, "READER_PASSWORD")


@pytest.mark.parametrize("spooled", [False, True])
def test_a_table_in_postgresql_is_read_with_its_types(server, quick, tmp_path, spooled):
    found = Origin(reader(server), scratch=Scratch(tmp_path if spooled else None)).declared(COLUMNS)
    assert [str(kind) for kind in found.schema.types] == ["string", "int32", "double", "date32[day]", "bool", "string"]
    row = found.slice(6, 1).to_pylist()[0]
    assert (row["id"], row["age"], row["pay"], str(row["born"]), row["well"], row["town"]) == (
        "p7", 7, 8.75, "1950-01-08", False, "town0",
    )  # fmt: skip
    assert found.num_rows == 3000
    assert found["town"].null_count == 1000


def test_ids_may_be_uuids(server, quick):
    found = reader(server, "SELECT uid AS id FROM people").fetched(Scratch())
    assert len({str(value) for value in found["id"].to_pylist()}) == 3000
    assert len(found["id"][0].as_py()) == 36


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT * FROM nowhere", "table that does not exist"),
        ("SELECT shoe FROM people", "column that does not exist"),
        ("SELECT * FROM hidden", "grant it SELECT"),
        ("SELEC 1", "try it with the same role"),
        ("SELECT 1 / (age - 7) FROM people", "try it with the same role"),
        ("CREATE TABLE mine (id text)", "would write|grant it"),
        ("DELETE FROM people", "would write|grant it"),
    ],
)
def test_a_query_that_fails_is_told_without_what_the_server_said(server, quick, sql, told, caplog):
    caplog.set_level(logging.DEBUG)
    began = time.monotonic()
    with pytest.raises(DataRefused, match=told) as caught:
        reader(server, sql).fetched(Scratch())
    assert time.monotonic() - began < 2, "what cannot get better is not tried again"
    for secret in (PASSWORD, sql, "s3cret", "LINE 1"):
        assert secret not in str(caught.value)
        assert secret not in caplog.text
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_even_a_role_that_may_write_cannot(server, quick, monkeypatch):
    monkeypatch.setenv("KEEPER", "keeper's own")
    with pytest.raises(DataRefused, match="would write"):
        Query(server.address("keeper"), "DELETE FROM people RETURNING *", "KEEPER").fetched(Scratch())
    assert reader(server).fetched(Scratch()).num_rows == 3000


def test_a_wrong_password_is_refused_at_once(server, quick, monkeypatch):
    monkeypatch.setenv("READER_PASSWORD", "guess")
    with pytest.raises(DataRefused, match="refused the role or its password") as caught:
        reader(server).fetched(Scratch())
    assert "guess" not in str(caught.value)


def test_a_variable_that_is_not_set_is_a_fault_of_the_settings(server, quick, monkeypatch):
    monkeypatch.delenv("READER_PASSWORD")
    with pytest.raises(SettingsRefused, match="no variable 'READER_PASSWORD'"):
        reader(server).fetched(Scratch())


def test_a_connection_lost_in_the_middle_is_made_again(server, quick):
    slow = "SELECT id, age, pay, born, well, town, pg_sleep(0.0004)::text AS pause FROM people"
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'reader'"
    timer = threading.Timer(0.5, server.execute, [end])
    timer.start()
    began = time.monotonic()
    found = reader(server, slow).fetched(Scratch())
    timer.join()
    assert found.num_rows == 3000
    assert time.monotonic() - began > 1.5, "the first attempt was cut and made again"


def test_a_server_that_is_away_is_asked_again_and_then_given_up(quick):
    began = time.monotonic()
    with pytest.raises(DataRefused, match="asked 4 times"):
        Query("postgresql://reader@127.0.0.1:1/postgres", QUERY).fetched(Scratch())
    assert time.monotonic() - began > 2


def test_sqlite_is_read_only_and_relative_to_the_settings(tmp_path):
    file = tmp_path / "people.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE people (id TEXT, age INTEGER, pay REAL, born TEXT, well TEXT, town TEXT)")
        rows = [(f"p{i}", i, i + 0.5, "2000-01-02", "yes", None if i % 2 else "x") for i in range(1, 2000)]
        connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)", rows)
    connection.close()
    found = Origin(Query(f"sqlite:{file}", QUERY)).declared(COLUMNS)
    assert found.num_rows == 1999
    assert found["pay"].to_pylist()[:2] == [1.5, 2.5]
    with pytest.raises(DataRefused):
        Query(f"sqlite:{file}", "DELETE FROM people").fetched(Scratch())
    with pytest.raises(DataRefused, match="no such file"):
        Query(f"sqlite:{tmp_path}/none.db", QUERY).fetched(Scratch())
    with pytest.raises(DataRefused, match="does not exist"):
        Query(f"sqlite:{file}", "SELECT * FROM others").fetched(Scratch())


def test_a_driver_that_is_missing_is_named_with_its_cure(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "adbc_driver_sqlite.dbapi", None)
    with pytest.raises(DataRefused, match=r"pip install 'federated-anon\[sql\]'"):
        Query("sqlite:x.db", QUERY).fetched(Scratch())


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("postgresql://reader:pw@host/db", "password does not belong"),
        ("postgresql://reader@host/db?password=pw", "password does not belong"),
        ("postgresql://host/db", "needs a role"),
        ("mysql://reader@host/db", "is 'sqlite:FILE' or"),
        ("sqlite:", "needs a file"),
    ],
)
def test_addresses_with_faults_are_refused(address, told):
    assert told in "; ".join(database_faults(address))
