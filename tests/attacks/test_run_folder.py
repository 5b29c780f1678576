"""Somebody with write access to the run folder: every byte of every file, files added, and whole runs forged."""

from __future__ import annotations

import json
import shutil

import pyarrow.parquet
import pytest

import coordinator.audit
from coordinator.audit import audited
from coordinator.folder import write_run
from federated_anon.crypto.signing import Identity
from federated_anon.errors import VerificationFailed
from federated_anon.report.run_page import folder_page
from tests.simulator import drive, make_holders, make_study

STUDY = make_study()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run, and the identities of its holders."""
    place = tmp_path_factory.mktemp("run")
    write_run(place / "run", drive(STUDY, make_holders(place, rows=24)))
    return place / "run", {name: Identity.for_simulation(0, name).public.hex() for name in STUDY.holders}


def is_noticed(folder, pins=None) -> bool:
    try:
        audited(folder, pins)
    except VerificationFailed:
        return True
    return False


def unnoticed(folder, name, step):
    """Places of single bytes that can be flipped without ``audited`` noticing, every ``step`` bytes."""
    path = folder / name
    whole = path.read_bytes()
    found = []
    for place in range(0, len(whole), step):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x01]) + whole[place + 1 :])
        if not is_noticed(folder):
            found.append(place)
    path.write_bytes(whole)
    return found, len(range(0, len(whole), step))


@pytest.mark.parametrize(
    ("name", "step"),
    [("release.csv", 5), ("study.toml", 3), ("report.json", 23), ("ledger/north.jsonl", 61), ("release.parquet", 19)],
)
def test_every_flipped_byte_is_noticed(finished, tmp_path, name, step):
    folder = tmp_path / "run"
    shutil.copytree(finished[0], folder)
    found, tried = unnoticed(folder, name, step)
    assert found == [], f"{len(found)} of {tried}"


def test_flipped_bytes_of_parquet_unguarded(finished, tmp_path, monkeypatch):
    """A third of them are statistics and other marks that readers use and that no signature covers."""
    monkeypatch.setattr(coordinator.audit, "_require_as_written", lambda folder, run: None)
    monkeypatch.setattr(coordinator.audit, "_require_page", lambda folder, run: None)
    folder = tmp_path / "run"
    shutil.copytree(finished[0], folder)
    found, tried = unnoticed(folder, "release.parquet", 31)
    assert len(found) > 0.2 * tried


def with_false_marks(folder):
    """The release with marks of the liar's own in its parquet file, and the same rows."""
    table = pyarrow.parquet.read_table(folder / "release.parquet")
    pyarrow.parquet.write_table(
        table.replace_schema_metadata({"licence": "do as you like"}), folder / "release.parquet"
    )


@pytest.mark.parametrize(
    "spoil",
    [
        with_false_marks,
        lambda folder: (folder / "release2.csv").write_text("a,b\n1,2\n"),
        lambda folder: (folder / "ledger" / "east.jsonl").write_text("{}\n"),
        lambda folder: (folder / "report.json").write_text((folder / "report.json").read_text() + "\n"),
        lambda folder: (folder / "study.toml").write_text((folder / "study.toml").read_text() + "# k = 2\n"),
        lambda folder: (folder / "report.html").write_text((folder / "report.html").read_text() + "<!-- -->"),
        lambda folder: twice_named(folder / "ledger" / "north.jsonl"),
    ],
    ids=["parquet marks", "another file", "another ledger", "white space", "comment", "page", "key named twice"],
)
def test_what_the_signatures_do_not_cover_is_noticed(finished, tmp_path, monkeypatch, spoil):
    folder = tmp_path / "run"
    shutil.copytree(finished[0], folder)
    assert not is_noticed(folder, finished[1])
    spoil(folder)
    assert is_noticed(folder, finished[1])


def twice_named(path):
    """An entry with a key named twice: readers differ on which one counts."""
    first, *rest = path.read_text().splitlines()
    path.write_text("\n".join(['{"bytes": 0, ' + first[1:], *rest]) + "\n")


def forged(folder, identity):
    """All ledgers signed anew by somebody else, with the report naming that key."""
    from federated_anon.ledger import entry_hash, genesis

    report = json.loads((folder / "report.json").read_text())
    table = pyarrow.parquet.read_table(folder / "release.parquet")
    for name in STUDY.holders:
        report["holders"][name]["identity"] = identity.public.hex()
    (folder / "report.json").write_text(json.dumps(report, indent=2, sort_keys=True) + "\n")
    seal = coordinator.audit.endorsement(STUDY.digest, table, report).hex()
    for name in STUDY.holders:
        path, before, lines = folder / "ledger" / f"{name}.jsonl", genesis(STUDY.digest, name), []
        for line in path.read_text().splitlines():
            entry = json.loads(line) | {"before": before}
            entry["note"] = f"endorsed {seal}" if entry["note"].startswith("endorsed") else entry["note"]
            entry["hash"] = before = entry_hash(entry)
            entry["signature"] = identity.sign(bytes.fromhex(before)).hex()
            lines.append(json.dumps(entry, sort_keys=True) + "\n")
        path.write_text("".join(lines))
    (folder / "report.html").write_text(folder_page(folder))


def test_a_run_signed_by_strangers_is_noticed_by_whoever_knows_the_holders(finished, tmp_path):
    """Without identities known from elsewhere a run proves only that its own keys signed it: pins are needed."""
    folder = tmp_path / "run"
    shutil.copytree(finished[0], folder)
    forged(folder, Identity.create())
    assert not is_noticed(folder)
    assert is_noticed(folder, finished[1])
