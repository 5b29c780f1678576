"""``verify`` finds whatever was touched in a finished run, from its files alone."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from coordinator.assembly import csv_bytes, endorsement
from federated_anon import load_study, simulate
from federated_anon.crypto.signing import Identity
from federated_anon.ledger import entry_hash, genesis
from federated_anon.report.run_page import folder_page
from tests.command_line import Answer, command, people, write

HOLDERS = ("holder-1", "holder-2")


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("verify")
    table = write(folder / "people.csv", people())
    options = {"key": "id", "sensitive": ("illness",), "holders": 2, "l": 2, "runtime": "in-process"}
    simulate(table, k=5, out=folder / "run", **options)
    return folder / "run"


@pytest.fixture
def copy(original, tmp_path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "run"))


def require_found(answer: Answer, *told: str) -> None:
    assert answer.code == 7, answer.err
    assert answer.out == ""
    assert "Traceback" not in answer.err
    assert [text for text in told if text not in answer.err] == []


def ledger(run: Path, holder: str = HOLDERS[0]) -> Path:
    return run / "ledger" / f"{holder}.jsonl"


def write_report(run: Path, report: dict) -> None:
    """Write a report's data as a run does, so that only what it says is changed."""
    (run / "report.json").write_text(json.dumps(report, indent=2, sort_keys=True) + "\n")


def rewrite(path: Path, change: Callable[[list[str]], list[str]]) -> None:
    path.write_text("".join(line + "\n" for line in change(path.read_text().splitlines())))


def with_other_cell(run: Path, column: str) -> pa.Table:
    """The released table with the first value of a column taken from a row that has another."""
    table = pyarrow.parquet.read_table(run / "release.parquet")
    values = table[column].to_pylist()
    values[0] = next(value for value in values if value != values[0])
    return table.set_column(table.column_names.index(column), table.schema.field(column), pa.array(values))


def test_an_untouched_run_passes_with_and_without_pins(original):
    answer = command("verify", original, "--json")
    told = json.loads(answer.out)
    assert answer.code == 0
    assert told["verified"]
    assert told["records"] == 60
    assert told["k_reached"] >= 5
    assert told["diversity_reached"]["illness"] >= 2
    pins = [text for name, key in told["identities"].items() for text in ("--pin", f"{name}={key.upper()}")]
    assert command("verify", original, *pins).code == 0
    assert command("verify", original).out.startswith("Verified: 60 records, each alike with at least")


@pytest.mark.parametrize("column", ["age", "city", "pay", "illness"])
def test_one_changed_cell_of_the_parquet_file(copy, column):
    pyarrow.parquet.write_table(with_other_cell(copy, column), copy / "release.parquet")
    require_found(command("verify", copy, "--json"), "release.csv and release.parquet")


def test_one_changed_cell_of_the_csv_file(copy):
    (copy / "release.csv").write_bytes(csv_bytes(with_other_cell(copy, "pay")))
    require_found(command("verify", copy, "--json"), "release.csv and release.parquet")


@pytest.mark.parametrize("column", ["age", "illness"])
def test_one_changed_cell_in_both_files(copy, column):
    table = with_other_cell(copy, column)
    pyarrow.parquet.write_table(table, copy / "release.parquet")
    (copy / "release.csv").write_bytes(csv_bytes(table))
    require_found(command("verify", copy, "--json"))


def test_two_shuffled_sensitive_values_in_both_files(copy):
    """k and l still hold; only the holders' signatures tell."""
    table = pyarrow.parquet.read_table(copy / "release.parquet")
    table = table.take(pa.array([1, 0, *range(2, table.num_rows)]))
    pyarrow.parquet.write_table(table, copy / "release.parquet")
    told = hashlib.sha256((copy / "release.parquet").read_bytes()).hexdigest()
    write_report(copy, json.loads((copy / "report.json").read_text()) | {"parquet_sha256": told})
    (copy / "release.csv").write_bytes(csv_bytes(table))
    require_found(command("verify", copy, "--json"), "not what this holder signed")


@pytest.mark.parametrize("place", [0, 4, -1], ids=["first", "inner", "last"])
@pytest.mark.parametrize("holder", HOLDERS)
def test_one_removed_ledger_line(copy, place, holder):
    rewrite(ledger(copy, holder), lambda lines: [line for line in lines if line != lines[place]])
    require_found(command("verify", copy, "--json"), f"ledger of '{holder}'")


def test_an_empty_ledger(copy):
    ledger(copy).write_text("")
    require_found(command("verify", copy, "--json"), "ledger of 'holder-1'")


def test_reordered_ledger_lines(copy):
    rewrite(ledger(copy), lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]])
    require_found(command("verify", copy, "--json"), "line 3: a line was removed, added or moved")


def test_a_repeated_ledger_line(copy):
    rewrite(ledger(copy), lambda lines: [*lines[:3], lines[2], *lines[3:]])
    require_found(command("verify", copy, "--json"), "line 4: a line was removed, added or moved")


def test_a_wrong_signature(copy):
    def forge(lines: list[str]) -> list[str]:
        entry = json.loads(lines[3])
        entry["signature"] = Identity.for_simulation(9, "forger").sign(bytes.fromhex(entry["hash"])).hex()
        return [*lines[:3], json.dumps(entry, sort_keys=True), *lines[4:]]

    rewrite(ledger(copy), forge)
    require_found(command("verify", copy, "--json"), "line 4: the signature does not fit")


def test_a_changed_entry(copy):
    rewrite(ledger(copy), lambda lines: [lines[0].replace('"bytes": ', '"bytes": 1'), *lines[1:]])
    require_found(command("verify", copy, "--json"), "line 1: the entry was changed")


@pytest.mark.parametrize("line", ["garbage", "[]", "null", '{"hash": 3, "signature": 4}'])
def test_a_line_that_is_no_entry(copy, line):
    rewrite(ledger(copy), lambda lines: [*lines[:2], line, *lines[3:]])
    require_found(command("verify", copy, "--json"), "ledger of 'holder-1', line 3")


@pytest.mark.parametrize(
    ("name", "value"),
    [("k_reached", 50), ("records", 61), ("information_loss_percent", 0.1), ("caveats", []), ("groups", 1)],
)
def test_a_changed_figure_of_the_report(copy, name, value):
    report = json.loads((copy / "report.json").read_text())
    assert report[name] != value
    write_report(copy, report | {name: value})
    require_found(command("verify", copy, "--json"))


@pytest.mark.parametrize(("before", "after"), [("k = 5", "k = 4"), ("seed = 0", "seed = 1"), ("l = 2\n", "")])
def test_a_changed_study(copy, before, after):
    text = (copy / "study.toml").read_text()
    assert before in text
    (copy / "study.toml").write_text(text.replace(before, after))
    require_found(command("verify", copy, "--json"), "ledger of 'holder-1'")


def forged(run: Path, holder: str) -> None:
    """Put another identity in a holder's place, with a ledger and an endorsement that fit: a perfect forgery."""
    forger, study = Identity.for_simulation(9, "forger"), load_study(run / "study.toml").study
    report = json.loads((run / "report.json").read_text())
    report["holders"][holder]["identity"] = forger.public.hex()
    write_report(run, report)
    seal = endorsement(study.digest, pyarrow.parquet.read_table(run / "release.parquet"), report).hex()
    for name in study.holders:
        identity = forger if name == holder else Identity.for_simulation(0, name)
        rewrite(ledger(run, name), lambda lines, who=name, by=identity: resigned(lines, study.digest, who, by, seal))
    (run / "report.html").write_text(folder_page(run))


def resigned(lines: list[str], study: str, holder: str, identity: Identity, seal: str) -> list[str]:
    before, made = genesis(study, holder), []
    for entry in map(json.loads, lines):
        entry["before"] = before
        if entry["note"].startswith("endorsed "):
            entry["note"] = f"endorsed {seal}"
        before = entry["hash"] = entry_hash(entry)
        entry["signature"] = identity.sign(bytes.fromhex(before)).hex()
        made.append(json.dumps(entry, sort_keys=True))
    return made


def test_a_swapped_identity_is_found_by_its_pin(copy):
    pin = f"holder-2={Identity.for_simulation(0, 'holder-2').public.hex()}"
    assert command("verify", copy, "--pin", pin).code == 0
    forged(copy, "holder-2")
    assert command("verify", copy).code == 0, "from its files alone, a perfect forgery is in order"
    require_found(command("verify", copy, "--pin", pin, "--json"), "not the pinned identity: holder-2")


def test_an_identity_named_in_the_report_alone_does_not_fit_the_ledger(copy):
    report = json.loads((copy / "report.json").read_text())
    report["holders"]["holder-1"]["identity"] = Identity.for_simulation(9, "forger").public.hex()
    write_report(copy, report)
    require_found(command("verify", copy, "--json"), "the signature does not fit")


def test_a_pin_of_a_holder_that_took_no_part(original):
    require_found(command("verify", original, "--pin", f"stranger={'0' * 64}"), "not the pinned identity: stranger")


@pytest.mark.parametrize("pin", ["holder-1", "holder-1=12", f"holder-1={'x' * 64}"])
def test_a_pin_that_is_none_is_a_fault_of_the_command_line(original, pin):
    answer = command("verify", original, "--pin", pin)
    assert (answer.code, answer.out) == (3, "")
    assert "--pin is holder=key with 64 hex digits" in answer.err


@pytest.mark.parametrize(
    "name", ["release.parquet", "release.csv", "report.json", "report.html", "study.toml", "ledger/holder-1.jsonl"]
)
def test_a_missing_file_is_named(copy, name):
    (copy / name).unlink()
    require_found(command("verify", copy, "--json"), name)


@pytest.mark.parametrize("name", ["release.parquet", "release.csv", "report.json", "report.html", "study.toml"])
def test_a_file_of_garbage(copy, name):
    (copy / name).write_bytes(b"\xff\x00 garbage")
    require_found(command("verify", copy, "--json"))


@pytest.mark.parametrize("content", ["[]", "{}", '{"columns": 3}', '{"columns": [{"name": "age"}]}', "null"])
def test_a_report_of_another_shape(copy, content):
    (copy / "report.json").write_text(content)
    require_found(command("verify", copy, "--json"))


def test_one_changed_word_of_the_page(copy):
    page = copy / "report.html"
    page.write_text(page.read_text().replace("k-anonymity is kept", "k-anonymity is held", 1))
    require_found(command("verify", copy, "--json"), "report.html is not what report.json and the ledgers give")
    answer = command("report", copy)
    assert (answer.code, f"Written: {page}" in answer.out) == (0, True)
    assert command("verify", copy).code == 0


def test_a_page_drawn_by_another_version_is_compared_but_for_its_pictures(copy, monkeypatch):
    import coordinator.audit

    page = copy / "report.html"
    before = page.read_text()
    monkeypatch.setattr(coordinator.audit, "version", lambda name: "another")
    page.write_text(before.replace("<path", '<path class="other"', 1))
    assert command("verify", copy).code == 0
    page.write_text(before.replace("k-anonymity is kept", "k-anonymity is held", 1))
    require_found(command("verify", copy, "--json"), "report.html is not what")


def test_a_folder_that_is_no_run(tmp_path):
    require_found(command("verify", tmp_path, "--json"), "is not a run")
    require_found(command("verify", tmp_path / "absent", "--json"), "does not exist")
    (tmp_path / "file").touch()
    require_found(command("verify", tmp_path / "file", "--json"), "is not a folder")
