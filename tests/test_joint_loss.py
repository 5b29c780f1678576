"""Studies that ask for the total loss alone: the same figure, and no holder's part of it in any message."""

from typing import Any

import numpy as np
import pytest

from federated_anon.errors import Code, HolderRefused, SettingsRefused
from federated_anon.messages import Step, decode
from federated_anon.messages.payloads import REPLIES, REQUESTS
from nodes.holder import DataHolder
from tests.simulator import Driver, LyingCoordinator, Tape, drive, make_holders, make_settings, make_study, make_table

NAMES = ("north", "south", "west")
SEALED = {"exposures": ["sealed"], "one_release_per_data_version": False}
TOTAL = make_study(NAMES, exposure="sealed", evaluation={"losses": "total"})


def test_the_joint_loss_is_the_one_that_columns_add_up_to(tmp_path):
    holders = make_holders(tmp_path, NAMES, **SEALED)
    plain = drive(make_study(NAMES, exposure="sealed"), holders)
    joint = drive(TOTAL, holders)
    expected = plain.report["information_loss_percent"]
    assert joint.report["information_loss_percent"] == pytest.approx(expected, abs=1e-4)
    assert {c["information_loss_percent"] for c in joint.report["columns"]} == {None}
    assert {c["information_loss_percent"] for c in plain.report["columns"]} != {None}


def evaluated(tape: Tape) -> dict[str, Any]:
    replies = [(name, decode(content, REPLIES)) for name, content in tape.replies]
    return {name: reply.payload for name, reply in replies if reply.envelope.step is Step.EVALUATE}


def test_no_holders_part_leaves_and_a_restart_gives_the_same_masks(tmp_path):
    holders = make_holders(tmp_path, NAMES, **SEALED)
    tape = Tape(holders)
    Driver(TOTAL, tape).run()
    told = evaluated(tape)
    assert all(len(one.squared_error) == 0 and len(one.masked) == 2 for one in told.values())
    sums = np.sum([one.masked for one in told.values()], axis=0, dtype=np.uint64)
    assert (sums < 2**40).all()
    assert all((one.masked > 2**40).any() for one in told.values())
    again = Tape(make_holders(tmp_path, NAMES, **SEALED))
    Driver(TOTAL, again, first_sequence=10_000).run()
    assert all(np.array_equal(evaluated(again)[name].masked, one.masked) for name, one in told.items())


def test_other_data_is_never_masked_like_the_first(tmp_path):
    """The difference of two vectors under one mask would be the difference of the holder's own numbers."""
    tape = Tape(make_holders(tmp_path, NAMES, **SEALED))
    Driver(TOTAL, tape).run()
    changed = {
        name: DataHolder(make_settings(tmp_path, name, *make_table(60, seed, name), NAMES, **SEALED))
        for name, seed in zip(NAMES, (0, 1, 7), strict=True)
    }
    with pytest.raises(HolderRefused) as refused:
        Driver(TOTAL, Tape(changed), first_sequence=10_000).run()
    assert refused.value.code is Code.CHANGED_REQUEST


def test_two_holders_cannot_ask_for_a_total():
    with pytest.raises(SettingsRefused, match="fewer than 3"):
        make_study(("north", "south"), evaluation={"losses": "total"})


def test_a_masked_answer_is_asked_for_by_the_study_and_not_by_the_coordinator(tmp_path):
    holders = make_holders(tmp_path, NAMES, **SEALED)
    tape = Tape(holders)
    Driver(TOTAL, tape).run()
    request = next(c for n, step, c in tape.requests if step is Step.EVALUATE and n == "north")
    liar = LyingCoordinator(holders["north"], TOTAL, 10**9)
    reply = liar.ask(Step.EVALUATE, decode(request, REQUESTS).payload)
    assert len(reply.names) == 0
