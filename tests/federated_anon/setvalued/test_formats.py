"""Transactions read from three forms of files, written back alike, and refused with all faults at once."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federated_anon.errors import DataRefused
from federated_anon.setvalued.formats import read_transactions, read_with_layout, write_transactions


def sets_of(transactions):
    """The sets as lists of names, in the order of items."""
    bounds = zip(transactions.offsets[:-1], transactions.offsets[1:], strict=True)
    return [[transactions.names[i] for i in transactions.items[start:end]] for start, end in bounds]


def lines(tmp_path, content, name="sets.txt"):
    path = tmp_path / name
    path.write_bytes(content)
    return path


def test_one_set_per_line_in_the_order_of_numbers(tmp_path):
    found = read_transactions(lines(tmp_path, b"10 3\n\n 3\t20 3 \n"))
    assert found.names == ("3", "10", "20")
    assert sets_of(found) == [["3", "10"], [], ["3", "20"]]


def test_names_that_are_no_numbers_are_spelled(tmp_path):
    found = read_transactions(lines(tmp_path, "07 7 é\r\n7 b\r\n".encode()))
    assert found.names == ("07", "7", "b", "é")
    assert sets_of(found) == [["07", "7", "é"], ["7", "b"]]


def test_numbers_too_long_for_a_machine_are_spelled(tmp_path):
    assert read_transactions(lines(tmp_path, f"{10**30} 5\n".encode())).names == (str(10**30), "5")


def test_a_set_of_a_hundred_thousand_items(tmp_path):
    found = read_transactions(lines(tmp_path, " ".join(map(str, range(10**5))).encode() + b"\n1 2\n"))
    assert np.diff(found.offsets).tolist() == [10**5, 2]


def test_gzipped_lines_round_trip_and_are_the_same_bytes_each_time(tmp_path):
    path = lines(tmp_path, gzip.compress(b"3 10\n\n7\n"), "sets.dat.gz")
    found, layout = read_with_layout(path)
    for name in ("one.dat.gz", "two.dat.gz"):
        write_transactions(found, tmp_path / name, layout)
    assert (tmp_path / "one.dat.gz").read_bytes() == (tmp_path / "two.dat.gz").read_bytes()
    assert gzip.decompress((tmp_path / "one.dat.gz").read_bytes()) == b"3 10\n\n7\n"


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".csv.gz"])
def test_a_long_table_round_trips(tmp_path, suffix):
    table = pa.table({"who": ["b", "a", "b", "b"], "what": ["x", "y, z", "y, z", "x"], "other": [1, 2, 3, 4]})
    path = tmp_path / f"long{suffix}"
    if suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        with pa.output_stream(str(path), compression="gzip" if suffix.endswith("gz") else None) as sink:
            pa.csv.write_csv(table, sink, pa.csv.WriteOptions(delimiter="\t" if suffix == ".tsv" else ","))
    found, layout = read_with_layout(path, person="who", item="what")
    assert sets_of(found) == [["x", "y, z"], ["y, z"]]
    write_transactions(found, tmp_path / f"back{suffix}", layout)
    again = read_transactions(tmp_path / f"back{suffix}", person="who", item="what")
    assert sets_of(again) == sets_of(found)


def test_a_list_column_round_trips_with_its_type(tmp_path):
    table = pa.table({"id": [1, 2, 3, 4], "sets": pa.array([[30, 4, 30], [], None, [4]], pa.list_(pa.int16()))})
    pyarrow.parquet.write_table(table, tmp_path / "lists.parquet")
    found, layout = read_with_layout(tmp_path / "lists.parquet")
    assert sets_of(found) == [["4", "30"], [], [], ["4"]]
    write_transactions(found, tmp_path / "back.parquet", layout)
    back = pyarrow.parquet.read_table(tmp_path / "back.parquet")["sets"]
    assert back.type.value_type == pa.int16()
    assert back.to_pylist() == [[4, 30], [], [], [4]]


def test_sliced_and_chunked_lists_are_read_whole(tmp_path):
    parts = [pa.array([["a"], ["b", "c"]]), pa.array([["c"], ["a", "b"]]).slice(1)]
    pyarrow.parquet.write_table(pa.table({"sets": pa.chunked_array(parts)}), tmp_path / "l.parquet", row_group_size=1)
    assert sets_of(read_transactions(tmp_path / "l.parquet", column="sets")) == [["a"], ["b", "c"], ["a", "b"]]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.sampled_from(["1", "2", "30", "a", "Ω", "b-c"]), max_size=5), min_size=1, max_size=8))
def test_any_sets_of_plain_names_survive_lines(tmp_path_factory, sets):
    if not any(sets):
        return
    folder = tmp_path_factory.mktemp("lines")
    path = lines(folder, "".join(" ".join(one) + "\n" for one in sets).encode())
    found, layout = read_with_layout(path)
    assert [set(one) for one in sets_of(found)] == [set(one) for one in sets]
    write_transactions(found, folder / "back.txt", layout)
    assert sets_of(read_transactions(folder / "back.txt")) == sets_of(found)


def test_all_faults_of_a_text_come_at_once_with_line_numbers(tmp_path):
    with pytest.raises(DataRefused) as refused:
        read_transactions(lines(tmp_path, b"1 2\n\xff 3\n4\x00\n\xfe\n"))
    text = str(refused.value)
    assert "2 faults" in text
    assert "not UTF-8 text: 2 lines (2, 4)" in text
    assert "zero bytes: 1 line (3)" in text


def test_missing_people_and_items_of_a_long_table(tmp_path):
    (tmp_path / "long.csv").write_text("who,what\na,x\n,y\nb,\n")
    with pytest.raises(DataRefused) as refused:
        read_transactions(tmp_path / "long.csv", person="who", item="what")
    assert "missing values in 'who': 1 row (2)" in str(refused.value)
    assert "missing values in 'what': 1 row (3)" in str(refused.value)


def test_a_null_inside_a_list(tmp_path):
    pyarrow.parquet.write_table(pa.table({"s": [["a"], None, ["b", None]]}), tmp_path / "l.parquet")
    with pytest.raises(DataRefused, match=r"missing items in lists of 's': 1 row \(3\)"):
        read_transactions(tmp_path / "l.parquet")


@pytest.mark.parametrize(
    ("name", "content", "options", "told"),
    [
        ("a.txt", b"", {}, "is empty"),
        ("a.txt", b"\n \n", {}, "no item in any set"),
        ("a.csv", b"a,b\n1,2\n", {}, "name its columns"),
        ("a.csv", b"a,b\n1,2\n", {"person": "a"}, "both are named"),
        ("a.csv", b"a,b\n1,2\n", {"person": "x", "item": "y"}, "has no column 'y'"),
        ("a.txt", b"1 2\n", {"column": "x"}, "of a Parquet file"),
        ("a.txt", b"1 2\n", {"person": "x", "item": "y"}, "one set per line"),
        ("a.parquet", b"rubbish", {}, "no readable .parquet"),
        ("a.csv", b"a,b\n1,2,3\n", {"person": "a", "item": "b"}, "no readable .csv"),
        ("a.txt.gz", b"rubbish", {}, "no readable text"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, name, content, options, told):
    with pytest.raises(DataRefused, match=told):
        read_transactions(lines(tmp_path, content, name), **options)


def test_a_parquet_file_without_or_with_several_list_columns(tmp_path):
    pyarrow.parquet.write_table(pa.table({"a": [1]}), tmp_path / "none.parquet")
    pyarrow.parquet.write_table(pa.table({"a": [["x"]], "b": [["y"]]}), tmp_path / "two.parquet")
    with pytest.raises(DataRefused, match="0 list columns"):
        read_transactions(tmp_path / "none.parquet")
    with pytest.raises(DataRefused, match=r"2 list columns \(a, b\)"):
        read_transactions(tmp_path / "two.parquet")
    with pytest.raises(DataRefused, match="no list column 'c'"):
        read_transactions(tmp_path / "two.parquet", column="c")
    pyarrow.parquet.write_table(pa.table({"a": [[1.5]]}), tmp_path / "floats.parquet")
    with pytest.raises(DataRefused, match="type double"):
        read_transactions(tmp_path / "floats.parquet")
    with pytest.raises(DataRefused, match="does not exist"):
        read_transactions(tmp_path / "absent.txt")
