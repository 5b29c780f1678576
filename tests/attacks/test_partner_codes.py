"""A coordinator that invents partners' codes or activations, so that regressions and maps speak of one record."""

from __future__ import annotations

import numpy as np
import pytest

import nodes.training
import nodes.veil
from federated_anon.columns import Kind, Role
from federated_anon.errors import Code
from federated_anon.messages import Step
from federated_anon.messages import payloads as p
from federated_anon.messages.codec import encode_payload
from federated_anon.side import Code as SideCode
from federated_anon.side.code import features_before, features_beside, rebuild_codes
from federated_anon.side.ridge import PENALTIES
from tests.attacks.doors import (
    NONE,
    aligned_liars,
    code_of,
    in_pseudonym_order,
    make_holder,
    number_table,
    positions_of,
)
from tests.simulator import make_study

N, K = 1200, 5
NAMES = ("north", "south", "east")
STUDY = make_study(NAMES, K, collaboration={"cells": False, "side_information": True})


class Scene:
    """Three holders of related columns, led up to their maps; the coordinator lies from there on."""

    def __init__(self, folder):
        rng = np.random.default_rng(3)
        common = rng.normal(50, 10, N)
        self.values = {name: common + rng.normal(0, 3, N) for name in NAMES}
        ages = {"south": {"south_age": (Role.QUASI, Kind.NUMBER, rng.normal(40, 9, N))}}
        self.holders = {
            name: make_holder(
                folder, name, number_table(self.values[name], f"{name}_income", **ages.get(name, {})), NAMES
            )
            for name in NAMES
        }
        self.liars = aligned_liars(STUDY, self.holders)
        self.units = {
            name: self.liars[name].ask(Step.MAP, p.TrainMap(places, 3, 3, NONE)).units
            for name, places in positions_of(self.liars).items()
        }

    def truth(self, name):
        return in_pseudonym_order(self.holders[name], self.values[name])

    def scores(self, name):
        truth = self.truth(name)
        return (truth - truth.mean()) / truth.std()


@pytest.fixture
def scene(tmp_path):
    return Scene(tmp_path)


def trusting(coded, records, k):
    """A holder that takes a partner's code as it comes."""
    return SideCode(k, coded.cells, coded.prototypes, coded.coefficients, coded.strength)


def weighted_sums(features, penalty, coefficients):
    """What coefficients say about the values behind them: F'y = (F'F + penalty) B, for one of 25 penalties."""
    rows = features.rows(slice(0, len(features.within)))
    return (rows.T @ rows + penalty * np.eye(features.width)) @ coefficients


def singled_out(scene, targets):
    """Ask the second holder for its code, given one whose cells hold one target each; what comes back."""
    first = scene.liars["north"].ask(Step.CODE, p.MakeCode(()))
    cells = np.argsort(np.argsort(first.prototypes[first.cells, 0], kind="stable")) * 20 // N
    cells[targets] = 20 + np.arange(len(targets))
    invented = np.arange(cells.max() + 1.0)[:, None]
    reply = scene.liars["south"].ask(Step.CODE, p.MakeCode((code_of(cells, invented),)))
    return reply, SideCode(K, cells.astype(np.int32), invented, np.zeros((0, 0)), np.zeros(0))


def error_of_singled_out(scene, targets):
    reply, partner = singled_out(scene, targets)
    if isinstance(reply, p.Refused) or not len(reply.coefficients):
        return reply, np.inf
    features = features_before([partner], rebuild_codes([partner]), K)
    sums = [weighted_sums(features, penalty, reply.coefficients)[-len(targets) :, 0] for penalty in PENALTIES]
    return reply, min(float(np.abs(found - scene.scores("south")[targets]).max()) for found in sums)


def test_partner_cells_of_one_record(scene, monkeypatch):
    reply, error = error_of_singled_out(scene, np.arange(8))
    assert reply == p.Refused(Code.MALFORMED)
    assert error == np.inf


def test_partner_cells_of_one_record_unguarded(scene, monkeypatch):
    monkeypatch.setattr(nodes.training, "as_code", trusting)
    monkeypatch.setattr(nodes.training, "gives_away", lambda *_: False)
    _, error = error_of_singled_out(scene, np.arange(8))
    assert error < 1e-9, "eight records to full precision from one request"


def test_small_partner_cells_do_not_pass_the_look_at_leverage_either(scene, monkeypatch):
    """The second lock alone: without a look at sizes, the holder still sends no coefficients."""
    monkeypatch.setattr(nodes.training, "as_code", trusting)
    reply, error = error_of_singled_out(scene, np.arange(8))
    assert len(reply.coefficients) == 0
    assert error == np.inf


def test_a_strength_that_points_at_one_record_is_refused(scene):
    """A conditional code carries a strength per record: 1e9 for the target, 0 for all others."""
    cells = np.arange(N) // 20
    strength = np.zeros(N, dtype=np.float32)
    strength[7] = 1e9
    coefficients = np.ones((4, 1))
    lie = code_of(cells, np.zeros((20, 1)), coefficients, strength)
    assert scene.liars["south"].ask(Step.CODE, p.MakeCode((lie,))) == p.Refused(Code.MALFORMED)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_codes_of_holders_that_are_not_there_are_refused(scene, count):
    """The first holder of the roster codes alone: there is nobody before it."""
    lie = code_of(np.arange(N) // 20, np.zeros((20, 1)))
    assert scene.liars["north"].ask(Step.CODE, p.MakeCode((lie,) * count)) == p.Refused(Code.MALFORMED)


def corrected_by(scene, invented_cells):
    """The first holder's code, and its correction given an honest partner and an invented one."""
    north, south = scene.liars["north"], scene.liars["south"]
    own = north.ask(Step.CODE, p.MakeCode(()))
    honest = south.ask(Step.CODE, p.MakeCode((encode_payload(own),)))
    cells = invented_cells(own.cells)
    prototypes = np.random.default_rng(1).normal(size=(cells.max() + 1, 1))
    reply = north.ask(
        Step.CORRECT, p.Correct((encode_payload(own), encode_payload(honest), code_of(cells, prototypes)))
    )
    codes = [trusting(own, N, K), trusting(honest, N, K), SideCode(K, cells, prototypes, np.zeros((0, 0)), np.zeros(0))]
    return own, reply, features_beside(codes, rebuild_codes(codes), 0)


def outsiders_of(own_cells):
    """Two records outside the first two own cells."""
    return np.flatnonzero(own_cells >= 2)[:2]


def cell_and_one_more(own_cells):
    """Two cells of the holder, each with one record of another cell: both sums known, that record is."""
    cells = np.minimum(own_cells, 2)
    cells[outsiders_of(own_cells)] = np.arange(2)
    return cells.astype(np.int32)


def error_of_correction(scene):
    own, reply, features = corrected_by(scene, cell_and_one_more)
    if not len(reply.coefficients):
        return np.inf
    outsiders = outsiders_of(own.cells)
    gap = scene.scores("north")[outsiders] - own.prototypes[own.cells[outsiders], 0]
    sums = [weighted_sums(features, penalty, reply.coefficients)[-3:-1, 0] for penalty in PENALTIES]
    return min(float(np.abs(found - gap).max()) for found in sums)


def test_a_partner_cell_that_is_an_own_cell_and_one_more(scene):
    """All cells hold k records or more; only together with the own cells do they single out."""
    assert error_of_correction(scene) == np.inf


def test_a_partner_cell_that_is_an_own_cell_and_one_more_unguarded(scene, monkeypatch):
    monkeypatch.setattr(nodes.training, "gives_away", lambda *_: False)
    assert error_of_correction(scene) < 1e-9, "two records to full precision from one correction"


def spread_out(own_cells):
    """An invented cell of fourteen records, from all own cells but the first two; nothing singles out so far."""
    cells = np.ones(N)
    cells[np.flatnonzero(own_cells >= 2)[:14]] = 0
    return cells.astype(np.int32)


def error_of_completed_group(scene):
    """Then ask for a group that is an invented cell and one more record: the difference is that record."""
    own, reply, features = corrected_by(scene, spread_out)
    assert len(reply.coefficients)
    cells = spread_out(own.cells)
    target = np.flatnonzero((cells == 1) & (own.cells >= 2))[0]
    groups = np.where(own.cells < 2, own.cells, 3)
    groups[cells == 0], groups[target] = 2, 2
    groups = groups.astype(np.int32)
    north = scene.liars["north"]
    north.ask(Step.CONSTRAIN, p.CheckGroups(0, groups))
    means = north.ask(Step.RELEASE, p.MakeRelease(groups, ("north_income",))).representatives["north_income"].to_numpy()
    low, high = own.prototypes[:2, 0]
    scale = (means[1] - means[0]) / (high - low)
    sum_of_scores = ((means[2] - means[0]) / scale + low) * 15
    gap = sum_of_scores - own.prototypes[own.cells[cells == 0], 0].sum() - scene.scores("north")[target]
    sums = [weighted_sums(features, penalty, reply.coefficients)[-2, 0] for penalty in PENALTIES]
    return float(min(abs(found - gap) for found in sums))


def test_a_group_that_is_a_partner_cell_and_one_more(scene):
    assert error_of_completed_group(scene) > 1e-3, "noise of the group's own spread, less what 25 guesses save"


def test_a_group_that_is_a_partner_cell_and_one_more_unguarded(scene, monkeypatch):
    """Without the look at all sums together; the check of cells against groups alone finds no bridge here."""
    monkeypatch.setattr(nodes.veil, "known_records", lambda known, groups, veiled: np.zeros(len(groups), dtype=bool))
    assert error_of_completed_group(scene) < 1e-4, "to the seven digits that representatives are released with"


@pytest.mark.parametrize("strength", [-1.0, -1e150, float("nan"), float("-inf")])
def test_a_strength_beyond_the_agreed_is_refused(scene, strength):
    """A negative link passes a cap from above and is squared: the map becomes the mean of whom the liar picks."""
    partner = scene.units["north"].copy()
    partner[7] = 8 - partner[7]
    lie = p.Collaborate(0, np.array([strength, 0.5]), np.stack([partner, partner]))
    assert scene.liars["north"].ask(Step.COLLABORATE, lie) == p.Refused(Code.MALFORMED)


def test_a_negative_strength_unguarded_moves_prototypes_onto_one_record(scene):
    """What the refusal prevents: with a huge squared strength the disagreeing record is the whole map."""
    from federated_anon.som import Grid, collaborative_update

    points = scene.scores("north")[:, None]
    own = scene.units["north"]
    partner = own.copy()
    partner[7] = 8 - partner[7]
    codebook = collaborative_update(points, own, [partner], [-1e100], Grid(3, 3), 1.0, np.zeros((9, 1)))
    near = np.abs(codebook[:, 0] - points[7, 0]) < 1e-9
    assert near.sum() >= 5
    capped = collaborative_update(points, own, [partner], [1.0], Grid(3, 3), 1.0, np.zeros((9, 1)))
    assert (np.abs(capped[:, 0] - points[7, 0]) < 1e-9).sum() <= 1
