"""Labels guide the maps only as far as their owner lets them go."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from federated_anon import simulate
from federated_anon.errors import Code, DataRefused, HolderRefused, SettingsRefused
from federated_anon.messages import Step, decode
from federated_anon.messages import payloads as p
from tests.command_line import command
from tests.simulator import Driver, LyingCoordinator, Tape, make_holders, make_study


def study_of(share="cells", method="k-tca++"):
    return make_study(method=method, labels={"column": "north_illness", "share": share})


def played(tmp_path, share, rows=60):
    holders = make_holders(tmp_path, rows=rows, share_labels=share)
    tape = Tape(holders)
    return Driver(study_of(share), tape).run(), tape, holders


def replies(tape, step):
    found = {}
    for name, content in tape.replies:
        message = decode(content, p.REPLIES)
        if message.envelope.step is step:
            found[name] = message.payload
    return found


def test_labels_by_cells_are_the_majorities_of_units_of_at_least_k(tmp_path):
    outcome, tape, holders = played(tmp_path, "cells")
    told = replies(tape, Step.LABEL)
    assert len(told["south"].labels) == 0, "only the owner has labels to tell"
    units = replies(tape, Step.SETTLE)["north"].units
    block = next(v for kind, v in holders["north"]._memory.items() if kind.__name__ == "Block")
    illness = block.table["north_illness"].to_pylist()
    names = list(dict.fromkeys(illness))
    for unit in np.unique(units):
        members = Counter(illness[i] for i in np.flatnonzero(units == unit))
        (label,) = set(told["north"].labels[units == unit].tolist())
        assert members.total() >= 3
        assert members[names[label]] == max(members.values())
    assert outcome.report["labels"] == {"column": "north_illness", "share": "cells"}
    assert any("Labels were used" in caveat for caveat in outcome.report["caveats"])


def test_labels_by_records_are_the_records_own(tmp_path):
    _, tape, holders = played(tmp_path, "records")
    block = next(v for kind, v in holders["north"]._memory.items() if kind.__name__ == "Block")
    told = replies(tape, Step.LABEL)["north"].labels
    pairs = set(zip(block.table["north_illness"].to_pylist(), told.tolist(), strict=True))
    assert len(pairs) == len(set(told)) == 4


@pytest.mark.parametrize(("policy", "share"), [("no", "cells"), ("no", "records"), ("cells", "records")])
def test_an_owner_that_does_not_share_refuses_at_enrolment(tmp_path, policy, share):
    holders = make_holders(tmp_path, share_labels=policy)
    with pytest.raises(HolderRefused) as error:
        Driver(study_of(share), Tape(holders)).run()
    assert (error.value.holder, error.value.code) == ("north", Code.POLICY_LABELS)


def test_a_study_without_labels_gets_none(tmp_path):
    study = make_study(method="k-tca")
    holders = make_holders(tmp_path, share_labels="records")
    Driver(study, Tape(holders)).run()
    liar = LyingCoordinator(holders["north"], study, sequence=2**50)
    assert liar.ask(Step.LABEL, p.TellLabels()) == p.Refused(Code.POLICY_LABELS)
    assert liar.ask(Step.REFINE, p.Refine(np.zeros(60, dtype=np.int32))) == p.Refused(Code.POLICY_LABELS)


@pytest.mark.parametrize("labels", [np.zeros(59), np.full(60, -1), np.full(60, 60), np.zeros(0)])
def test_labels_that_do_not_fit_are_refused(tmp_path, labels):
    _, _, holders = played(tmp_path, "cells")
    liar = LyingCoordinator(holders["south"], study_of(), sequence=2**50)
    answer = liar.ask(Step.REFINE, p.Refine(labels.astype(np.int32)))
    assert answer.code in (Code.MALFORMED, Code.CHANGED_REQUEST)


def test_invented_labels_get_no_second_answer(tmp_path):
    _, _, holders = played(tmp_path, "cells")
    liar = LyingCoordinator(holders["south"], study_of(), sequence=2**50)
    invented = np.arange(60, dtype=np.int32) % 2
    assert liar.ask(Step.REFINE, p.Refine(invented)) == p.Refused(Code.CHANGED_REQUEST)


def people(rows=120):
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, rows)
    columns = {f"c{i}": rng.normal(size=rows) + label * (i < 2) for i in range(4)}
    return pa.table(columns | {"y": np.array(["no", "yes"])[label]})


def test_labels_change_the_groups_and_say_so():
    options = {"k": 4, "keep": ("y",), "runtime": "in-process"}
    plain = simulate(people(), method="c-tca", **options)
    found = simulate(people(), method="c-tca++", labels={"column": "y", "share": "records"}, **options)
    assert plain.report["labels"] is None
    assert not plain.table.select(["c0", "c1"]).equals(found.table.select(["c0", "c1"]))


@pytest.mark.parametrize(
    ("options", "error", "fault"),
    [
        ({"method": "k-tca++"}, SettingsRefused, "learns from labels"),
        ({"method": "k-tca", "labels": {"column": "y"}}, SettingsRefused, "uses no labels"),
        ({"method": "k-tca++", "labels": {"column": "y", "share": "all"}}, SettingsRefused, "share must be"),
        ({"method": "k-tca++", "labels": {"column": "y"}, "exposure": "sealed"}, SettingsRefused, "needs exposure"),
        ({"method": "k-tca++", "labels": {"column": "z"}}, DataRefused, "no holder brings the labels 'z'"),
    ],
)
def test_labels_that_cannot_be_used_are_refused(options, error, fault):
    with pytest.raises(error, match=fault):
        simulate(people(), k=4, keep=("y",), runtime="in-process", **options)


def test_the_command_line_takes_labels(tmp_path):
    import pyarrow.csv

    pyarrow.csv.write_csv(people(), tmp_path / "people.csv")
    roles = ("--quasi", "*", "--keep", "y", "--k", "4", "--runtime", "in-process")
    done = command("simulate", tmp_path / "people.csv", *roles, "--method", "k-tca++", "--labels", "y")
    assert (done.code, "Labels were used" in " ".join(done.out.split())) == (0, True)
    refused = command("simulate", tmp_path / "people.csv", *roles, "--method", "k-tca++")
    assert refused.code == 3
    assert "[labels] column" in " ".join(refused.err.split())
