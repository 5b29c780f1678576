"""The command line: what it answers, in words and in JSON, and that the same seed gives the same bytes."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from federated_anon import load_study
from federated_anon.cli import app
from federated_anon.errors import Code
from federated_anon.hints import HINTS
from nodes.source import read_table
from tests.command_line import ROLES, command, drafted, edit, people, program, require_refusal, write

COMMANDS = ("simulate", "run", "verify", "keys", "init", "doctor", "demo")


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write(folder / "good.csv", people())
    return folder


@pytest.mark.parametrize("arguments", [["simulate"], ["simulate", "x.csv", "--quais", "a"], ["simulat"], ["keys"]])
def test_a_wrong_command_line_shows_how_to_get_help(arguments):
    answer = program(*arguments)
    assert (answer.code, answer.out) == (2, "")
    assert "--help" in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("name", COMMANDS)
def test_help_teaches_with_an_example_and_fits_the_terminal(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    told = program(name, "--help").out
    assert f"federated-anon {name}" in told.split("Example:")[1]
    assert max(map(len, told.splitlines())) <= 80


def test_help_does_not_swallow_names_of_sections():
    assert "[partners]" in program("keys", "--help").out
    assert "[deployment]" in program("run", "--help").out


def test_the_general_help_names_every_command_and_exit_code():
    told = " ".join(program("--help").out.split())
    assert [name for name in COMMANDS if name not in told] == []
    assert [code for code in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 130) if not re.search(rf"\b{code} [a-z]", told)] == []
    assert program("--version").out.startswith("federated-anon ")


def test_every_code_that_can_cross_has_a_hint():
    assert set(HINTS) == set(Code)
    assert all(HINTS.values())


def test_json_is_one_object_on_stdout_and_nothing_else(data, room):
    answer = command("simulate", data / "good.csv", *ROLES, "--l", "2", "--runtime", "in-process", "--json")
    told = json.loads(answer.out)
    wanted = (
        "records columns holders k k_reached groups method exposure information_loss_percent seconds bytes_sent run"
    )
    assert set(wanted.split()) <= set(told)
    assert (told["records"], told["holders"], told["columns"], told["run"]) == (60, 3, 4, None)
    assert told["k_reached"] >= told["k"] == 5
    assert told["diversity_reached"]["illness"] >= 2
    assert answer.err == ""
    assert os.listdir(room) == []


def test_people_see_steps_columns_and_the_next_command_in_eighty_columns(data, room, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    answer = command("simulate", data / "good.csv", *ROLES, "--runtime", "in-process", "--out", "trial")
    assert answer.code == 0
    for step in ("enrol", "align", "map", "collaborate", "code", "constrain", "release", "close"):
        assert re.search(rf"\d s  {step}: holder-", answer.err)
    assert re.search(r"age .*quasi-identifier .*integer .*\d %", answer.out)
    assert "5 (asked 5)" in answer.out
    assert "Next: federated-anon verify trial" in answer.out
    assert f"Open it in a browser: file://{Path('trial/report.html').absolute()}" in answer.out
    tables = [line for line in answer.out.splitlines() if line.startswith(("┃", "│"))]
    assert max(map(len, tables)) <= 80
    assert sorted(os.listdir("trial")) == [
        *("ledger", "release.csv", "release.parquet", "report.html", "report.json", "simulation.json", "study.toml")
    ]


def test_wide_tables_are_summed_up(tmp_path, room):
    rng = np.random.default_rng(1)
    table = write(tmp_path / "wide.csv", rng.normal(size=(40, 30)).round(3).tolist(), tuple(f"c{i}" for i in range(30)))
    answer = command("simulate", table, "--quasi", "*", "--runtime", "in-process", "--k", "4")
    assert "and 6 columns that lost less" in answer.out


def test_init_drafts_a_study_that_teaches_and_waits_for_roles(room):
    study = drafted(room, key="", quasi="", sensitive="")
    text = (study / "clinic" / "settings.toml").read_text()
    assert text.count('role = "choose"') == 3
    assert "# every value differs: 55 of 55 rows" in text
    assert load_study(study / "study.toml").holders == ("clinic", "bank")
    answer = command("doctor", study / "study.toml")
    assert answer.code == 3
    assert "choose a role for: id, age, illness" in " ".join(answer.out.split())
    for name, role in (("id", "key"), ("age", "quasi-identifier"), ("illness", "sensitive")):
        edit(
            study / "clinic" / "settings.toml",
            f'[columns.{name}]\nrole = "choose"',
            f'[columns.{name}]\nrole = "{role}"',
        )
    for name, role in (("client", "key"), ("city", "quasi-identifier"), ("pay", "identifier")):
        edit(
            study / "bank" / "settings.toml", f'[columns.{name}]\nrole = "choose"', f'[columns.{name}]\nrole = "{role}"'
        )
    healthy = command("doctor", study / "study.toml")
    assert healthy.code == 0, healthy.out
    assert "All in order. Next: federated-anon run" in healthy.out


def test_what_init_drafts_with_roles_runs_and_verifies(room):
    study = drafted(room)
    assert command("doctor", study / "study.toml").code == 0
    assert command("run", study / "study.toml", "--out", "run", "--runtime", "in-process", "--json").code == 0
    assert command("verify", "run").code == 0
    again = command("run", study / "study.toml", "--out", "again", "--runtime", "in-process", "--json")
    assert again.code == 0, "the same study may be run again"
    assert Path("again/release.csv").read_bytes() == Path("run/release.csv").read_bytes()
    edit(study / "study.toml", "k = 4", "k = 6")
    other = command("run", study / "study.toml", "--out", "other", "--runtime", "in-process", "--json")
    require_refusal(other, 5, "'second-partition'", "one_release_per_data_version")


def test_init_refuses_names_that_no_file_has_and_writes_nothing(data, room):
    arguments = ["--key", "ID", "--sensitive", "ill,age", "--drop", "age", "--quasi", "*", "--keep", "*"]
    answer = command("init", data / "good.csv", "--out", "study", *arguments)
    require_refusal(answer, 3, "no file has a column 'ill'", "'age' has several roles", "good has none", "'*' stands")
    require_refusal(command("init", data / "good.csv", "--k", "1"), 3, "k must be at least 2")
    require_refusal(command("init", data / "good.csv", data / "good.csv"), 3, "a name of its own")
    assert os.listdir(room) == []


def test_names_of_files_become_names_of_holders(data, room):
    file = write(room / "Our people (2026).csv", people())
    assert command("init", file, "--out", "my study", "--key", "id", "--quasi", "*").code == 0
    assert load_study("my study/study.toml").holders == ("Our-people-2026",)
    assert load_study("my study/study.toml").name == "my-study"


def test_keys_never_overwrite(room):
    first = command("keys", "own.key")
    assert re.fullmatch(r"[0-9a-f]{64}\n", first.out)
    assert Path("own.key").stat().st_mode & 0o777 == 0o600
    before = Path("own.key").read_bytes()
    require_refusal(command("keys", "own.key"), 9, "'own.key' cannot be written: File exists")
    assert Path("own.key").read_bytes() == before


def test_doctor_speaks_json_of_a_study_and_of_one_holder(room):
    study = drafted(room)
    told = json.loads(command("doctor", study / "study.toml", "--json").out)
    assert told["healthy"]
    assert {finding["holder"] for finding in told["findings"]} == {"study", "clinic", "bank"}
    (study / "bank" / "identity.key").chmod(0o644)
    answer = command("doctor", study / "bank" / "settings.toml", "--json")
    faults = [finding["text"] for finding in json.loads(answer.out)["findings"] if not finding["ok"]]
    assert answer.code == 3
    assert len(faults) == 1
    assert "chmod 600" in faults[0]


BYTES = ("release.parquet", "release.csv", "report.json", "report.html", "simulation.json")


def test_same_seed_same_bytes_on_any_number_of_threads_and_any_runtime(data, room):
    runs = {"one": ("in-process", "1"), "two": ("in-process", "2"), "ray": ("ray", "2")}
    for name, (runtime, threads) in runs.items():
        environment = os.environ | {"OMP_NUM_THREADS": threads, "NUMBA_NUM_THREADS": threads}
        arguments = [data / "good.csv", *ROLES, "--l", "2", "--out", name, "--runtime", runtime, "--json"]
        answer = program("simulate", *arguments, env=environment)
        assert answer.code == 0, answer.err
    for name in BYTES:
        assert len({(room / run / name).read_bytes() for run in runs}) == 1, name


def test_another_seed_deals_otherwise(data, room):
    for seed in ("0", "1"):
        arguments = [*ROLES, "--out", seed, "--seed", seed, "--runtime", "in-process", "--json"]
        assert command("simulate", data / "good.csv", *arguments).code == 0
    reports = [json.loads(Path(seed, "report.json").read_text()) for seed in ("0", "1")]
    dealt = [{column["name"]: column["holder"] for column in report["columns"]} for report in reports]
    assert dealt[0] != dealt[1]
    assert reports[0]["holders"]["holder-1"]["identity"] != reports[1]["holders"]["holder-1"]["identity"]


def test_adult_keeps_k_l_categories_and_integers(shared_data, room):
    quasi = "age,workclass,education,marital-status,race,sex,hours-per-week,native-country"
    arguments = ["--quasi", quasi, "--sensitive", "occupation", "--l", "3", "--keep", "label", "--drop", "*"]
    answer = command(
        "simulate", shared_data / "adult.csv.gz", *arguments, "--out", "run", "--runtime", "in-process", "--json"
    )
    told = json.loads(answer.out)
    assert told["k_reached"] >= 5
    assert told["seconds"] < 60
    release = pyarrow.parquet.read_table("run/release.parquet")
    rows = list(zip(*(release[name].to_pylist() for name in quasi.split(",")), strict=True))
    secrets = release["occupation"].to_pylist()
    classes: dict[tuple, list] = {}
    for row, secret in zip(rows, secrets, strict=True):
        classes.setdefault(row, []).append(secret)
    assert min(map(len, classes.values())) >= 5
    assert min(len(set(values)) for values in classes.values()) >= 3
    original = read_table(shared_data / "adult.csv.gz")
    for name in release.column_names:
        assert release.schema.field(name).type == original.schema.field(name).type
        if str(release.schema.field(name).type) == "string":
            assert set(release[name].to_pylist()) <= set(original[name].to_pylist())


def test_every_command_is_described():
    assert {command.name for command in app.registered_commands} >= set(COMMANDS)
    assert all(command.epilog for command in app.registered_commands if command.name in COMMANDS)
