"""Wrong input of every kind gets one clear message and its own exit code, and leaves nothing behind."""

import json
import os
import resource
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests.command_line import ROLES, command, drafted, edit, people, program, require_refusal, write


def changed(rows: list[tuple], row: int | None, column: int, value: object) -> list[tuple]:
    """The rows with a value put in one row, or in all."""
    put = [list(one) for one in rows]
    for number in range(len(put)) if row is None else [row]:
        put[number][column] = value
    return [tuple(one) for one in put]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder, rows = tmp_path_factory.mktemp("data"), people()
    write(folder / "good.csv", rows)
    (folder / "empty.csv").touch()
    write(folder / "header.csv", [])
    write(folder / "one.csv", rows[:1])
    write(folder / "twins.csv", rows, ("id", "age", "age", "pay", "illness"))
    write(folder / "nothing.csv", changed(rows, None, 1, ""))
    write(folder / "infinite.csv", changed(rows, 3, 3, "inf"))
    write(folder / "stray.csv", changed(rows, 3, 1, "SECRET"))
    write(folder / "repeated.csv", changed(rows, 3, 0, "P4 "))
    (folder / "latin.csv").write_bytes("id,age\n1,2\n2,Zürich\n".encode("latin-1"))
    (folder / "run").mkdir()
    return folder


SIMULATIONS = {
    "missing file": (["absent.csv", *ROLES], 4, ["'absent.csv' does not exist"]),
    "empty file": (["empty.csv", *ROLES], 4, ["is empty"]),
    "header only": (["header.csv", *ROLES], 4, ["has a header but no rows"]),
    "one row": (["one.csv", *ROLES], 4, ["k is 5", "number of rows 1", "lower k"]),
    "k above rows": (["good.csv", *ROLES, "--k", "61"], 4, ["k is 61", "number of rows 60"]),
    "k of one": (["good.csv", *ROLES, "--k", "1"], 3, ["k must be at least 2, got 1"]),
    "unknown column": (["good.csv", *ROLES, "--keep", "wage"], 3, ["unknown column 'wage'", "age, city, pay"]),
    "columns of one name": (["twins.csv", *ROLES], 4, ["columns of the same name: age"]),
    "column all missing": (["nothing.csv", *ROLES], 4, ["'age': every value is missing", "drop it"]),
    "infinite value": (["infinite.csv", *ROLES], 4, ["'pay': infinite values: 1, the first in row 4", "mend"]),
    "not UTF-8": (["latin.csv", "--quasi", "*"], 4, ["not UTF-8", "line 3", "save it as UTF-8"]),
    "text in numbers": (["stray.csv", *ROLES], 4, ["'age': values that are not of type 'integer': 1", "row 4"]),
    "repeated ids": (["repeated.csv", *ROLES], 4, ["1 of 59 ids occur more than once"]),
    "a folder": ([".", *ROLES], 4, ["is a folder"]),
    "out exists": (["good.csv", *ROLES, "--out", "run"], 9, ["'run' exists already", "choose another --out"]),
    "out in no folder": (["good.csv", *ROLES, "--out", "a/b"], 9, ["is not a folder", "make it first"]),
    "out not writable": (["good.csv", *ROLES, "--out", "/proc/run"], 9, ["'/proc/run' cannot be made"]),
    "unknown method": (["good.csv", *ROLES, "--method", "magic"], 3, ["method must be 'best'", "got 'magic'"]),
    "unknown exposure": (["good.csv", *ROLES, "--exposure", "naked"], 3, ["exposure must be", "got 'naked'"]),
    "unknown runtime": (["good.csv", *ROLES, "--runtime", "spark"], 3, ["--runtime is 'ray' or 'in-process'"]),
    "too many holders": (["good.csv", *ROLES, "--holders", "4"], 3, ["3 quasi-identifiers", "4 holders", "fewer"]),
    "no holders": (["good.csv", *ROLES, "--holders", "0"], 3, ["at least one holder is needed"]),
    "two stars": (["good.csv", *ROLES, "--drop", "*"], 3, ["'*' stands for the rest once only"]),
    "no role": (["good.csv", "--quasi", "age"], 3, ["columns without a role: id, city, pay, illness"]),
    "two roles": (["good.csv", *ROLES, "--keep", "illness"], 3, ["'illness' has 2 roles: sensitive, keep"]),
    "ids as quasi": (["good.csv", "--quasi", "*"], 3, ["'id' looks like free text", "make it the key"]),
    "views": (["good.csv", *ROLES, "--views", "age;zip"], 3, ["unknown column 'zip'", "'city' is dealt to nobody"]),
    "l without subject": (["good.csv", "--key", "id", "--quasi", "*", "--l", "2"], 3, ["name at least one"]),
    "l out of reach": (["good.csv", *ROLES, "--l", "4"], 6, ["cannot be reached"]),
    "all at once": (
        ["good.csv", *ROLES, "--k", "1", "--l", "1", "--t", "2", "--seed", "-1", "--method", "x", "--keep", "wage"],
        3,
        ["6 faults", "k must", "l must", "t must be at most 1", "seed must", "method must", "unknown column"],
    ),
}


@pytest.mark.parametrize("name", SIMULATIONS)
def test_simulate_refuses_wrong_input_with_one_clear_message(name, data, room):
    arguments, code, told = SIMULATIONS[name]
    inputs = {path.name for path in data.iterdir()}
    arguments = [str(data / text) if text in inputs else text for text in arguments]
    runtime = [] if "--runtime" in arguments else ["--runtime", "in-process"]
    place = [] if "--out" in arguments else ["--out", "out"]
    told = [text.replace("'run'", f"'{data / 'run'}'") for text in told]
    require_refusal(command("simulate", *arguments, *runtime, *place, "--json"), code, *told)
    assert os.listdir(room) == []
    assert os.listdir(data / "run") == []


def test_a_full_stdout_is_a_storage_fault(data):
    with open("/dev/full", "w") as full:
        answer = program("simulate", data / "good.csv", *ROLES, "--runtime", "in-process", "--json", stdout=full)
    assert answer.code == 9
    assert "No space left on device" in answer.err
    assert "Traceback" not in answer.err
    assert "Exception ignored" not in answer.err


def limited(size: int):
    """What a program does first whose files may not grow beyond ``size`` bytes: as on a full disk."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_holder_whose_disk_is_full_refuses_midway_and_its_ledger_stays_whole(room):
    study = drafted(room)
    answer = program(
        "run", study / "study.toml", "--out", "run", "--runtime", "in-process", "--json", preexec_fn=limited(4000)
    )
    require_refusal(answer, 5, "with code 'storage-failed'", "ledger' cannot be written: File too large")
    assert "run" not in os.listdir(room)
    entries = [json.loads(line) for path in study.rglob("*.jsonl") for line in path.read_text().splitlines()]
    assert len(entries) >= 4


def test_a_disk_without_room_for_the_release_is_told_and_nothing_is_left(room):
    rng = np.random.default_rng(2)
    table = write(room / "long.csv", rng.normal(size=(900, 3)).round(9).tolist(), ("a", "b", "c"))
    place = room / "small"
    place.mkdir()
    arguments = ["simulate", table, "--quasi", "*", "--out", place / "run", "--runtime", "in-process", "--json"]
    environment = os.environ | {"TMPDIR": tempfile.gettempdir()}
    answer = program(*arguments, preexec_fn=limited(40_000), env=environment)
    require_refusal(answer, 9, "cannot be written", "File too large", "nothing of it is left")
    assert os.listdir(place) == []


def test_a_holder_whose_ledger_cannot_be_written_refuses_and_the_reason_is_told(room):
    study = drafted(room)
    (study / "clinic" / "ledger").write_text("a file where the folder should be")
    answer = command("run", study / "study.toml", "--out", "run", "--runtime", "in-process", "--json")
    require_refusal(answer, 5, "holder 'clinic' refused step 'enrol' with code 'storage-failed'", "ledger")
    assert "run" not in os.listdir(room)


STUDY_FAULTS = {
    "unknown key": ("study.toml", "[privacy]", "[privacy]\nkk = 3", 3, "[privacy] unknown key 'kk'; known keys"),
    "k of one": ("study.toml", "k = 4", "k = 1", 3, "[privacy] k must be at least 2"),
    "not TOML": ("study.toml", "[privacy]", "[privacy", 3, "is not TOML"),
    "no place": ("study.toml", "[deployment.bank]\nsettings", "[deployment.clinic2]\nsettings", 3, "unknown holders"),
    "two keys": ("bank/settings.toml", '"quasi-identifier"', '"key"', 3, "these have: client, city"),
    "role to choose": ("bank/settings.toml", '"quasi-identifier"', '"choose"', 3, "choose a role for: city"),
    "no role": ("bank/settings.toml", 'role = "quasi-identifier"\n', "", 3, "bank: [columns.city] 'role' is missing"),
    "unknown setting": ("bank/settings.toml", "[source]", "[source]\nurl = 3", 3, "[source] unknown key 'url'"),
    "wrong partner key": ("bank/settings.toml", 'clinic = "', 'clinic = "' + "0" * 64 + '"\nold = "', 5, "another key"),
    "nobody pinned": ("bank/settings.toml", "clinic = ", "somebody = ", 5, "pin the public key of: clinic"),
    "policy on k": ("bank/settings.toml", "smallest_k = 4", "smallest_k = 9", 5, "k is 4, smallest accepted is 9"),
    "policy on exposure": ("bank/settings.toml", '"sealed"', '"open"', 5, "exposure 'sealed', accepted: open"),
    "policy on method": ("bank/settings.toml", "[policy]", '[policy]\nmethods = ["c-tca"]', 5, "method 'best'"),
    "no data": ("bank/settings.toml", "bank.csv", "gone.csv", 5, "gone.csv' does not exist"),
    "undeclared column": ("bank/settings.toml", "[columns.pay]", "[columns.wage]", 5, "columns without a role: pay"),
    "another's settings": ("bank/settings.toml", 'name = "bank"', 'name = "shop"', 3, "settings are of holder 'shop'"),
    "no identity": ("bank/settings.toml", "identity.key", "lost.key", 3, "make one with 'federated-anon keys'"),
}


@pytest.mark.parametrize("name", STUDY_FAULTS)
def test_run_refuses_wrong_studies_and_settings_and_doctor_finds_them(name, room):
    study = drafted(room)
    file, before, after, code, told = STUDY_FAULTS[name]
    edit(study / file, before, after)
    answer = command("run", study / "study.toml", "--out", "run", "--runtime", "in-process", "--json")
    require_refusal(answer, code, told)
    assert "run" not in os.listdir(room)
    assert command("doctor", study / "study.toml").code == 3


def test_faults_of_all_holders_come_together(room):
    study = drafted(room)
    edit(study / "bank" / "settings.toml", "smallest_k = 4", "smallest_kk = 4")
    edit(study / "clinic" / "settings.toml", '"sensitive"', '"key"')
    answer = command("run", study / "study.toml", "--out", "run", "--runtime", "in-process")
    require_refusal(answer, 3, "2 faults", "bank: [policy] unknown key 'smallest_kk'", "these have: id, illness")
