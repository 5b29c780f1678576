"""A holder against a coordinator that lies: every lie is refused with a code, the ledger stays whole."""

import dataclasses

import numpy as np
import pytest

from federated_anon.columns import Column, Kind, Role
from federated_anon.crypto.agreement import agreement_key, statement
from federated_anon.crypto.signing import Identity
from federated_anon.errors import Code, HolderRefused, StorageFailed
from federated_anon.ledger import Ledger, verified_entries
from federated_anon.messages import Step, decode
from federated_anon.messages import payloads as p
from nodes.holder import DataHolder
from tests.simulator import Driver, LyingCoordinator, Tape, drive, make_holders, make_settings, make_study, make_table

STUDY = make_study()


@pytest.fixture
def played(tmp_path):
    """A study played to its end, everything that went by, and a liar at the door of the first holder."""
    holders = make_holders(tmp_path)
    tape = Tape(holders)
    Driver(STUDY, tape).run()
    return tape, LyingCoordinator(holders["north"], STUDY), holders["north"]


def request_of(tape: Tape, step: Step, name: str = "north") -> bytes:
    return next(content for who, which, content in tape.requests if who == name and which is step)


def payload_of(tape: Tape, step: Step) -> object:
    return decode(request_of(tape, step), p.REQUESTS).payload


def refused(reply: object, code: Code) -> None:
    assert reply == p.Refused(code)


def ledger_is_whole(holder: DataHolder, last: Code | None = None) -> None:
    lines = holder._guard.ledger_lines()
    entries = verified_entries(lines, STUDY.digest, "north", Identity.for_simulation(0, "north").public)
    if last is not None:
        assert entries[-1]["note"] == last
        assert entries[-1]["sent"] == ""


def test_groups_of_two_are_refused(played):
    tape, liar, holder = played
    groups = payload_of(tape, Step.RELEASE).groups.copy()
    pairs = (np.arange(len(groups)) // 2).astype(np.int32)
    refused(liar.ask(Step.CONSTRAIN, p.CheckGroups(0, pairs)), Code.CHANGED_REQUEST)
    refused(liar.ask(Step.RELEASE, p.MakeRelease(pairs, ())), Code.CHANGED_REQUEST)
    ledger_is_whole(holder, Code.CHANGED_REQUEST)


def test_a_first_release_in_groups_of_two_is_refused(tmp_path):
    """Up to the release all is honest; then the coordinator asks for pairs."""
    holders = make_holders(tmp_path)

    class Greedy(Tape):
        def ask(self, requests, timeout):
            step = self.peek(requests)
            if step is Step.RELEASE:
                liar = LyingCoordinator(self.holders["north"], STUDY)
                pairs = (np.arange(60) // 2).astype(np.int32)
                self.verdict = liar.ask(Step.RELEASE, p.MakeRelease(pairs, ("north_number",)))
                raise KeyboardInterrupt
            return super().ask(requests, timeout)

        def peek(self, requests):
            return decode(next(iter(requests.values())), p.REQUESTS).envelope.step

    greedy = Greedy(holders)
    with pytest.raises(KeyboardInterrupt):
        Driver(STUDY, greedy).run()
    refused(greedy.verdict, Code.SMALL_GROUP)


def test_a_second_partition_with_one_record_moved_is_refused(played):
    tape, liar, holder = played
    honest = payload_of(tape, Step.RELEASE)
    groups = honest.groups.copy()
    sizes = np.bincount(groups)
    giver = int(np.argmax(sizes))
    groups[np.flatnonzero(groups == giver)[0]] = (giver + 1) % len(sizes)
    refused(liar.ask(Step.RELEASE, p.MakeRelease(groups, honest.columns)), Code.CHANGED_REQUEST)
    ledger_is_whole(holder, Code.CHANGED_REQUEST)


def test_a_second_study_on_the_same_data_cannot_have_other_groups(tmp_path):
    drive(STUDY, make_holders(tmp_path))
    other = make_study(k=4)
    with pytest.raises(HolderRefused) as stopped:
        drive(other, make_holders(tmp_path))
    assert stopped.value.code is Code.SECOND_PARTITION


def test_the_same_study_may_run_again_and_gives_the_same_release(tmp_path):
    first = drive(STUDY, make_holders(tmp_path))
    again = drive(STUDY, make_holders(tmp_path), first_sequence=1000)
    assert first.release.table.equals(again.release.table)
    assert first.report == again.report


def test_a_replayed_message_is_refused(played):
    tape, liar, holder = played
    for step in (Step.ENROL, Step.MAP, Step.CODE, Step.RELEASE):
        refused(liar.send(request_of(tape, step)), Code.REPLAYED)
    ledger_is_whole(holder, Code.REPLAYED)


def test_a_replay_is_refused_after_a_restart_too(played, tmp_path):
    tape, _, _ = played
    reborn = LyingCoordinator(make_holders(tmp_path)["north"], STUDY)
    refused(reborn.send(request_of(tape, Step.ENROL)), Code.REPLAYED)


def test_more_rounds_than_agreed_are_refused(played):
    tape, liar, _ = played
    asked = payload_of(tape, Step.COLLABORATE)
    for number in (1, 2, 50, -1):
        lie = dataclasses.replace(asked, round=number)
        refused(liar.ask(Step.COLLABORATE, lie), Code.POLICY_ROUNDS)
    refused(liar.ask(Step.CONSTRAIN, p.CheckGroups(20, payload_of(tape, Step.RELEASE).groups)), Code.POLICY_ROUNDS)


def test_a_study_with_more_rounds_than_the_policy_allows_is_refused(tmp_path):
    holder = make_holders(tmp_path, most_rounds=2)["north"]
    greedy = make_study(collaboration={"rounds": 3})
    refused(LyingCoordinator(holder, greedy).ask(Step.ENROL, p.Enrol(greedy.text)), Code.POLICY_ROUNDS)


@pytest.mark.parametrize("column", ["id", "north_secret", "south_number", ""])
def test_a_column_that_is_not_for_sending_is_refused(tmp_path, column):
    table, columns = make_table(60, 0, "north")
    table = table.append_column("north_secret", table["north_number"])
    columns = (*columns, Column("north_secret", Role.QUASI, Kind.NUMBER))
    settings = make_settings(tmp_path, "north", table, columns, ("north",), never_send=["north_secret"])
    holder, study = DataHolder(settings), make_study(["north"])

    class Curious(Tape):
        def ask(self, requests, timeout):
            message = decode(requests["north"], p.REQUESTS)
            if message.envelope.step is Step.RELEASE:
                liar = LyingCoordinator(self.holders["north"], study)
                wish = dataclasses.replace(message.payload, columns=(*message.payload.columns, column))
                self.verdict = liar.ask(Step.RELEASE, wish)
                raise KeyboardInterrupt
            return super().ask(requests, timeout)

    curious = Curious({"north": holder})
    with pytest.raises(KeyboardInterrupt):
        Driver(study, curious).run()
    refused(curious.verdict, Code.POLICY_COLUMN)


def test_a_column_that_is_never_sent_is_not_even_enrolled(tmp_path):
    table, columns = make_table(60, 0, "north")
    settings = make_settings(tmp_path, "north", table, columns, ("north",), never_send=["north_number"])
    outcome = drive(make_study(["north"]), {"north": DataHolder(settings)})
    assert "north_number" not in outcome.release.table.column_names


def test_another_studys_message_is_refused(played):
    _, liar, holder = played
    refused(liar.ask(Step.EVALUATE, p.Evaluate(), study="f" * 64), Code.OTHER_STUDY)
    ledger_is_whole(holder, Code.OTHER_STUDY)


def test_a_study_that_is_not_what_its_digest_says_is_refused(played):
    _, liar, _ = played
    looser = make_study(k=2)
    refused(liar.ask(Step.ENROL, p.Enrol(looser.text)), Code.OTHER_STUDY)


@pytest.mark.parametrize("garbage", [b"", b"\x00" * 100, b"\xff\xff\xff\xff\x10\x00\x00\x00" * 9, "ä".encode() * 40])
def test_garbage_is_refused(played, garbage):
    _, liar, holder = played
    refused(liar.send(garbage), Code.MALFORMED)
    ledger_is_whole(holder, Code.MALFORMED)


def test_a_stranger_cannot_ask(played):
    _, liar, _ = played
    refused(liar.ask(Step.EVALUATE, p.Evaluate(), sender="south"), Code.WRONG_SENDER)


def test_an_oversized_request_is_refused(tmp_path):
    holder = make_holders(tmp_path, largest_message=2000)["north"]
    refused(LyingCoordinator(holder, STUDY).send(b"x" * 2001), Code.OVERSIZED)


@pytest.mark.parametrize(
    ("policy", "changes", "code"),
    [
        ({"smallest_k": 4}, {}, Code.POLICY_K),
        ({"exposures": ["sealed"]}, {}, Code.POLICY_EXPOSURE),
        ({"methods": ["c-tca"]}, {}, Code.POLICY_METHOD),
    ],
)
def test_a_study_that_the_policy_forbids_is_refused_at_the_door(tmp_path, policy, changes, code):
    holder = make_holders(tmp_path, **policy)["north"]
    study = make_study(**changes)
    refused(LyingCoordinator(holder, study).ask(Step.ENROL, p.Enrol(study.text)), code)


def test_steps_out_of_order_are_refused(tmp_path):
    liar = LyingCoordinator(make_holders(tmp_path)["north"], STUDY)
    refused(liar.ask(Step.EVALUATE, p.Evaluate()), Code.OUT_OF_ORDER)
    assert isinstance(liar.ask(Step.ENROL, p.Enrol(STUDY.text)), p.Enrolled)
    groups = (np.arange(60) // 5).astype(np.int32)
    for step, payload in [
        (Step.ALIGN, p.Align(b"")),
        (Step.MAP, p.TrainMap(np.arange(60, dtype=np.int32), 3, 3, np.zeros(0, np.int32))),
        (Step.CONSTRAIN, p.CheckGroups(0, groups)),
        (Step.RELEASE, p.MakeRelease(groups, ("north_number",))),
        (Step.EVALUATE, p.Evaluate()),
        (Step.CLOSE, p.Close(b"x" * 32)),
    ]:
        refused(liar.ask(step, payload), Code.OUT_OF_ORDER)


def test_a_man_in_the_middle_of_the_keys_is_noticed(played, tmp_path):
    """The coordinator swaps a partner's agreement key for its own, signed or not by an identity of its own."""
    tape, _, _ = played
    honest = payload_of(tape, Step.SHARE)
    middle = Identity.create()
    own = agreement_key(middle, STUDY.digest).public_key().public_bytes_raw()
    forged = middle.sign(statement(STUDY.digest, "south", own))
    lies = [
        dataclasses.replace(honest, agreements=(honest.agreements[0], own)),
        dataclasses.replace(honest, agreements=(honest.agreements[0], own), signatures=(honest.signatures[0], forged)),
        dataclasses.replace(
            honest,
            agreements=(honest.agreements[0], own),
            signatures=(honest.signatures[0], forged),
            identities=(honest.identities[0], middle.public),
        ),
        dataclasses.replace(honest, holders=("north", "middle")),
    ]
    for number, lie in enumerate(lies):
        liar = LyingCoordinator(make_holders(tmp_path / str(number))["north"], STUDY)
        liar.ask(Step.ENROL, p.Enrol(STUDY.text))
        refused(liar.ask(Step.SHARE, lie), Code.ROSTER)


def test_an_unpinned_partner_is_refused(tmp_path):
    table, columns = make_table(60, 0, "north")
    alone = make_settings(tmp_path, "north", table, columns, ("north",))
    south, its = make_table(60, 1, "south")
    holders = {
        "north": DataHolder(alone),
        "south": DataHolder(make_settings(tmp_path, "south", south, its, ("north", "south"))),
    }
    with pytest.raises(HolderRefused) as stopped:
        drive(STUDY, holders)
    assert stopped.value.code is Code.ROSTER


def test_no_value_of_a_record_is_in_any_refusal(played, tmp_path):
    """Refusals of all kinds are searched for every id and for every text value of the holder."""
    tape, liar, holder = played
    replies = [
        holder.answer(b"garbage"),
        holder.answer(request_of(tape, Step.RELEASE)),
    ]
    table, _ = make_table(60, 0, "north")
    values = {text.encode() for name in ("id", "north_colour", "north_illness") for text in table[name].to_pylist()}
    for reply in replies:
        assert len(reply) < 1500
        assert not any(value in reply for value in values)
    assert liar.ask(Step.EVALUATE, p.Evaluate(), study="f" * 64) == p.Refused(Code.OTHER_STUDY)


def test_an_unexpected_fault_crosses_as_a_code(played, monkeypatch):
    _, liar, holder = played
    monkeypatch.setattr(holder, "_recall", lambda kind: 1 / 0)
    refused(liar.ask(Step.EVALUATE, p.Evaluate()), Code.FAULT)


def test_the_ledger_entry_is_on_disk_before_the_reply_leaves(tmp_path, monkeypatch):
    """If the ledger cannot be written, no reply leaves."""
    holder = make_holders(tmp_path)["north"]

    def full(self, line):
        raise StorageFailed("disk full")

    monkeypatch.setattr(Ledger, "_write", full)
    refused(LyingCoordinator(holder, STUDY).ask(Step.ENROL, p.Enrol(STUDY.text)), Code.STORAGE)


def test_moved_people_in_a_second_map_request_are_refused(played):
    tape, liar, _ = played
    honest = payload_of(tape, Step.MAP)
    fewer = dataclasses.replace(honest, positions=honest.positions[:-1])
    refused(liar.ask(Step.MAP, fewer), Code.CHANGED_REQUEST)
