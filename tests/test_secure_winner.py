"""Sealed studies whose winners come from a secure argmax: the same release, and no gain in any message."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

from coordinator.audit import audited
from coordinator.folder import write_run
from federated_anon.columns import Column, Kind, Role
from federated_anon.errors import Code, SettingsRefused, VerificationFailed
from federated_anon.messages import Step, decode
from federated_anon.messages.payloads import REPLIES, REQUESTS, Refused
from federated_anon.study import Study
from nodes.holder import DataHolder
from tests.simulator import Driver, LyingCoordinator, Tape, drive, make_holders, make_settings, make_study

NAMES = ("north", "south", "west", "east", "centre")
SEALED = {"exposures": ["sealed"]}
SECURE = {"winner": "secure"}


@pytest.fixture
def one_name(monkeypatch):
    """Every study under one digest: what depends on a study's name alone is then the same in both."""
    monkeypatch.setattr(Study, "digest", property(lambda study: "7" * 64))


@pytest.mark.parametrize(("count", "rows", "k"), [(2, 60, 3), (3, 60, 2), (3, 97, 4), (4, 60, 3), (5, 45, 2)])
@pytest.mark.usefixtures("one_name")
def test_the_release_is_byte_for_byte_that_of_open_gains(tmp_path, count, rows, k):
    names = NAMES[:count]
    outcomes = [
        drive(make_study(names, k, exposure="sealed", collaboration={"winner": winner}), holders)
        for winner in ("gain", "secure")
        for holders in [make_holders(tmp_path / winner, names, rows, **SEALED)]
    ]
    assert outcomes[0].release.csv() == outcomes[1].release.csv()
    assert outcomes[0].report["grouping"] == outcomes[1].report["grouping"]


def test_no_gain_is_told_and_the_run_is_audited(tmp_path):
    study, tape = (
        make_study(NAMES[:3], exposure="sealed", collaboration=SECURE),
        Tape(make_holders(tmp_path, NAMES[:3], **SEALED)),
    )
    outcome = Driver(study, tape).run()
    replies = [decode(content, REPLIES) for _, content in tape.replies]
    assert all(len(one.payload.gains) == 0 for one in replies if one.envelope.step is Step.PROPOSE)
    write_run(tmp_path / "run", outcome)
    assert audited(tmp_path / "run").view_linkage <= 1 / 3
    kept = sorted((tmp_path / "run" / "transcript").glob("*-compare-*"))
    assert len(kept) == 3 * len({one.name.split("-")[0] for one in kept})
    content = bytearray(kept[0].read_bytes())
    kept[0].unlink()
    with pytest.raises(VerificationFailed, match="missing"):
        audited(tmp_path / "run")
    kept[0].write_bytes(bytes(content[:-9]) + bytes([content[-9] ^ 1]) + bytes(content[-8:]))
    with pytest.raises(VerificationFailed):
        audited(tmp_path / "run")


class Forgetful:
    """Holders of which one is started anew before its n-th request."""

    def __init__(self, make, at: int) -> None:
        self.make, self.at, self.count, self.holders = make, at, 0, make()

    def ask(self, requests, timeout):
        if "south" in requests:
            self.count += 1
            if self.count == self.at:
                self.holders["south"] = self.make()["south"]
        return {name: self.holders[name].answer(request) for name, request in requests.items()}


@pytest.mark.parametrize("at", [6, 7, 9, 12, 13, 14, 17])
def test_a_holder_that_starts_anew_gives_the_same_bytes(tmp_path, at):
    study = make_study(NAMES[:2], exposure="sealed", collaboration=SECURE)
    expected = drive(study, make_holders(tmp_path / "whole", NAMES[:2], 24, **SEALED))
    holders = Forgetful(lambda: make_holders(tmp_path / "lost", NAMES[:2], 24, **SEALED), at)
    assert Driver(study, holders).run().release.csv() == expected.release.csv()
    assert holders.count > at


def led_to(number: int, tmp_path):
    """A holder led honestly up to a round of comparisons, and the honest request."""
    study = make_study(NAMES[:2], exposure="sealed", collaboration=SECURE)
    tape = Tape(make_holders(tmp_path / "honest", NAMES[:2], 24, **SEALED))
    Driver(study, tape).run()
    liar = LyingCoordinator(make_holders(tmp_path / "victim", NAMES[:2], 24, **SEALED)["north"], study)
    for name, step, content in tape.requests:
        payload = decode(content, REQUESTS).payload
        if name == "north":
            if step is Step.COMPARE and payload.round == number:
                return liar, payload
            assert not isinstance(liar.ask(step, payload), Refused)
    raise AssertionError("no such round")


def test_sealed_messages_that_were_changed_or_swapped_are_refused(tmp_path):
    liar, request = led_to(2, tmp_path)
    first, second = request.partners
    for partners in [(second, first), (first,), (first, second[:-1] + bytes([second[-1] ^ 1])), (first, b"")]:
        assert liar.ask(Step.COMPARE, dataclasses.replace(request, partners=partners)).code == Code.MALFORMED
    for changes in [{"seed": b"short"}, {"correction": b""}]:
        assert liar.ask(Step.COMPARE, dataclasses.replace(request, **changes)).code == Code.MALFORMED
    for number in (-1, 4, 9, 700):
        assert liar.ask(Step.COMPARE, dataclasses.replace(request, round=number)).code == Code.OUT_OF_ORDER
    assert not isinstance(liar.ask(Step.COMPARE, request), Refused)
    other = dataclasses.replace(request, seed=bytes(32))
    assert liar.ask(Step.COMPARE, other).code == Code.CHANGED_REQUEST, "other triples would open the gates' inputs"
    assert not isinstance(liar.ask(Step.COMPARE, request), Refused), "the same question may be asked again"


def test_comparisons_are_refused_where_gains_are_told(tmp_path):
    study = make_study(NAMES[:2], exposure="sealed")
    tape = Tape(make_holders(tmp_path, NAMES[:2], 24, **SEALED))
    Driver(study, tape).run()
    _, request = led_to(0, tmp_path / "other")
    liar = LyingCoordinator(tape.holders["north"], study, 10**9)
    assert liar.ask(Step.COMPARE, request).code == Code.POLICY_METHOD


@pytest.mark.parametrize(("names", "exposure"), [(("north",), "sealed"), (NAMES[:3], "open")])
def test_a_secure_winner_needs_sealed_exposure_and_partners(names, exposure):
    with pytest.raises(SettingsRefused, match="winner 'secure' needs"):
        make_study(names, exposure=exposure, collaboration=SECURE)


def test_where_all_gains_are_alike_the_first_of_the_roster_wins(tmp_path):
    """Constant columns: every comparison is a tie."""
    ids = [f"p{i}" for i in range(24)]
    holders = {}
    for name in NAMES[:3]:
        table = pa.table({"id": ids, f"{name}_x": np.ones(24)})
        columns = (Column("id", Role.KEY, Kind.TEXT), Column(f"{name}_x", Role.QUASI, Kind.NUMBER))
        holders[name] = DataHolder(make_settings(tmp_path, name, table, columns, NAMES[:3], **SEALED))
    tape = Tape(holders)
    Driver(make_study(NAMES[:3], exposure="sealed", collaboration=SECURE), tape).run()
    won = [decode(c, REQUESTS).payload.winners for _, step, c in tape.requests if step is Step.PROPOSE]
    assert any(len(one) for one in won)
    assert not any(one.any() for one in won)
