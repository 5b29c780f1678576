import json
import os

import pytest

from federated_anon.crypto.signing import Identity
from federated_anon.errors import StorageFailed, VerificationFailed
from federated_anon.ledger import Ledger, bytes_sent, entry_hash, released_partitions, verified_entries

IDENTITY = Identity.for_simulation(0, "north")


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(tmp_path / "ledger", "s" * 64, "north", IDENTITY)
    for number in range(4):
        made.append(
            {"step": f"step {number}", "bytes": 10, "data_version": "v", "partition": "p" if number == 2 else ""}
        )
    return made


def check(ledger, lines):
    return verified_entries(lines, ledger.study, "north", IDENTITY.public)


def test_an_untouched_ledger_is_verified(ledger):
    entries = check(ledger, ledger.lines())
    assert [entry["step"] for entry in entries] == [f"step {n}" for n in range(4)]
    assert bytes_sent(entries) == 40


def test_the_file_is_for_its_owner_only(ledger):
    assert os.stat(ledger.path).st_mode & 0o077 == 0


@pytest.mark.parametrize("damage", ["remove first", "remove inner", "swap", "repeat", "change", "not json"])
def test_any_damage_is_noticed_and_located(ledger, damage):
    lines = ledger.lines()
    changed = json.dumps(json.loads(lines[1]) | {"bytes": 11})
    damaged = {
        "remove first": lines[1:],
        "remove inner": lines[:1] + lines[2:],
        "swap": [lines[0], lines[2], lines[1], lines[3]],
        "repeat": [*lines, lines[3]],
        "change": [lines[0], changed, *lines[2:]],
        "not json": [lines[0], "{", *lines[2:]],
    }[damage]
    with pytest.raises(VerificationFailed, match="line"):
        check(ledger, damaged)


def test_a_consistent_forgery_fails_by_its_signature(ledger):
    lines, entry = ledger.lines(), json.loads(ledger.lines()[-1])
    entry["bytes"] = 99
    entry["hash"] = entry_hash(entry)
    with pytest.raises(VerificationFailed, match="signature"):
        check(ledger, [*lines[:-1], json.dumps(entry)])


def test_another_holders_signature_does_not_fit(ledger):
    with pytest.raises(VerificationFailed, match="signature"):
        verified_entries(ledger.lines(), ledger.study, "north", Identity.for_simulation(0, "south").public)


def test_partitions_are_remembered_by_data_version_over_all_studies(ledger):
    other = Ledger(ledger.folder, "t" * 64, "north", IDENTITY)
    other.append({"data_version": "v", "partition": "q"})
    assert released_partitions(ledger.folder, "v", "partition") == {"p", "q"}
    assert released_partitions(ledger.folder, "w", "partition") == set()


def test_a_ledger_that_cannot_be_written_raises_and_stays_whole(ledger, monkeypatch):
    before = ledger.lines()
    monkeypatch.setattr(os, "write", lambda handle, line: len(line) // 2)
    with pytest.raises(StorageFailed, match="No space left"):
        ledger.append({"step": "lost"})
    monkeypatch.undo()
    assert ledger.lines() == before
    check(ledger, ledger.lines())
