"""Values from sums: one, two and four partitions, bridges, singletons, smoothed prototypes, distances."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import least_squares

import nodes.guard
import nodes.holder
import nodes.training
import nodes.veil
from federated_anon.attacks.sums import known_from
from federated_anon.bridges import bridges
from federated_anon.columns import Kind, Role
from federated_anon.errors import Code
from federated_anon.messages import Step, decode
from federated_anon.messages import payloads as p
from federated_anon.microaggregation import merge_small_units
from federated_anon.microaggregation.units import dissolve
from federated_anon.models import Prototypes
from federated_anon.som import BatchSOM, Grid, assign_units
from nodes.guard import Guard
from nodes.identity import data_version
from tests.attacks.doors import NONE, aligned_liars, in_pseudonym_order, make_holder, number_table
from tests.simulator import Driver, Tape, make_study

PEOPLE, K = 60, 5
AS_RELEASED = 1e-4
"""Representatives are released to seven digits, so that a sum over a group is known to about as many."""


def released_partitions(folder, wanted, *, same_study=False):
    """Ask for every partition in turn, in one study or each in its own; the sums that came back, and the truth."""
    income = np.random.default_rng(0).normal(50, 10, PEOPLE)
    holder = make_holder(folder, "north", number_table(income), ["north"])
    sums = []
    for number, groups in enumerate(wanted):
        study = make_study(["north"], K, name="trial" if same_study else f"trial-{number}")
        liar = aligned_liars(study, {"north": holder}, first=1000 * number)["north"]
        liar.ask(Step.MAP, p.TrainMap(np.arange(PEOPLE, dtype=np.int32), 2, 2, NONE))
        liar.ask(Step.CODE, p.MakeCode(()))
        liar.ask(Step.CONSTRAIN, p.CheckGroups(0, groups.astype(np.int32)))
        reply = liar.ask(Step.RELEASE, p.MakeRelease(groups.astype(np.int32), ("income",)))
        if isinstance(reply, p.Block):
            sums.append((groups, reply.representatives["income"].to_numpy() * np.bincount(groups)))
    return sums, in_pseudonym_order(holder, income)


def without_memory(monkeypatch):
    monkeypatch.setattr(Guard, "require_first", lambda self, kind, digest: None)
    monkeypatch.setattr(Guard, "require_few_studies", lambda self: None)
    monkeypatch.setattr(Guard, "require_unchanged", lambda self, request: None)
    monkeypatch.setattr(Guard, "_require_same_answer", lambda self, request, answer: None)
    monkeypatch.setattr(nodes.veil, "_to_veil", lambda known, groups: np.zeros(int(groups.max()) + 1, dtype=bool))


def overlapping(count: int) -> list[np.ndarray]:
    """``count`` partitions whose sums together fix records though none has a group below k.

    Two: a group of ten against one with a person less. Four: the first ten people and the next ten, with the persons
    0 and 1, then 1 and 2, then 0 and 2 moved: any pair of persons is a difference of two, all of them fix each.
    """
    first = np.arange(PEOPLE) // 10
    moved = {1: [], 2: [[0]], 4: [[0, 1], [1, 2], [0, 2]]}[count]
    return [first, *(np.where(np.isin(np.arange(PEOPLE), people), 1, first) for people in moved)]


@pytest.mark.parametrize(("count", "known"), [(1, 0), (2, 1), (4, 3)])
def test_partitions_unguarded_give_records_away(tmp_path, monkeypatch, count, known):
    without_memory(monkeypatch)
    sums, truth = released_partitions(tmp_path, overlapping(count), same_study=True)
    assert len(sums) == count
    found, values = known_from(sums)
    assert found.sum() >= known
    if known:
        assert np.abs(values[found] - truth[found]).max() < AS_RELEASED


@pytest.mark.parametrize("same_study", [False, True])
@pytest.mark.parametrize("count", [2, 4])
def test_only_one_partition_leaves(tmp_path, count, same_study):
    sums, _ = released_partitions(tmp_path, overlapping(count), same_study=same_study)
    assert len(sums) == 1
    assert known_from(sums)[0].sum() == 0


def test_the_version_of_the_data_does_not_change_with_its_looks():
    """Rows in another order, columns in another order, other chunks, ids in capitals: the same data."""
    table, _ = number_table(np.random.default_rng(0).normal(size=PEOPLE))
    name = data_version(table, "id")
    shuffled = table.take(pa.array(np.random.default_rng(1).permutation(PEOPLE)))
    loud = table.set_column(0, "id", pa.array([f"  PERSON  {i:05d}" for i in range(PEOPLE)]))
    for other in (shuffled, table.select(["income", "id"]), pa.concat_tables([table[:7], table[7:]]), loud):
        assert data_version(other, "id") == name


def test_one_changed_value_is_another_version_and_releases_again(tmp_path):
    """Stated, not prevented: after a change of one person's value all others can be had in other groups."""
    table, columns = number_table(np.random.default_rng(0).normal(size=PEOPLE))
    other = table.set_column(1, "income", pa.array([*table["income"].to_pylist()[:-1], 9.0]))
    assert data_version(other, "id") != data_version(table, "id")
    for number, made in enumerate([(table, columns), (other, columns)]):
        holder = make_holder(tmp_path, "north", made, ["north"])
        liar = aligned_liars(make_study(["north"], K, name=f"trial-{number}"), {"north": holder})["north"]
        reply = liar.ask(Step.MAP, p.TrainMap(np.arange(PEOPLE, dtype=np.int32), 2, 2, NONE))
        assert isinstance(reply, p.Mapped)


NAMES = ("north", "south")


def whole_view(folder, records=150, k=3, seed=0):
    """The coordinator's view of a study: sums over one holder's cells and groups; bridges, errors, veils."""
    rng = np.random.default_rng(seed)
    common = rng.normal(50, 10, records)
    income = {name: common + rng.normal(0, 8, records) for name in NAMES}
    holders = {name: make_holder(folder, name, number_table(income[name], f"{name}_income"), NAMES) for name in NAMES}
    tape = Tape(holders)
    Driver(make_study(NAMES, k), tape).run()
    replies = {
        type(decode(reply, p.REPLIES).payload): decode(reply, p.REPLIES).payload
        for who, reply in tape.replies
        if who == "north"
    }
    groups = next(
        decode(content, p.REQUESTS).payload.groups
        for who, step, content in tape.requests
        if who == "north" and step is Step.RELEASE
    )
    truth = in_pseudonym_order(holders["north"], income["north"])
    cells, block = replies[p.Coded].cells, replies[p.Block]
    cell_sums = (replies[p.Coded].prototypes[:, 0] * truth.std() + truth.mean()) * np.bincount(cells)
    group_sums = block.representatives["north_income"].to_numpy() * np.bincount(groups)
    bridged = bridges(cells, groups)
    found, values = known_from([(cells, cell_sums), (groups, group_sums)])
    assert (found == bridged).all()
    return bridged, np.abs(values - truth), block.veiled


def test_bridges_between_cells_and_groups_are_veiled(tmp_path):
    bridged, error, veiled = whole_view(tmp_path)
    assert bridged.any()
    assert veiled > 0
    assert error[bridged].min() > 1e-3


def test_bridges_between_cells_and_groups_unguarded(tmp_path, monkeypatch):
    monkeypatch.setattr(nodes.veil, "_to_veil", lambda known, groups: np.zeros(int(groups.max()) + 1, dtype=bool))
    bridged, error, _ = whole_view(tmp_path)
    assert bridged.any()
    assert error[bridged].max() < AS_RELEASED


def smallest_unit(folder):
    """The fewest records in a unit that leaves a holder, on a grid with more units than records."""
    income = np.random.default_rng(0).normal(50, 10, PEOPLE)
    holder = make_holder(folder, "north", number_table(income), ["north"])
    liar = aligned_liars(make_study(["north"], K), {"north": holder})["north"]
    units = liar.ask(Step.MAP, p.TrainMap(np.arange(PEOPLE, dtype=np.int32), 12, 12, NONE)).units
    return int(np.unique(units, return_counts=True)[1].min())


def test_no_unit_of_one_record_leaves(tmp_path):
    assert smallest_unit(tmp_path) >= K


def test_units_of_one_record_unguarded(tmp_path, monkeypatch):
    monkeypatch.setattr(nodes.training, "dissolve", lambda points, units, codebook, k: None)
    assert smallest_unit(tmp_path) == 1


def test_smoothed_prototypes_are_inverted_and_plain_means_of_k_are_not():
    """What would leave if prototypes were sent as trained: every unit's own mean, singletons exact."""
    points = np.random.default_rng(0).normal(size=(PEOPLE, 1))
    grid = Grid(6, 6)
    som = BatchSOM(6, 6, passes=12).fit(points, np.random.default_rng(1))
    units = assign_units(points, som.codebook_)
    places = grid.coordinates()
    apart = ((places[:, None] - places) ** 2).sum(axis=2)
    kernel = np.exp(-apart / 0.7**2)
    counts = np.bincount(units, minlength=36)
    sums = np.stack([np.bincount(units, points[:, 0], minlength=36)], axis=1)
    smoothed = (kernel @ sums) / (kernel @ counts)[:, None]
    undone = np.linalg.solve(kernel, smoothed * (kernel @ counts)[:, None])
    alone = np.flatnonzero(counts == 1)
    assert len(alone) > 0
    owners = [int(np.flatnonzero(units == unit)[0]) for unit in alone]
    assert np.abs(undone[alone] - points[owners]).max() < 1e-6
    merged = merge_small_units(points, units, som.codebook_, K)
    means = np.array([points[merged == unit].mean() for unit in range(merged.max() + 1)])
    assert np.abs(means[:, None] - points[:, 0]).min() > 0
    assert np.bincount(merged).min() >= K


def test_distances_would_be_trilaterated_and_are_not_in_any_message():
    """Distances to known prototypes give a record to full precision; no payload has a float per record and unit."""
    rng = np.random.default_rng(0)
    prototypes, record = rng.normal(size=(9, 3)), rng.normal(size=3)
    told = np.linalg.norm(prototypes - record, axis=1)
    found = least_squares(lambda x: np.linalg.norm(prototypes - x, axis=1) - told, np.zeros(3), xtol=1e-15, ftol=1e-15)
    assert np.abs(found.x - record).max() < 1e-8
    per_record = {
        (kind.__name__, field.name)
        for kind in p.REPLIES.values()
        for field in dataclasses.fields(kind)
        if "NDArray[numpy.floating" in str(field.type) or field.type in ("Floats", "Singles", "Matrix")
    }
    assert per_record >= {("Coded", "prototypes"), ("Coded", "strength")}
    assert ("Mapped", "units") not in per_record


def test_positions_below_the_smallest_overlap_are_refused(tmp_path):
    holder = make_holder(tmp_path, "north", number_table(np.arange(60.0)), ["north"], minimum_overlap=40)
    liar = aligned_liars(make_study(["north"], K), {"north": holder})["north"]
    for few in ([0, 1], list(range(K - 1)), list(range(39))):
        reply = liar.ask(Step.MAP, p.TrainMap(np.array(few, dtype=np.int32), 1, 2, NONE))
        assert reply == p.Refused(Code.OVERLAP)
    for odd in ([5] * 45, list(range(45, 0, -1)), list(range(20, 80))):
        reply = liar.ask(Step.MAP, p.TrainMap(np.array(odd, dtype=np.int32), 1, 2, NONE))
        assert reply == p.Refused(Code.MALFORMED)


def test_kept_and_sensitive_values_leave_in_an_order_without_owners(tmp_path):
    """The order of rows in a holder's block and in the release, against the order of the file and of pseudonyms."""
    label = np.array([f"label {i:02d}" for i in range(PEOPLE)])
    made = number_table(np.random.default_rng(0).normal(size=PEOPLE), label=(Role.KEEP, Kind.TEXT, label))
    holder = make_holder(tmp_path, "north", made, ["north"])
    tape = Tape({"north": holder})
    outcome = Driver(make_study(["north"], K), tape).run()
    block = next(m for _, r in tape.replies if isinstance(m := decode(r, p.REPLIES).payload, p.Block))
    groups = next(decode(c, p.REQUESTS).payload.groups for _, s, c in tape.requests if s is Step.RELEASE)
    by_place = in_pseudonym_order(holder, label)[np.argsort(groups, kind="stable")]
    told = np.array(block.values["label"].to_pylist())
    assert (told == by_place).mean() < 2.5 / K
    assert (np.array(outcome.release.table["label"].to_pylist()) == label).mean() < 0.1


def test_dissolving_keeps_units_on_their_place():
    """The units that leave are those of the map: each record's prototype is the nearest that is left."""
    points = np.random.default_rng(0).normal(size=(200, 2))
    som = BatchSOM(8, 8, passes=8).fit(points, np.random.default_rng(1))
    units = np.array(assign_units(points, som.codebook_), dtype=np.int64)
    whole = units.copy()
    dissolve(points, units, np.ascontiguousarray(som.codebook_, dtype=float), K)
    stayed = units == whole
    assert stayed.mean() > 0.2
    found = nodes.training._judged(points, Grid(8, 8), Prototypes(som.codebook_), K)
    assert np.array_equal(found.units, units)
    gaps = points - som.codebook_[units]
    assert found.spread == pytest.approx(float((gaps**2).sum()))
