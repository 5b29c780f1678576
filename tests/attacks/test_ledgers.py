"""Attacks on a holder's memory of what has left: rollback, races, crashes; and on what the ledger itself tells."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import time
import traceback

import numpy as np
import pyarrow as pa
import pytest

import nodes.guard
import nodes.holder
from federated_anon.columns import Kind, Role
from federated_anon.errors import Code, StorageFailed
from federated_anon.ledger import Ledger
from federated_anon.messages import Step, decode
from federated_anon.messages import payloads as p
from nodes.guard import Guard
from nodes.holder import DataHolder
from nodes.identity import data_version
from tests.attacks.doors import NONE, aligned_liars, make_holder, number_table
from tests.simulator import Driver, LyingCoordinator, Tape, make_holders, make_study

STUDY = make_study(["north"], 3)
PEOPLE = 30


def up_to_release(folder, made=None, study=STUDY):
    """One holder, led up to the release, which is for the test to ask."""
    made = made or number_table(np.random.default_rng(0).normal(50, 10, PEOPLE))
    holder = make_holder(folder, "north", made, ["north"])
    liar = aligned_liars(study, {"north": holder})["north"]
    liar.map = liar.ask(Step.MAP, p.TrainMap(np.arange(PEOPLE, dtype=np.int32), 2, 2, NONE))
    liar.code = liar.ask(Step.CODE, p.MakeCode(()))
    return liar


def partition(shift: int) -> np.ndarray:
    """Threes of people, shifted by one person or more."""
    return (np.roll(np.arange(PEOPLE), shift) // 3).astype(np.int32)


def ledger_of(liar) -> Ledger:
    return liar.holder._guard._ledger


def both_released(liar, between) -> list[bool]:
    """Ask for two partitions, with ``between`` done in the folder of the ledger after the first."""
    answers = []
    for shift in (0, 1):
        liar.ask(Step.CONSTRAIN, p.CheckGroups(0, partition(shift)))
        liar.ask(Step.CONSTRAIN, p.CheckGroups(0, partition(shift)))
        answers.append(isinstance(liar.ask(Step.RELEASE, p.MakeRelease(partition(shift), ("income",))), p.Block))
        between(ledger_of(liar).path)
    return answers


def cut_back(path):
    lines = path.read_text().splitlines(keepends=True)
    keep = [i for i, line in enumerate(lines) if json.loads(line)["step"] in ("constrain", "release")]
    path.write_text("".join(lines[: keep[0]]) if keep else "".join(lines))


@pytest.mark.parametrize("between", [cut_back, lambda path: path.unlink(missing_ok=True)], ids=["cut", "removed"])
def test_a_ledger_rolled_back_while_the_holder_runs_is_noticed(tmp_path, between):
    assert both_released(up_to_release(tmp_path), between) == [True, False]


@pytest.mark.parametrize("between", [cut_back, lambda path: path.unlink(missing_ok=True)], ids=["cut", "removed"])
def test_a_ledger_rolled_back_unguarded_lets_a_second_partition_out(tmp_path, monkeypatch, between):
    monkeypatch.setattr(Guard, "_require_not_rolled_back", lambda self, study: None)
    assert both_released(up_to_release(tmp_path), between) == [True, True]


def test_refusals_without_end_cost_the_same_each(tmp_path):
    """Garbage is recorded, so it must not make the holder slower the longer it comes: nothing before is read again."""
    liar = up_to_release(tmp_path)
    for _ in range(20):
        liar.send(b"garbage")
    path, read = ledger_of(liar).path, []
    assert path.stat().st_size < 50_000
    original = type(path).read_text
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(path), "read_text", lambda self, *a, **k: read.append(self) or original(self, *a, **k))
        liar.send(b"garbage")
    assert read == []


def test_a_changed_ledger_is_noticed_after_a_restart(tmp_path):
    """A restarted holder checks chain and signatures; a cut at the end, or a file that is gone, it cannot see."""
    liar = up_to_release(tmp_path)
    path = ledger_of(liar).path
    path.write_text(path.read_text().replace('"round": 0', '"round": 1', 1))
    again = LyingCoordinator(DataHolder(liar.holder._settings), STUDY, 20_000)
    assert again.ask(Step.ENROL, p.Enrol(STUDY.text)) == p.Refused(Code.VERIFICATION)


def raced(liar, monkeypatch, answers):
    """Two threads ask for two partitions at once; the ledger is slow, so that both checks can pass before it is."""
    slow = Guard._record

    def late(self, *arguments, **named):
        time.sleep(0.2)
        slow(self, *arguments, **named)

    liar.ask(Step.CONSTRAIN, p.CheckGroups(0, partition(0)))
    monkeypatch.setattr(Guard, "_record", late)
    asks = [p.MakeRelease(partition(0), ("income",)), p.MakeRelease(partition(1), ("income",))]
    threads = [threading.Thread(target=lambda ask=ask: answers.append(liar.ask(Step.RELEASE, ask))) for ask in asks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(isinstance(answer, p.Block) for answer in answers)


def test_two_releases_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(nodes.holder, "require_checked", lambda checked, groups: None)
    assert raced(up_to_release(tmp_path), monkeypatch, []) == 1


def test_two_releases_at_once_unguarded(tmp_path, monkeypatch):
    monkeypatch.setattr(nodes.holder, "require_checked", lambda checked, groups: None)
    monkeypatch.setattr(Guard, "alone", lambda self: contextlib.nullcontext())
    assert raced(up_to_release(tmp_path), monkeypatch, []) == 2


def test_two_processes_on_one_ledger_wait_for_each_other(tmp_path):
    """Two holders over one folder, as after a restart that was none: the second waits for the first's lock."""
    liar = up_to_release(tmp_path)
    second = Guard(liar.holder._settings)
    entered = threading.Event()

    def enter():
        with second.alone():
            entered.set()

    with liar.holder._guard.alone():
        waiting = threading.Thread(target=enter)
        waiting.start()
        assert not entered.wait(0.2)
    waiting.join(5)
    assert entered.is_set()


def test_a_crash_between_entry_and_reply_gives_the_same_reply_later(tmp_path, monkeypatch):
    """The entry is on disk, the reply was lost: the same request is answered alike, another one is not."""
    liar = up_to_release(tmp_path)
    liar.ask(Step.CONSTRAIN, p.CheckGroups(0, partition(0)))
    first = liar.ask(Step.RELEASE, p.MakeRelease(partition(0), ("income",)))  # Never arrives.
    again = aligned_liars(STUDY, {"north": DataHolder(liar.holder._settings)}, first=20_000)["north"]
    again.ask(Step.MAP, p.TrainMap(np.arange(PEOPLE, dtype=np.int32), 2, 2, NONE))
    again.ask(Step.CODE, p.MakeCode(()))
    assert again.ask(Step.CONSTRAIN, p.CheckGroups(0, partition(1))) == p.Refused(Code.CHANGED_REQUEST)
    again.ask(Step.CONSTRAIN, p.CheckGroups(0, partition(0)))
    reply = again.ask(Step.RELEASE, p.MakeRelease(partition(0), ("income",)))
    assert reply.representatives.equals(first.representatives)


def test_a_half_written_entry_stops_the_holder(tmp_path):
    liar = up_to_release(tmp_path)
    path = ledger_of(liar).path
    path.write_text(path.read_text() + '{"step": "rel')
    assert liar.ask(Step.CONSTRAIN, p.CheckGroups(0, partition(0))) == p.Refused(Code.FAULT)


def fault_on_a_full_disk(liar, monkeypatch):
    """A step fails with a text that quotes a record, and the refusal cannot be written either: what crosses then."""

    def fails(*_):
        raise ValueError("Person 00001 earns 4711")

    def full(self, line):
        raise StorageFailed("disk full")

    monkeypatch.setattr(nodes.holder, "lifted_groups", fails)
    monkeypatch.setattr(Ledger, "_write", full)
    try:
        return str(liar.ask(Step.CONSTRAIN, p.CheckGroups(0, partition(0))))
    except Exception:
        return traceback.format_exc()


def test_a_fault_on_a_full_disk_crosses_as_a_code(tmp_path, monkeypatch):
    told = fault_on_a_full_disk(up_to_release(tmp_path), monkeypatch)
    assert told == "Refused(code='holder-fault')"


def test_a_fault_on_a_full_disk_unguarded_carries_the_record_with_it(tmp_path, monkeypatch):
    """An exception out of the refusal holds the first one as its context, and Ray sends both as text."""
    monkeypatch.setattr(Guard, "refuse", lambda self, content, error: self._ledger.append({}))
    assert "4711" in fault_on_a_full_disk(up_to_release(tmp_path), monkeypatch)


def guessed_from_version(folder):
    """The reader of a published ledger knows all but two persons' illnesses, and tries them against the data's name."""
    ill = np.array(["yes", "no"] * (PEOPLE // 2))
    made = number_table(np.arange(float(PEOPLE)), ill=(Role.SENSITIVE, Kind.CATEGORY, ill))
    liar = up_to_release(folder, made)
    told = {json.loads(line)["data_version"] for line in ledger_of(liar).lines()}
    for guess in itertools.product(["yes", "no"], repeat=2):
        tried = made[0].set_column(2, "ill", pa.array([*guess, *ill[2:]]))
        if data_version(tried, "id") in told:
            return guess == tuple(ill[:2])
    return False


def test_the_name_of_the_data_in_a_published_ledger_confirms_no_guess(tmp_path):
    assert not guessed_from_version(tmp_path)


def test_the_name_of_the_data_unkeyed_confirms_a_guess(tmp_path, monkeypatch):
    monkeypatch.setattr(nodes.guard, "derive", lambda secret, kind, version: bytes.fromhex(version))
    assert guessed_from_version(tmp_path)


def test_a_digest_of_any_length_is_not_signed(tmp_path):
    """The ledger would hold whatever a coordinator calls a digest: a million bytes, or a text."""
    liar = up_to_release(tmp_path)
    liar.ask(Step.CONSTRAIN, p.CheckGroups(0, partition(0)))
    liar.ask(Step.RELEASE, p.MakeRelease(partition(0), ("income",)))
    before = ledger_of(liar).path.stat().st_size
    assert liar.ask(Step.CLOSE, p.Close(b"x" * 1_000_000)) == p.Refused(Code.MALFORMED)
    assert ledger_of(liar).path.stat().st_size - before < 2000


@pytest.mark.parametrize("study", ["../" * 21 + "x", "/" + "x" * 63, "A" * 64, "\0" * 64])
def test_the_name_of_a_study_cannot_lead_out_of_the_ledgers_folder(tmp_path, study):
    """A file whose lines are read as a ledger, outside the folder: the code of the refusal would tell it is there."""
    holder = make_holders(tmp_path)["north"]
    liar = LyingCoordinator(holder, make_study())
    assert liar.ask(Step.ENROL, p.Enrol(make_study().text), study=study) == p.Refused(Code.MALFORMED)


@pytest.mark.parametrize("name", ["../north", "north/..", "north\n", "", ".", "..", "a" * 65, "nörth", "a\0b"])
def test_names_that_are_paths_are_refused(name):
    from federated_anon.errors import SettingsRefused

    with pytest.raises(SettingsRefused):
        make_study([name])
    with pytest.raises(SettingsRefused):
        make_study(["north"], name=name)


def searched(folder, caplog):
    """Everything that leaves or stays in writing: replies, ledgers, log. Which ids and texts are found where."""
    holders = make_holders(folder)
    tape = Tape(holders)
    with caplog.at_level("DEBUG"):
        Driver(make_study(), tape).run()
        liar = LyingCoordinator(holders["north"], make_study())
        for step, payload in [
            (Step.MAP, p.TrainMap(np.array([-1, 5], dtype=np.int32), 2, 2, NONE)),
            (Step.RELEASE, p.MakeRelease(np.zeros(60, dtype=np.int32), ("id",))),
            (Step.CLOSE, p.Close(b"")),
        ]:
            liar.ask(step, payload)
        liar.send(b"garbage")
    ids = [f"Person {i:04d}" for i in range(60)] + [f"person {i:04d}" for i in range(60)]
    before = [reply for _, reply in tape.replies if not isinstance(decode(reply, p.REPLIES).payload, p.Block)]
    written = b"".join(path.read_bytes() for path in folder.rglob("*.jsonl"))
    places = {"replies": b"".join(reply for _, reply in tape.replies), "ledgers": written, "log": caplog.text.encode()}
    found = {where: [one for one in ids if one.encode() in content] for where, content in places.items()}
    illness = {where: b"gout" in content for where, content in (places | {"replies": b"".join(before)}).items()}
    return found, illness


def test_no_id_and_no_text_is_in_replies_ledgers_or_log(tmp_path, caplog):
    found, illness = searched(tmp_path, caplog)
    assert found == {"replies": [], "ledgers": [], "log": []}
    assert not any(illness.values())


def test_the_search_finds_what_is_there(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(
        nodes.holder, "common_rows", lambda people, *_: (_ for _ in ()).throw(ValueError("Person 0001"))
    )
    holders = make_holders(tmp_path)
    with caplog.at_level("DEBUG"), contextlib.suppress(Exception):
        Driver(make_study(), Tape(holders)).run()
    assert "Person 0001" in caplog.text, "text of a fault stays in the holder's own log"
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*.jsonl"))
    assert b"Person 0001" not in written
