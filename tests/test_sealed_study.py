"""Sealed studies through the whole product: what leaves is a function of the final groups, proved and attacked."""

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import federated_anon.sealed.partition
import nodes.holder
from coordinator.audit import audited
from coordinator.folder import write_run
from federated_anon import simulate
from federated_anon.columns import Column, Kind, Role
from federated_anon.errors import Code, VerificationFailed
from federated_anon.messages import Step, decode
from federated_anon.messages import payloads as p
from nodes.holder import DataHolder
from tests.simulator import Driver, LyingCoordinator, Tape, drive, make_holders, make_settings, make_study, make_table

STUDY = make_study(exposure="sealed")
SEALED = {"exposures": ["sealed"]}


@pytest.mark.parametrize("proposer", ["directions", "map"])
def test_a_sealed_release_keeps_k_and_its_transcript_too(tmp_path, proposer):
    study = make_study(exposure="sealed", sealed={"proposer": proposer})
    outcome = drive(study, make_holders(tmp_path, **SEALED))
    assert outcome.release.reached.k >= 3
    assert outcome.report["coordinator_view_linkage"] <= 1 / 3
    write_run(tmp_path / "run", outcome)
    found = audited(tmp_path / "run")
    assert found.view_linkage <= 1 / 3


@settings(max_examples=25)
@given(rows=st.integers(6, 70), k=st.integers(2, 5), seed=st.integers(0, 999), l=st.sampled_from([None, 2]))
def test_no_class_of_a_sealed_release_is_smaller_than_k(rows, k, seed, l):  # noqa: E741
    rng = np.random.default_rng(seed)
    columns = {
        "a": rng.normal(size=rows).round(1),
        "b": rng.integers(0, 3, rows),
        "c": rng.choice(["u", "v"], rows),
        "s": rng.choice(["x", "y"], rows),
    }
    columns["s"][:2] = ["x", "y"]
    options = {"exposure": "sealed", "sensitive": ("s",), "holders": 2, "runtime": "in-process"}
    result = simulate(pa.table(columns), k=k, l=l, seed=seed, **options)
    assert result.summary["k_reached"] >= k
    assert result.report["coordinator_view_linkage"] <= 1 / k


def tied_table(name: str) -> tuple[pa.Table, tuple[Column, ...]]:
    """Quasi-identifiers with ties and with long tails, so that any dependence on row order would show."""
    rng = np.random.default_rng(len(name))
    table = pa.table(
        {
            "id": [f"p{i}" for i in range(120)],
            f"{name}_x": rng.integers(0, 5, 120).astype(float) / 3,
            f"{name}_y": rng.integers(0, 4, 120),
            f"{name}_c": rng.choice(["u", "v", "w"], 120),
            f"{name}_z": np.exp(3 * rng.normal(size=120)),
        }
    )
    kinds = (Kind.NUMBER, Kind.INTEGER, Kind.CATEGORY, Kind.NUMBER)
    columns = [Column(n, Role.QUASI, k) for n, k in zip(table.column_names[1:], kinds, strict=True)]
    return table, (Column("id", Role.KEY, Kind.TEXT), *columns)


def played(folder, tables, proposer="directions") -> Tape:
    """A sealed study over these tables: all replies before the closing one, which carries times."""
    names = tuple(tables)
    holders = {n: DataHolder(make_settings(folder, n, *tables[n], names, **SEALED)) for n in names}
    tape = Tape(holders)
    tape.outcome = Driver(make_study(names, k=4, exposure="sealed", sealed={"proposer": proposer}), tape).run()
    return tape


@pytest.mark.parametrize("proposer", ["directions", "map"])
@pytest.mark.parametrize("who", ["all holders alike", "one holder alone"])
def test_transcripts_do_not_change_when_records_change_places_inside_final_groups(tmp_path, who, proposer):
    tables = {name: tied_table(name) for name in ("north", "south", "western")}
    first = played(tmp_path / "first", tables, proposer)
    groups, people = final_groups(first, tables)
    rng = np.random.default_rng(7)
    moved = np.arange(120)
    for group in np.unique(groups):
        rows = people[groups == group]
        moved[rows] = rng.permutation(rows)
    assert (moved != np.arange(120)).any()
    again = {
        name: (permuted(table, moved) if who.startswith("all") or name == "south" else table, columns)
        for name, (table, columns) in tables.items()
    }
    second = played(tmp_path / "second", again, proposer)
    assert (proposer == "map") == any(step is Step.ADOPT for _, step, _ in second.requests)
    for (name, before), (_, after) in zip(first.replies[:-3], second.replies[:-3], strict=True):
        assert before == after, name
    assert first.outcome.release.csv() == second.outcome.release.csv()


def permuted(table: pa.Table, moved: np.ndarray) -> pa.Table:
    """The values of each person replaced by those of another; ids stay."""
    return pa.table({n: table[n] if n == "id" else table[n].take(moved) for n in table.column_names})


def final_groups(tape: Tape, tables) -> tuple[np.ndarray, np.ndarray]:
    """The released groups, and for each common record the table row it came from."""
    requests = [content for who, step, content in tape.requests if who == "north" and step is Step.RELEASE]
    groups = decode(requests[0], p.REQUESTS).payload.groups
    from nodes.alignment import People

    return groups, tape.holders["north"]._memory[People].rows


def test_steps_of_the_other_exposure_are_refused(tmp_path):
    sealed, open_ = make_study(exposure="sealed"), make_study()
    everyone = np.arange(60, dtype=np.int32)
    liar = LyingCoordinator(make_holders(tmp_path / "a", **SEALED)["north"], sealed)
    liar.ask(Step.ENROL, p.Enrol(sealed.text))
    refusal = p.Refused(Code.POLICY_EXPOSURE)
    assert liar.ask(Step.MAP, p.TrainMap(everyone, 3, 3, np.zeros(0, np.int32))) == refusal
    assert liar.ask(Step.CODE, p.MakeCode(())) == refusal
    liar = LyingCoordinator(make_holders(tmp_path / "b")["north"], open_)
    liar.ask(Step.ENROL, p.Enrol(open_.text))
    assert liar.ask(Step.PROPOSE, p.Propose(0, np.zeros(0, np.int32), ())) == refusal


class Lie(Tape):
    """Passes requests on, until at one step and round it lies to the first holder; keeps what it is told and stops."""

    def __init__(self, holders, step, round_, lie):
        super().__init__(holders)
        self.moment, self.lie = (step, round_), lie

    def ask(self, requests, timeout):
        message = decode(requests["north"], p.REQUESTS) if "north" in requests else None
        if message and (message.envelope.step, getattr(message.payload, "round", None)) == self.moment:
            self.told = LyingCoordinator(self.holders["north"], STUDY).ask(self.moment[0], self.lie)
            raise KeyboardInterrupt
        return super().ask(requests, timeout)


def told_to_a_liar(folder, step, round_, lie):
    """What the first holder answers to ``lie`` in an otherwise honest sealed study."""
    tape = Lie(make_holders(folder, **SEALED), step, round_, lie)
    with pytest.raises(KeyboardInterrupt):
        Driver(STUDY, tape).run()
    return tape.told


ACROSS = p.CheckGroups(0, (np.arange(60) % 12).astype(np.int32))
PEELED = p.Propose(1, np.zeros(1, np.int32), (np.packbits(np.arange(60) == 5).tobytes(), b""))


def test_a_lying_coordinator_gets_no_groups_across_the_agreed_ones(tmp_path):
    """At the first check it proposes other groups of the same size: refused, for that would be a second partition."""
    assert told_to_a_liar(tmp_path, Step.CONSTRAIN, 0, ACROSS) == p.Refused(Code.SECOND_PARTITION)


def test_groups_across_the_agreed_ones_unguarded_are_judged(tmp_path, monkeypatch):
    monkeypatch.setattr(nodes.holder, "require_agreed", lambda groups, partition: None)
    assert len(told_to_a_liar(tmp_path, Step.CONSTRAIN, 0, ACROSS).heights) == 12


def test_splits_that_leave_fewer_than_k_are_refused_by_the_other_holders(tmp_path):
    assert told_to_a_liar(tmp_path, Step.PROPOSE, 1, PEELED) == p.Refused(Code.MALFORMED)


def test_splits_that_leave_fewer_than_k_unguarded_are_answered(tmp_path, monkeypatch):
    """One person is cut off from 59, and the holder tells its gain on those who are left."""
    monkeypatch.setattr(federated_anon.sealed.partition, "require_both_sides", lambda members, flags, k: None)
    assert len(told_to_a_liar(tmp_path, Step.PROPOSE, 1, PEELED).gains) == 1


def test_a_second_sealed_study_on_the_same_data_is_refused(tmp_path):
    from federated_anon.errors import HolderRefused

    drive(STUDY, make_holders(tmp_path, **SEALED))
    for other in (make_study(k=4, exposure="sealed"), make_study(k=3)):
        with pytest.raises(HolderRefused) as stopped:
            drive(other, make_holders(tmp_path, exposures=["open", "sealed"]))
        assert stopped.value.code is Code.SECOND_PARTITION


@pytest.mark.parametrize("damage", ["bit", "missing", "swapped"])
def test_the_auditor_notices_a_touched_transcript(tmp_path, damage):
    write_run(tmp_path / "run", drive(STUDY, make_holders(tmp_path, **SEALED)))
    files = sorted((tmp_path / "run" / "transcript").glob("*-split-*"))
    if damage == "bit":
        content = bytearray(files[0].read_bytes())
        content[-20] ^= 1
        files[0].write_bytes(bytes(content))
    elif damage == "missing":
        files[0].unlink()
    else:
        shutil.copy(files[1], files[0])
    with pytest.raises(VerificationFailed, match="transcript"):
        audited(tmp_path / "run")


def test_diversity_is_reached_by_undoing_splits(tmp_path):
    table, columns = make_table(60, 0, "north")
    skewed = ["gout"] * 6 + ["none"] * 54
    table = table.set_column(table.column_names.index("north_illness"), "north_illness", pa.array(skewed))
    other, others = make_table(60, 1, "south")
    names = ("north", "south")
    holders = {
        "north": DataHolder(make_settings(tmp_path, "north", table, columns, names, **SEALED)),
        "south": DataHolder(make_settings(tmp_path, "south", other, others, names, **SEALED)),
    }
    outcome = drive(make_study(exposure="sealed", privacy={"k": 3, "l": 2}), holders)
    assert outcome.release.reached.diversity["north_illness"] >= 2
    assert outcome.report["merging_rounds"] > 0
    write_run(tmp_path / "run", outcome)
    assert audited(tmp_path / "run").view_linkage <= 1 / 3
