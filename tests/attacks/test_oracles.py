"""A coordinator that asks the same step many times: verdicts, refusals and validity values as oracles."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import differential_evolution

import nodes.block
import nodes.holder
from federated_anon.attacks.verdicts import flags_seen, heights_seen, sharpened
from federated_anon.columns import Kind, Role
from federated_anon.errors import Code
from federated_anon.messages import Step, decode
from federated_anon.messages import payloads as p
from federated_anon.study import Study
from nodes.guard import Answer, Guard
from nodes.holder import DataHolder
from tests.attacks.doors import NONE, aligned_liars, in_pseudonym_order, make_holder, number_table
from tests.simulator import Driver, Tape, make_study

PEOPLE = 60


def led(folder, study, *, people=PEOPLE, rounds=20, grid=(2, 2), lead=NONE):
    """One holder with a two-valued sensitive column, led up to its map; the liar at its door, and the truth."""
    rng = np.random.default_rng(5)
    ill = rng.choice(["yes", "no"], people)
    income = rng.normal(50, 10, people)
    made = number_table(income, ill=(Role.SENSITIVE, Kind.CATEGORY, ill))
    holder = make_holder(folder, "north", made, ["north"], most_rounds=rounds)
    liar = aligned_liars(study, {"north": holder})["north"]
    liar.map = liar.ask(Step.MAP, p.TrainMap(np.arange(people, dtype=np.int32), *grid, lead))
    return liar, in_pseudonym_order(holder, ill) == "yes", in_pseudonym_order(holder, income)


class Sorter:
    """Sorts people by a two-valued sensitive column, from verdicts on groups of three with l = 2 alone."""

    def __init__(self, people):
        self.people, self.same, self.other = people, [], []

    def groups(self):
        """Pairs of known people with one unknown each; what is left over goes in threes, and the rest in one."""
        known = [
            *zip(self.same[::2], self.same[1::2], strict=False),
            *zip(self.other[::2], self.other[1::2], strict=False),
        ]
        unknown = [i for i in range(self.people) if i not in self.same and i not in self.other]
        self.tests = [(*pair, target) for pair, target in zip(known, unknown, strict=False)]
        used = {i for test in self.tests for i in test}
        rest = [i for i in range(self.people) if i not in used]
        self.threes = [] if self.tests else [tuple(rest[i : i + 3]) for i in range(0, len(rest) - 5, 3)]
        groups = np.full(self.people, len(self.tests) + len(self.threes))
        for number, members in enumerate([*self.tests, *self.threes]):
            groups[list(members)] = number
        return np.unique(groups, return_inverse=True)[1].astype(np.int32)

    def learn(self, failing):
        for number, (first, _, target) in enumerate(self.tests):
            alike = first in self.same
            (self.same if alike == bool(failing[number]) else self.other).append(target)
        for members in [m for m, fails in zip(self.threes, failing[len(self.tests) :], strict=False) if fails][:1]:
            self.same.extend(members)


def sorted_people(liar):
    """How many people are sorted after the rounds the policy grants, and how many rounds were answered."""
    sorter, answered = Sorter(PEOPLE), 0
    for number in range(20):
        reply = liar.ask(Step.CONSTRAIN, p.CheckGroups(number, sorter.groups()))
        if isinstance(reply, p.Refused):
            break
        answered += 1
        sorter.learn(reply.heights > 0)
        if len(sorter.same) + len(sorter.other) == PEOPLE:
            break
    return sorter, answered


STUDY = make_study(["north"], 3, privacy={"k": 3, "l": 2})


def rounds_without_end(self, request):
    """A holder as it was: a verdict per group, for as many proposals as the coordinator likes."""
    block = self._recall(nodes.block.Block)
    self._remember(nodes.holder.Checked(request.groups))
    failing = nodes.block.failing_groups(block, request.groups, self._recall(Study).privacy)
    return Answer(p.GroupVerdict(failing.astype(np.int32)))


def test_verdicts_on_groups_of_the_liars_choice(tmp_path):
    liar, _, _ = led(tmp_path, STUDY)
    sorter, answered = sorted_people(liar)
    assert answered == 1
    assert len(sorter.same) + len(sorter.other) <= 3


def test_verdicts_on_groups_of_the_liars_choice_unguarded(tmp_path, monkeypatch):
    monkeypatch.setattr(DataHolder, "_constrain", rounds_without_end)
    liar, ill, _ = led(tmp_path, STUDY)
    sorter, _ = sorted_people(liar)
    assert len(sorter.same) + len(sorter.other) > 0.9 * PEOPLE
    assert len(set(ill[sorter.same])) == 1
    assert len(set(ill[sorter.other])) == 1


def test_a_second_proposal_is_refused(tmp_path):
    liar, _, _ = led(tmp_path, STUDY)
    groups = (np.arange(PEOPLE) // 3).astype(np.int32)
    assert liar.ask(Step.CONSTRAIN, p.CheckGroups(4, groups)) == p.Refused(Code.POLICY_ROUNDS)
    assert isinstance(liar.ask(Step.CONSTRAIN, p.CheckGroups(0, groups)), p.GroupVerdict)
    again = np.roll(groups, 1)
    assert liar.ask(Step.CONSTRAIN, p.CheckGroups(0, again)) == p.Refused(Code.CHANGED_REQUEST)


def release_bits(liar, tries):
    """Whether any group of a partition fails, read off the code of the refusal; nothing is ever released."""
    liar.ask(Step.CODE, p.MakeCode(()))
    rng = np.random.default_rng(1)
    codes = []
    for _ in range(tries):
        groups = rng.permutation(np.arange(PEOPLE) // 3).astype(np.int32)
        reply = liar.ask(Step.RELEASE, p.MakeRelease(groups, ("income", "ill")))
        codes.append(reply.code if isinstance(reply, p.Refused) else "released")
    return codes


def test_refused_releases_tell_nothing_of_the_sensitive_column(tmp_path):
    liar, _, _ = led(tmp_path, STUDY)
    liar.ask(Step.CONSTRAIN, p.CheckGroups(0, (np.arange(PEOPLE) // 3).astype(np.int32)))
    assert set(release_bits(liar, 20)) == {Code.CHANGED_REQUEST}


def test_refused_releases_unguarded_are_verdicts_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(nodes.holder, "require_checked", lambda checked, groups: None)
    liar, _, _ = led(tmp_path, STUDY)
    liar.ask(Step.CONSTRAIN, p.CheckGroups(0, (np.arange(PEOPLE) // 3).astype(np.int32)))
    assert release_bits(liar, 40).count(Code.GUARANTEE) >= 5


TALK = make_study(["north"], 3, collaboration={"rounds": 20})


def repeated(liar):
    """Ask one round of collaboration again and again; between, renumber the units, which changes the question."""
    rng = np.random.default_rng(0)
    partner = rng.integers(0, 4, (1, PEOPLE)).astype(np.int32)
    found = set()
    for number in range(12):
        reply = liar.ask(Step.COLLABORATE, p.Collaborate(0, np.array([1.0]), partner))
        if isinstance(reply, p.Candidate):
            found.add(reply.after)
        liar.ask(Step.SETTLE, p.Settle(100 + number, False, rng.permutation(4).astype(np.int32)))
        liar.ask(Step.SETTLE, p.Settle(-1, False, rng.permutation(4).astype(np.int32)))
        liar.ask(Step.SETTLE, p.Settle(0, True, NONE))
    return found


def test_one_round_asked_twelve_times_gives_one_value(tmp_path):
    assert len(repeated(led(tmp_path, TALK)[0])) == 1


def test_one_round_asked_twelve_times_unguarded(tmp_path, monkeypatch):
    monkeypatch.setattr(Guard, "_require_same_answer", lambda self, request, answer: None)
    monkeypatch.setattr(nodes.holder, "require_round", lambda policy, study, number: None)
    assert len(repeated(led(tmp_path, TALK)[0])) >= 3


def studies_answered(folder, count):
    """The same data asked for its map by many studies, on other grids; distinct validity values."""
    values = set()
    for number in range(count):
        study = make_study(["north"], 3, name=f"trial-{number}", seed=number)
        lead = np.random.default_rng(number).integers(0, 9, PEOPLE).astype(np.int32)
        liar, _, _ = led(folder, study, grid=(3, 3 + number % 4), lead=lead)
        if isinstance(liar.map, p.Mapped):
            values.add(round(liar.map.davies_bouldin, 9))
    return values


def test_many_studies_on_one_version_of_the_data(tmp_path):
    assert len(studies_answered(tmp_path, 8)) == 1


def test_many_studies_on_one_version_of_the_data_unguarded(tmp_path, monkeypatch):
    monkeypatch.setattr(Guard, "require_few_studies", lambda self: None)
    assert len(studies_answered(tmp_path, 8)) >= 4


def test_an_owner_may_allow_more_studies(tmp_path):
    holder = make_holder(tmp_path, "north", number_table(np.arange(60.0)), ["north"], most_studies=2)
    for number, expected in enumerate([p.Mapped, p.Mapped, p.Refused]):
        liar = aligned_liars(make_study(["north"], 3, name=f"trial-{number}"), {"north": holder})["north"]
        reply = liar.ask(Step.MAP, p.TrainMap(np.arange(60, dtype=np.int32), 2, 2, NONE))
        assert isinstance(reply, expected)


@pytest.mark.parametrize("later", ["open", "sealed"])
def test_a_sealed_study_counts_as_one_too(tmp_path, later):
    """Gains are numbers about values as well: they are not told to one study after another."""
    holder = make_holder(tmp_path, "north", number_table(np.arange(60.0)), ["north"], exposures=["open", "sealed"])
    people = np.arange(60, dtype=np.int32)
    for number, exposure in enumerate(["sealed", later]):
        study = make_study(["north"], 3, name=f"trial-{number}", exposure=exposure)
        liar = aligned_liars(study, {"north": holder})["north"]
        sealed = exposure == "sealed"
        ask = (Step.SEAT, p.Seat(people)) if sealed else (Step.MAP, p.TrainMap(people, 2, 2, NONE))
        reply = liar.ask(*ask)
        assert isinstance(reply, p.Refused) == (number == 1)


FEW = 6
KERNEL = np.exp(-np.array([[0.0, 1.0], [1.0, 0.0]]))


def few_study(seed=0):
    return make_study(["north"], 3, seed=seed, collaboration={"rounds": 20, "radius": 1.0, "side_information": False})


def validities(x, pulls):
    """What holders with values ``x`` (people, holders) would answer: Davies-Bouldin of two units, for all rounds."""
    centres = np.einsum("rnj,ns->rjs", pulls, x)
    away = np.abs(x[None, :, None] - centres[:, None])
    first = away.argmin(axis=2) == 0
    spread = (away[:, :, 0] * first).sum(1) / np.maximum(first.sum(1), 1)
    spread += (away[:, :, 1] * ~first).sum(1) / np.maximum((~first).sum(1), 1)
    return spread / np.maximum(np.abs(centres[:, 0] - centres[:, 1]), 1e-9)


def solved(liar, truth):
    """Few people, many rounds: as many validity values as unknowns, solved by evolution. Worst error in scores."""
    rng = np.random.default_rng(2)
    asked, told = [], []
    for number in range(20):
        partner = rng.integers(0, 2, FEW)
        reply = liar.ask(Step.COLLABORATE, p.Collaborate(number, np.array([1.0]), partner[None].astype(np.int32)))
        if np.isfinite(reply.after):
            asked.append(partner)
            told.append(reply.after)
    code = liar.ask(Step.CODE, p.MakeCode(()))
    own = KERNEL[liar.map.units.astype(np.int64)]
    pulls = np.array([own + (own - KERNEL[partner]) ** 2 for partner in asked]).reshape(-1, FEW, 2)
    pulls = pulls / pulls.sum(axis=1, keepdims=True)
    shares = np.eye(len(code.prototypes))[code.cells].T / np.bincount(code.cells)[:, None]

    def misfit(x):
        x = x.reshape(FEW, -1)
        known = 100 * ((shares @ x - code.prototypes) ** 2).sum(axis=0) + 100 * (x.std(axis=0) - 1) ** 2
        return known + ((validities(x, pulls) - np.array(told)[:, None]) ** 2).sum(axis=0)

    rounds = {"popsize": 40, "maxiter": 600 if told else 20, "tol": 0, "atol": 1e-9, "polish": False}
    found = differential_evolution(
        misfit,
        [(-3, 3)] * FEW,
        vectorized=True,
        updating="deferred",
        strategy="rand1bin",
        mutation=(0.4, 0.9),
        rng=rng,
        **rounds,
    )
    return len(told), float(np.abs(found.x - (truth - truth.mean()) / truth.std()).max())


def test_few_people_and_many_validity_values(tmp_path):
    liar, _, income = led(tmp_path, few_study(), people=FEW, grid=(1, 2))
    told, error = solved(liar, income)
    assert told == 0
    assert error > 0.05


def test_few_people_and_many_validity_values_unguarded(tmp_path, monkeypatch):
    """Every value of six people, from numbers about all of them; the search gets there in most studies, not in all."""
    monkeypatch.setattr(nodes.holder, "SCALARS", 0)
    for seed in range(8):
        liar, _, income = led(tmp_path / str(seed), few_study(seed), people=FEW, grid=(1, 2))
        told, error = solved(liar, income)
        assert told >= FEW
        if error < 0.02:
            return
    pytest.fail("no study gave its people away")


def told_by_verdicts(folder, people=300, seen=None):
    """An honest study with l = 2: what the coordinator makes of the verdicts and of the values of the final groups."""
    rng = np.random.default_rng(4)
    ill = rng.choice(["yes", "no"], people)
    made = number_table(rng.normal(size=people), ill=(Role.SENSITIVE, Kind.CATEGORY, ill))
    holder = make_holder(folder, "north", made, ["north"])
    tape = Tape({"north": holder})
    Driver(STUDY, tape).run()
    asked = [decode(content, p.REQUESTS).payload for _, _, content in tape.requests]
    final = next(one.groups for one in asked if isinstance(one, p.MakeRelease)).astype(np.int64)
    proposed = next(one.groups for one in asked if isinstance(one, p.CheckGroups)).astype(np.int64)
    codes = (in_pseudonym_order(holder, ill) == "yes").astype(np.int64)
    return sharpened(codes, proposed, final, seen or heights_seen(2, int(proposed.max()) + 1), rng)


def test_honest_verdicts_tell_the_coordinator_hardly_more_than_the_release(tmp_path):
    found = told_by_verdicts(tmp_path)
    assert found.certain == 0
    assert found.success - found.without < 0.01


def test_honest_verdicts_unguarded_name_groups_of_one_value(tmp_path):
    """A flag per group, the plain way: nearly a fifth of the people's values are known for certain."""
    found = told_by_verdicts(tmp_path, seen=flags_seen(2))
    assert found.certain > 0.1
    assert found.success - found.without > 0.005
