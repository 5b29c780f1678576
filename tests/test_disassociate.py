"""The command ``disassociate`` and the check of its runs: from files to files, and whatever may be wrong with them."""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from federated_anon.setvalued import from_json, require_disassociated, to_json
from federated_anon.setvalued.formats import read_transactions
from federated_anon.setvalued.generator import power_law
from tests.command_line import command, edit, require_refusal


@pytest.fixture
def visits(room) -> Path:
    data = power_law(600, 30)
    path = room / "visits.txt"
    path.write_text("".join(" ".join(f"p{item}" for item in record) + "\n" for record in data))
    return path


def test_a_run_is_written_verified_and_the_same_again(visits, room):
    arguments = ("--k", "3", "--m", "2", "--delta", "20", "--reassociate", "--seed", "4", "--json")
    answer = command("disassociate", visits, *arguments, "--out", room / "run")
    assert answer.code == 0, answer.err
    told = json.loads(answer.out)
    assert (told["people"], told["smallest_cluster"] >= 10, told["k"]) == (600, True, 3)
    files = sorted(str(path.relative_to(room / "run")) for path in (room / "run").rglob("*.*"))
    published = ["disassociated.json", "manifest.json", "reassociated.txt", "report.html", "report.json"]
    assert files == sorted([*published, "private/measures.json", "private/report.html"])
    require_disassociated(from_json((room / "run" / "disassociated.json").read_bytes()))
    assert command("disassociate", visits, *arguments, "--out", room / "again").code == 0
    for name in files:
        assert (room / "run" / name).read_bytes() == (room / "again" / name).read_bytes()
    checked = command("verify", room / "run", "--json")
    assert checked.code == 0, checked.err
    assert json.loads(checked.out)["people"] == 600


def test_original_figures_are_kept_apart(visits, room):
    assert command("disassociate", visits, "--reassociate", "--out", room / "run").code == 0
    public = json.loads((room / "run" / "report.json").read_text())
    private = json.loads((room / "run" / "private" / "measures.json").read_text())
    assert private["private"] is True
    assert not {"items_kept", "supports_before", "pairs"} & public.keys()
    assert private["supports_before"] == original_supports(visits)
    assert "reassociated" in public
    manifest = json.loads((room / "run" / "manifest.json").read_text())
    assert set(manifest["publish"]) == {"disassociated.json", "report.html", "report.json", "reassociated.txt"}


def test_a_run_is_evaluated_against_its_original(visits, room):
    assert command("disassociate", visits, "--k", "3", "--m", "2", "--reassociate", "--out", room / "run").code == 0
    answer = command("evaluate", visits, room / "run", "--json")
    assert answer.code == 0, answer.err
    found = json.loads(answer.out)
    private = json.loads((room / "run" / "private" / "measures.json").read_text())
    assert found["items_kept_percent"] == pytest.approx(100 * private["items_kept"])
    assert "items kept" in command("evaluate", visits, room / "run").out
    require_refusal(command("evaluate", room / "none.txt", room / "run"), 4, "none.txt")


def original_supports(path: Path) -> dict[str, int]:
    lines = [set(line.split()) for line in path.read_text().splitlines()]
    return {name: sum(name in line for line in lines) for name in set().union(*lines)}


def test_strict_and_suppressed_runs_are_checked_for_what_they_promise(visits, room):
    answer = command("disassociate", visits, "--strict", "--suppress", "--out", room / "run")
    assert answer.code == 0, answer.err
    assert "not itself" not in answer.out
    checked = command("verify", room / "run")
    assert "it is itself k^m-anonymous" in checked.out
    assert "No cluster is open to the cover problem" in checked.out


def test_people_read_what_matters_and_what_to_do(visits, room):
    answer = command("disassociate", visits, "--reassociate")
    assert answer.code == 0, answer.err
    for text in ("600 in", "any 2 known items fit at least 3 people", "not itself k^m-anonymous", "--out FOLDER"):
        assert text in answer.out


@pytest.mark.parametrize("method", ["ants", "flow"])
def test_rules_from_a_file(visits, room, method):
    (room / "rules.txt").write_text("p0 p1\n\np2 p3\n")
    options = ("--rules", room / "rules.txt", "--beta", "0.8", "--method", method, "--json")
    answer = command("disassociate", visits, *options)
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["rules"] == 2


@pytest.mark.parametrize("kind", ["long.csv", "long.parquet", "lists.parquet"])
def test_tables_come_back_in_their_own_format(room, kind):
    data = power_law(300, 20)
    rows = np.repeat(np.arange(len(data)), data.lengths)
    if kind.startswith("long"):
        table, options = pa.table({"who": rows, "what": data.items}), ("--person", "who", "--item", "what")
    else:
        table, options = pa.table({"what": [list(record) for record in data]}), ("--column", "what")
    if kind.endswith("csv"):
        pa.csv.write_csv(table, room / kind)
    else:
        pa.parquet.write_table(table, room / kind)
    answer = command("disassociate", room / kind, *options, "--reassociate", "--out", room / "run")
    assert answer.code == 0, answer.err
    assert command("verify", room / "run").code == 0
    written = room / "run" / f"reassociated{Path(kind).suffix}"
    columns = dict(zip([name.strip("-") for name in options[::2]], options[1::2], strict=True))
    assert 250 < len(read_transactions(written, **columns)) <= 300


SETTINGS = {
    ("--delta", "2"): "delta must be at least k = 3",
    ("--k", "1"): "k must be at least 2",
    ("--m", "0"): "m must be at least 1",
    ("--min-size", "2"): "min_size must be from k = 3 to delta = 40",
    ("--beta", "1.5"): "beta must be from 0 to 1",
    ("--method", "bees"): "method must be ants or flow",
}


@pytest.mark.parametrize("options", SETTINGS)
def test_settings_are_refused_and_nothing_is_written(visits, room, options):
    require_refusal(command("disassociate", visits, *options, "--out", room / "run"), 3, SETTINGS[options])
    assert sorted(os.listdir(room)) == ["visits.txt"]


def test_a_rule_with_unknown_items_is_refused(visits, room):
    (room / "rules.txt").write_text("p0 q1\np1 q2\n")
    answer = command("disassociate", visits, "--rules", room / "rules.txt", "--out", room / "run")
    require_refusal(answer, 3, "2 faults", "rule 1 names items that no record has: q1", "rule 2")
    for content, told in ((b"\n", "holds no rule"), (b"\xff", "not UTF-8")):
        (room / "rules.txt").write_bytes(content)
        require_refusal(command("disassociate", visits, "--rules", room / "rules.txt"), 3, told)
    require_refusal(command("disassociate", visits, "--rules", room / "none.txt"), 3, "cannot be read")


def test_too_few_people_or_nothing_to_read(room):
    (room / "few.txt").write_text("a b\nc\n")
    require_refusal(command("disassociate", room / "few.txt", "--out", room / "run"), 6, "the data has 2")
    (room / "empty.txt").write_text("")
    require_refusal(command("disassociate", room / "empty.txt", "--out", room / "run"), 4, "is empty")
    require_refusal(command("disassociate", room / "none.txt", "--out", room / "run"), 4, "does not exist")
    assert not (room / "run").exists()


def test_an_existing_folder_is_never_touched(visits, room):
    (room / "run").mkdir()
    require_refusal(command("disassociate", visits, "--out", room / "run"), 9, "exists already")


def test_only_rare_items_leave_no_table(room):
    (room / "rare.txt").write_text("".join(f"only{i}\n" for i in range(20)))
    assert command("disassociate", room / "rare.txt", "--out", room / "form").code == 0
    assert command("verify", room / "form").code == 0
    answer = command("disassociate", room / "rare.txt", "--reassociate", "--out", room / "run")
    require_refusal(answer, 6, "nothing is left to re-associate")


def test_odd_sets_have_a_meaning_and_nobody_is_lost(room):
    lines = ["", "a a b", "7 x y", " ".join(f"i{n}" for n in range(100_000)), "b"] + ["a b"] * 20
    (room / "odd.txt").write_text("\n".join(lines) + "\n")
    answer = command("disassociate", room / "odd.txt", "--delta", "30", "--reassociate", "--out", room / "run")
    assert answer.code == 0, answer.err
    form = from_json((room / "run" / "disassociated.json").read_bytes())
    assert form.people == 25
    private = json.loads((room / "run" / "private" / "measures.json").read_text())
    assert private["empty_records"] == 1
    assert private["supports_before"]["a"] == private["supports_after"]["a"] == 21
    assert command("verify", room / "run").code == 0


def test_verify_finds_what_was_touched(visits, room):
    assert command("disassociate", visits, "--reassociate", "--out", room / "run").code == 0
    path = room / "run" / "reassociated.txt"
    path.write_text(path.read_text() + "p0\n")
    answer = command("verify", room / "run")
    require_refusal(answer, 7, "'reassociated.txt' is not as it was written")


def resealed(run: Path, name: str) -> None:
    """The digest of a file that was changed, written anew as a forger would."""
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["publish"][name] = hashlib.sha256((run / name).read_bytes()).hexdigest()
    (run / "manifest.json").write_text(json.dumps(manifest))


def test_verify_does_not_trust_digests(visits, room):
    assert command("disassociate", visits, "--reassociate", "--out", room / "run").code == 0
    table, form = room / "run" / "reassociated.txt", room / "run" / "disassociated.json"
    before = table.read_text(), form.read_bytes()
    table.write_text(before[0] + "p0\n")
    resealed(room / "run", "reassociated.txt")
    require_refusal(command("verify", room / "run"), 7, "not the one that its seed draws")
    table.write_text(before[0])
    resealed(room / "run", "reassociated.txt")
    told = json.loads(before[1])
    told["clusters"][0]["size"] = 2
    told["clusters"][0]["chunks"] = []
    form.write_text(json.dumps(told))
    resealed(room / "run", "disassociated.json")
    require_refusal(command("verify", room / "run"), 7, "2 people")
    form.write_bytes(to_json(from_json(before[1])))
    resealed(room / "run", "disassociated.json")
    edit(room / "run" / "report.json", '"people": 600', '"people": 601')
    resealed(room / "run", "report.json")
    require_refusal(command("verify", room / "run"), 7, "report.json does not tell")


@pytest.mark.parametrize("name", ["disassociated.json", "report.json", "reassociated.txt"])
def test_verify_misses_files(visits, room, name):
    assert command("disassociate", visits, "--reassociate", "--out", room / "run").code == 0
    (room / "run" / name).unlink()
    require_refusal(command("verify", room / "run"), 7, f"'{name}' cannot be read")


@pytest.mark.parametrize("content", ['{"kind": "disassociated"}', '{"kind": "disassociated", "version": 9}'])
def test_verify_refuses_a_broken_manifest(visits, room, content):
    assert command("disassociate", visits, "--out", room / "run").code == 0
    (room / "run" / "manifest.json").write_text(content)
    require_refusal(command("verify", room / "run"), 7, "manifest.json")


@pytest.mark.parametrize(("fault", "code"), [(KeyboardInterrupt, 130), (OSError(28, "full"), 9)])
def test_ctrl_c_or_a_full_disk_while_writing_leaves_nothing(visits, room, monkeypatch, fault, code):
    def fail(*arguments: object) -> None:
        raise fault

    monkeypatch.setattr("federated_anon.setvalued.run.write_transactions", fail)
    answer = command("disassociate", visits, "--reassociate", "--out", room / "run")
    assert answer.code == code, answer.err
    assert sorted(os.listdir(room)) == ["visits.txt"]
