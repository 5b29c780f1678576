"""The same study, wherever a holder's table lies and however it is cut."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from federated_anon.sealed import layout, proposer
from nodes.database import Query
from nodes.holder import DataHolder
from nodes.origin import Origin
from nodes.scratch import Scratch
from tests.postgres import running_server
from tests.simulator import drive, make_settings, make_study, make_table

NAMES = ("north", "south")
ROWS = 300


def released(folder, study, origin=None):
    """The release with north's table at ``origin``; the ledgers are new each time."""
    holders = {}
    for number, name in enumerate(NAMES):
        table, columns = make_table(ROWS, number, name)
        settings = make_settings(folder, name, table, columns, NAMES, exposures=["open", "sealed"])
        if origin and name == "north":
            settings = dataclasses.replace(settings, source=origin)
        holders[name] = DataHolder(settings)
    return drive(study, holders).release.table


@pytest.fixture(params=["open", "sealed"])
def study(request):
    return make_study(holders=NAMES, exposure=request.param)


@pytest.mark.parametrize("parts", [1, 7])
def test_parts_and_scratch_files_change_nothing(tmp_path, study, parts):
    table, _ = make_table(ROWS, 0, "north")
    (tmp_path / "parts").mkdir()
    for number in range(parts):
        first, last = ROWS * number // parts, ROWS * (number + 1) // parts
        parquet.write_table(table.slice(first, last - first), tmp_path / "parts" / f"{number}.parquet")
    spooled = Origin(tmp_path / "parts", scratch=Scratch(tmp_path / "scratch"))
    assert released(tmp_path / "a", study, spooled).equals(released(tmp_path / "b", study))
    assert os.listdir(tmp_path / "scratch") == []


def test_an_array_in_a_scratch_file_takes_no_memory(tmp_path):
    array = pa.array(range(100_000))
    before = pa.total_allocated_bytes()
    kept = Scratch(tmp_path).keep(array)
    assert pa.total_allocated_bytes() - before < 10_000
    assert kept.equals(array)


def test_memory_that_is_free_goes_back_to_the_system(tmp_path):
    blocks = [bytes(50_000) for _ in range(4_000)]  # Small enough for the heap, which stays as high as its last block.
    last, full = bytes(50_000), anonymous_bytes()
    del blocks
    Scratch(tmp_path).tidy()
    assert anonymous_bytes() < full - 150_000_000
    assert len(last) == 50_000


def anonymous_bytes():
    found = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon"))
    return int(found.split()[1]) * 1024


@pytest.mark.parametrize("threads", ["1", "2"])
def test_rows_that_are_moved_about_in_scratch_files_change_nothing(tmp_path, monkeypatch, threads):
    study = make_study(holders=NAMES, exposure="sealed")
    expected = released(tmp_path / "b", study)
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    for module in (layout, proposer):
        monkeypatch.setattr(module, "BUCKET_BYTES", 500)
    make_settings(tmp_path / "c", "north", *make_table(ROWS, 0, "north"), NAMES)
    spooled = Origin(tmp_path / "c" / "north" / "data.parquet", scratch=Scratch(tmp_path / "scratch"))
    assert released(tmp_path / "a", study, spooled).equals(expected)


def test_a_holder_may_keep_its_table_in_postgresql(tmp_path, study, monkeypatch):
    table, _ = make_table(ROWS, 0, "north")
    monkeypatch.setenv("READER", "open sesame")
    with running_server() as server:
        kinds = {"string": "text", "int64": "bigint", "double": "double precision"}
        columns = ", ".join(f'"{f.name}" {kinds[str(f.type)]}' for f in table.schema)
        rows = ", ".join(f"({', '.join(map(literal, row.values()))})" for row in table.to_pylist())
        server.execute(
            f"CREATE TABLE people ({columns})",
            f"INSERT INTO people VALUES {rows}",
            "CREATE ROLE reader LOGIN PASSWORD 'open sesame'",
            "GRANT SELECT ON people TO reader",
        )
        query = Query(server.address("reader"), "SELECT * FROM people ORDER BY random()", "READER")
        found = released(tmp_path / "a", study, Origin(query))
    assert found.equals(released(tmp_path / "b", study))


def literal(value):
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else repr(value)
