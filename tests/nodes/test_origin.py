from __future__ import annotations

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import pytest

from federated_anon.columns import Column, Kind, Role
from federated_anon.errors import DataRefused
from nodes.origin import Origin
from nodes.scratch import Scratch

COLUMNS = (
    Column("id", Role.KEY, Kind.TEXT),
    Column("age", Role.QUASI, Kind.INTEGER),
    Column("town", Role.QUASI, Kind.CATEGORY),
)
TABLE = pa.table({"id": ["a", "b", "c", "d"], "age": [1, 2, None, 4], "town": ["x", None, "x", "y"]})


@pytest.fixture
def parts(tmp_path):
    folder = tmp_path / "parts"
    (folder / "deep").mkdir(parents=True)
    parquet.write_table(TABLE.slice(0, 1), folder / "0.parquet")
    parquet.write_table(TABLE.slice(1, 2).select(["town", "id", "age"]), folder / "1.parquet")
    parquet.write_table(TABLE.slice(3), folder / "deep" / "2.parquet")
    (folder / "_SUCCESS").write_text("")
    return folder


@pytest.mark.parametrize("spooled", [False, True])
def test_a_folder_of_parts_is_the_whole_table(parts, tmp_path, spooled):
    scratch = Scratch(tmp_path / "scratch" if spooled else None)
    found = Origin(parts, scratch=scratch).declared(COLUMNS)
    assert found.to_pylist() == TABLE.to_pylist()
    assert list((tmp_path / "scratch").glob("*")) == []


def test_a_pattern_names_files_of_one_folder(parts):
    assert Origin(parts / "[01].parquet").declared(COLUMNS).to_pylist() == TABLE.slice(0, 3).to_pylist()


def test_text_parts_keep_leading_zeros_and_may_differ_in_inferred_types(tmp_path):
    (tmp_path / "a.csv").write_text("id,age,town\n01,3,\n")
    (tmp_path / "b.csv").write_text("id,age,town\n02,,007\n")
    found = Origin(tmp_path / "*.csv").declared(COLUMNS).to_pydict()
    assert found == {"id": ["01", "02"], "age": [3, None], "town": [None, "007"]}


def test_a_feather_folder_is_read(tmp_path):
    feather.write_feather(TABLE, str(tmp_path / "x.feather"))
    assert Origin(tmp_path).declared(COLUMNS).equals(TABLE)


def test_parts_that_do_not_fit_are_all_named(parts):
    parquet.write_table(TABLE.rename_columns(["id", "age", "city"]), parts / "7.parquet")
    parquet.write_table(TABLE.set_column(1, "age", pa.array(["old"] * 4)), parts / "8.parquet")
    with pytest.raises(DataRefused, match=r"(?s)'7.parquet'.*city, town.*'8.parquet'.*types"):
        Origin(parts).declared(COLUMNS)


@pytest.mark.parametrize(("name", "content"), [("x.parquet", b"no parquet"), ("y.csv", b"id,age,town\n")])
def test_a_broken_or_foreign_part_is_refused(parts, name, content):
    (parts / name).write_bytes(content)
    with pytest.raises(DataRefused, match=name if name == "x.parquet" else "several formats"):
        Origin(parts).declared(COLUMNS)


def test_nothing_there_is_refused_with_the_known_formats(tmp_path):
    with pytest.raises(DataRefused, match=r"no file of a known format.*\.parquet"):
        Origin(tmp_path).declared(COLUMNS)
    with pytest.raises(DataRefused, match="no file of a known format"):
        Origin(tmp_path / "*.csv").declared(COLUMNS)


def test_undeclared_columns_of_parts_are_named(parts):
    with pytest.raises(DataRefused, match="columns without a role: town"):
        Origin(parts).declared(COLUMNS[:2])
