"""``federated-anon scenario``: one command, one table, pictures; and it goes on where it stood."""

from __future__ import annotations

import json

import pyarrow.parquet as parquet

from tests.command_line import program

FILE = """
name = "two"
[table]
people = 60
columns = 4
[common]
k = 3
holders = 2
[[scenario]]
name = "plain"
exposure = ["open", "sealed"]
[[scenario]]
name = "gone"
trouble = [{site = 1, step = "constrain", does = "vanish"}]
"""


def test_all_plays_are_told_and_only_missing_ones_are_played_again(room):
    (room / "two.toml").write_text(FILE)
    first = program("scenario", "two.toml", "--out", "played", "--json")
    assert first.code == 0, first.err
    assert [row["ending"] for row in json.loads(first.out)["plays"]] == ["released", "released", "holder-late"]
    page = (room / "played" / "scenarios.html").read_text()
    assert "2 of 3 plays end in a release" in page
    assert page.count("<svg") >= 6
    assert parquet.read_table(room / "played" / "results.parquet").num_rows == 3
    next((room / "played" / "cells").glob("001*")).unlink()
    again = program("scenario", "two.toml", "--out", "played", "--json")
    assert json.loads(again.out)["measured_now"] == 1
    (room / "two.toml").write_text(FILE.replace("k = 3", "k = 4"))
    other = program("scenario", "two.toml", "--out", "played")
    assert other.code == 3
    assert "holds other results" in other.err
