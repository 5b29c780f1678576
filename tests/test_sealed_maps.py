"""Agreement of maps through the whole product: averages of groups leave a holder once, and nothing finer does."""

import dataclasses

import numpy as np
import pytest

from coordinator.audit import audited
from coordinator.folder import write_run
from federated_anon.errors import Code
from federated_anon.messages import Step, decode
from federated_anon.messages import payloads as p
from federated_anon.messages.averaged import Adopt, Average, Averaged, Consult
from nodes.holder import DataHolder
from tests.simulator import Driver, LyingCoordinator, Tape, make_settings, make_study
from tests.test_sealed_study import SEALED, tied_table

NAMES = ("north", "south", "western")
MAPS = {"exposure": "sealed", "sealed": {"proposer": "map"}}


def holders_in(folder, **policy):
    return {n: DataHolder(make_settings(folder, n, *tied_table(n), NAMES, **SEALED, **policy)) for n in NAMES}


def told(tape: Tape, step: Step) -> list:
    """What the holders replied to a step."""
    found = [decode(content, p.REPLIES) for _, content in tape.replies]
    return [one.payload for one in found if one.envelope.step is step]


def test_one_average_per_group_of_k_leaves_and_the_gate_decides(tmp_path):
    study = make_study(NAMES, k=4, **MAPS)
    tape = Tape(holders_in(tmp_path))
    outcome = Driver(study, tape).run()
    averages = told(tape, Step.AVERAGE)
    assert len(averages) == 3
    assert {len(one.units) for one in averages} == {len(averages[0].units)}
    assert 2 <= len(averages[0].units) <= 120 // 4
    rounds = outcome.report["rounds"]
    assert [one["holder"] for one in rounds] == list(NAMES)
    for one in rounds:
        assert one["verdict"] == "revert" or one["after"] < one["before"]
    write_run(tmp_path / "run", outcome)
    assert audited(tmp_path / "run").view_linkage <= 1 / 4


def test_without_rounds_nothing_is_averaged(tmp_path):
    tape = Tape(holders_in(tmp_path))
    Driver(make_study(NAMES, k=4, collaboration={"rounds": 0}, **MAPS), tape).run()
    assert not told(tape, Step.AVERAGE)


class Stopping(Tape):
    """Stops before a step is asked, and keeps what would have been."""

    def __init__(self, holders, step: Step, level: int = 0) -> None:
        super().__init__(holders)
        self.step, self.level = step, level

    def ask(self, requests, timeout):
        message = decode(next(iter(requests.values())), p.REQUESTS)
        if message.envelope.step is self.step and getattr(message.payload, "round", 0) >= self.level:
            self.wanted = {name: decode(one, p.REQUESTS).payload for name, one in requests.items()}
            raise KeyboardInterrupt
        return super().ask(requests, timeout)


def stopped(folder, study, step: Step, level: int = 0) -> tuple[LyingCoordinator, object]:
    tape = Stopping(holders_in(folder), step, level)
    with pytest.raises(KeyboardInterrupt):
        Driver(study, tape).run()
    return LyingCoordinator(tape.holders["north"], study), tape.wanted.get("north")


def test_a_lying_coordinator_gets_averages_of_one_level_and_no_round_twice(tmp_path):
    study = make_study(NAMES, k=4, **MAPS)
    liar, _ = stopped(tmp_path / "early", study, Step.SPLIT)
    assert liar.ask(Step.AVERAGE, Average(0)).code == Code.OUT_OF_ORDER, "everyone is one group still"
    liar, request = stopped(tmp_path / "consult", study, Step.CONSULT)
    assert liar.ask(Step.AVERAGE, Average(1)).code == Code.POLICY_ROUNDS
    assert liar.ask(Step.ADOPT, Adopt(0, True)).code == Code.OUT_OF_ORDER, "there is no candidate"
    for units in (request.units[:1], request.units[:, 1:], request.units + 10_000, request.units - 10_000):
        assert liar.ask(Step.CONSULT, Consult(0, units)).code == Code.MALFORMED
    assert isinstance(liar.ask(Step.CONSULT, request), p.Candidate)
    other = dataclasses.replace(request, units=np.zeros_like(request.units))
    assert liar.ask(Step.CONSULT, other).code == Code.CHANGED_REQUEST
    assert isinstance(liar.ask(Step.AVERAGE, Average(0)), Averaged), "the same question again"
    liar, _ = stopped(tmp_path / "late", study, Step.CONSTRAIN)
    assert liar.ask(Step.AVERAGE, Average(0)).code == Code.OUT_OF_ORDER, "the groups are finer now"


def test_no_averages_where_no_maps_are(tmp_path):
    liar, _ = stopped(tmp_path, make_study(NAMES, k=4, exposure="sealed"), Step.CONSTRAIN)
    assert liar.ask(Step.AVERAGE, Average(0)).code == Code.POLICY_METHOD


def test_few_people_tell_no_validity(tmp_path):
    """Two numbers about all of fifteen people would be one too many."""
    holders = {}
    for name in NAMES:
        table, columns = tied_table(name)
        holders[name] = DataHolder(make_settings(tmp_path, name, table.slice(0, 15), columns, NAMES, **SEALED))
    tape = Tape(holders)
    outcome = Driver(make_study(NAMES, k=3, **MAPS), tape).run()
    assert len(told(tape, Step.CONSULT)) == 3
    assert all(one.after == float("inf") and not one.harmless for one in told(tape, Step.CONSULT))
    assert all(one["verdict"] == "revert" for one in outcome.report["rounds"])
    write_run(tmp_path / "run", outcome)
