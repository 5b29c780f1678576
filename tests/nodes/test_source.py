from __future__ import annotations

import datetime as dt
import gzip
import os

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.ipc as ipc
import pyarrow.parquet as parquet
import pytest

from federated_anon.columns import Column, Kind, Role
from federated_anon.errors import Code, DataRefused
from nodes.origin import Origin
from nodes.source import read_table

TABLE = pa.table({"id": pa.array([1, 2], pa.int8()), "town": ["a", None], "size": pa.array([1.5, None], pa.float32())})


def written(folder, content, name="data.csv"):
    path = folder / name
    path.write_bytes(content)
    return path


def test_csv_is_read_with_inferred_types_and_missing_values(tmp_path):
    content = b"n,f,flag,day,at,town\n1,1.5,true,2020-02-29,2020-01-01 10:00:00,a\nNA,?,null,,NaN,?\n"
    found = read_table(written(tmp_path, content))
    assert [str(kind) for kind in found.schema.types] == [
        "int64",
        "double",
        "bool",
        "date32[day]",
        "timestamp[s]",
        "string",
    ]
    assert found.to_pylist()[1] == dict.fromkeys(found.column_names)
    assert found["day"][0].as_py() == dt.date(2020, 2, 29)


def test_spellings_of_missing_are_a_setting(tmp_path):
    path = written(tmp_path, b"a,b\n-,NA\nx,y\n")
    assert read_table(path, missing=("-",)).to_pylist()[0] == {"a": None, "b": "NA"}


def test_compressed_and_tab_separated_text(tmp_path):
    assert read_table(written(tmp_path, gzip.compress(b"a,b\n1,2\n"), "x.csv.gz")).to_pylist() == [{"a": 1, "b": 2}]
    assert read_table(written(tmp_path, b"a\tb\n1\t2\n", "x.TSV")).to_pylist() == [{"a": 1, "b": 2}]


def test_a_byte_order_mark_windows_lines_and_quoted_breaks_are_read(tmp_path):
    content = b'\xef\xbb\xbfa,b\r\n1,"x, ""y""\r\nz"\r\n2,5"\r\n'
    assert read_table(written(tmp_path, content)).to_pylist() == [
        {"a": 1, "b": 'x, "y"\r\nz'},
        {"a": 2, "b": '5"'},
    ]


def test_a_line_break_in_the_last_value_is_read(tmp_path):
    assert read_table(written(tmp_path, b'a,b\n1,"x\ny"\n')).to_pylist() == [{"a": 1, "b": "x\ny"}]


def test_line_breaks_in_values_are_read_in_long_files(tmp_path):
    found = read_table(written(tmp_path, b"a,b\n" + b'1,"x\ny"\n' * 400_000))
    assert found.num_rows == 400_000
    assert found["b"].unique().to_pylist() == ["x\ny"]


def test_typed_files_keep_their_types(tmp_path):
    parquet.write_table(TABLE, tmp_path / "x.parquet")
    feather.write_feather(TABLE, str(tmp_path / "x.feather"))
    with ipc.new_stream(str(tmp_path / "x.arrow"), TABLE.schema) as writer:
        writer.write_table(TABLE)
    for name in ("x.parquet", "x.feather", "x.arrow"):
        assert read_table(tmp_path / name).equals(TABLE)


def test_a_path_may_be_text_and_hold_other_dots(tmp_path):
    assert read_table(str(written(tmp_path, b"a\n1\n", "data.v1.2.csv"))).num_rows == 1


def test_declared_spelling_survives(tmp_path):
    path = written(tmp_path, b"key,zip,age\n007,01234,40\n012,00012,41\n")
    columns = [
        Column("zip", Role.QUASI, Kind.CATEGORY),
        Column("key", Role.KEY, Kind.TEXT),
        Column("age", Role.QUASI, Kind.INTEGER),
    ]
    assert Origin(path).declared(columns).to_pydict() == {
        "zip": ["01234", "00012"],
        "key": ["007", "012"],
        "age": [40, 41],
    }


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        (b"", "x.csv", "is empty"),
        (gzip.compress(b"", mtime=0), "x.csv.gz", "no readable .csv file"),
        (b"\n\n", "x.csv", "no readable .csv file"),
        (b"a,b\n", "x.csv", "has a header but no rows"),
        (b"a,b,a,c,b\n1,2,3,4,5\n", "x.csv", "columns of the same name: a, b"),
        (b"a,,c\n1,2,3\n", "x.csv", "columns without a name: number 2"),
        (b"a,b\n1,2\ncaf\xe9,3\n", "x.csv", "not UTF-8 text, see line 3"),
        ("a,b\n1,2\n".encode("utf-16"), "x.csv", "not UTF-8 text, see line 1"),
        ("a,b\n1,2\n".encode("utf-16-le"), "x.csv", "not a text file"),
        (b"a,b\n1,2\n3\n4,5,6\n7,8\n", "x.csv", "2 have more or less, the first is row 2"),
        (b'a,b\n1,"x\n2,y\n', "x.csv", "never closed"),
        (b"a;b\n1;2\n", "x.csv", "separated by ';'"),
        (b"a,b\n1,2\n", "x.csv.gz", "no readable .csv file"),
        (gzip.compress(b"a,b\n1,2\n" * 100, mtime=0)[:-9], "x.csv.gz", "no readable .csv file"),
        (b"PAR1 nothing of the kind PAR1", "x.parquet", "no readable .parquet file"),
        (b"garbage", "x.parquet", "no readable .parquet file"),
        (b"ARROW1 nothing of the kind", "x.arrow", "no readable .arrow file"),
        (b"garbage", "x.feather", "no readable .feather file"),
        (b"a,b\n1,2\n", "x.xlsx", "known: .arrow, .csv"),
        (b"a,b\n1,2\n", "x", "names no known format"),
    ],
)
def test_bad_files_are_refused_by_name(tmp_path, monkeypatch, content, name, words):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, content, name)
    with pytest.raises(DataRefused) as caught:
        read_table(name)
    assert str(caught.value).startswith(f"'{name}' ")
    assert words in str(caught.value)
    assert caught.value.code is Code.DATA


def test_a_damaged_page_of_parquet_is_refused(tmp_path):
    path = tmp_path / "x.parquet"
    parquet.write_table(pa.table({"a": list(range(20_000))}), path)
    content = bytearray(path.read_bytes())
    content[500:3000] = bytes(byte ^ 0x5A for byte in content[500:3000])
    with pytest.raises(DataRefused, match=r"no readable \.parquet file"):
        read_table(written(tmp_path, bytes(content), "x.parquet"))


def test_repeated_names_in_a_typed_file_are_refused(tmp_path):
    twice = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    parquet.write_table(twice, tmp_path / "x.parquet")
    with pytest.raises(DataRefused, match="columns of the same name: a"):
        read_table(tmp_path / "x.parquet")


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataRefused, match=r"^'nothing\.csv' does not exist$"):
        read_table("nothing.csv")
    with pytest.raises(DataRefused, match=r"^'folder\.csv' is a folder"):
        read_table("folder.csv")
    with pytest.raises(DataRefused, match=r"^'folder\.csv/x\.csv' does not exist$"):
        read_table("folder.csv/x.csv")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission_is_refused(tmp_path):
    path = written(tmp_path, b"a\n1\n")
    path.chmod(0)
    with pytest.raises(DataRefused, match="cannot be read: Permission denied"):
        read_table(path)


def test_no_refusal_quotes_a_value(tmp_path):
    path = written(tmp_path, b"a,b\n1,2\nsecret\n")
    with pytest.raises(DataRefused) as caught:
        read_table(path)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
