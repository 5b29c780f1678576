"""Profiles are checked before they enter the report; losses of larger groups follow from the release."""

import dataclasses
import json

import numpy as np
import pytest

from coordinator.coarser import Classes, loss_by_k
from coordinator.profiles import profiles_of
from federated_anon.columns import Column, Kind, Role
from federated_anon.encoding import Encoding
from federated_anon.errors import MessageRefused
from federated_anon.messages.payloads import Evaluated
from federated_anon.microaggregation import MDAV
from tests.simulator import drive, make_holders, make_study


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    return drive(make_study(), make_holders(tmp_path_factory.mktemp("open")))


def told(profile: dict | str) -> Evaluated:
    text = profile if isinstance(profile, str) else json.dumps(profile)
    return Evaluated((), np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.uint64), text)


def checked(outcome, change) -> dict:
    profile = json.loads(json.dumps(outcome.report["profiles"]["north"]))
    change(profile)
    replies = {"north": told(profile), "south": told("")}
    return profiles_of(outcome.release.study, outcome.release, outcome.report["records"], replies)


def test_an_honest_profile_passes_and_one_that_is_kept_is_none(outcome):
    found = checked(outcome, lambda profile: None)
    assert found == {"north": outcome.report["profiles"]["north"], "south": None}
    assert {c["name"] for c in found["north"]["columns"]} == {"north_number", "north_integer", "north_colour"}


@pytest.mark.parametrize(
    "change",
    [
        lambda profile: profile["columns"][0].update(before=[1, 59], after=[30, 30], labels=["a", "b"]),
        lambda profile: profile["columns"][0].update(before=[61]),
        lambda profile: profile["columns"][0].update(name="south_number"),
        lambda profile: profile["columns"].pop(),
        lambda profile: profile["columns"][0].update(distance=float("nan")),
        lambda profile: profile.update(minimum=3.2),
        lambda profile: profile["columns"][0].update(labels=["x" * 300]),
    ],
    ids=["below k", "other sum", "other column", "column missing", "no number", "unknown key", "endless text"],
)
def test_a_profile_that_tells_too_much_or_makes_no_sense_is_refused(outcome, change):
    with pytest.raises(MessageRefused, match="the profile of 'north'"):
        checked(outcome, change)


def test_the_loss_of_joined_groups_is_exact_for_means():
    rng = np.random.default_rng(5)
    points = rng.normal(size=(300, 2))
    points = (points - points.mean(axis=0)) / points.std(axis=0)
    labels = MDAV(3).fit(points).labels_
    sizes = np.bincount(labels)
    means = np.stack([np.bincount(labels, x) / sizes for x in points.T], axis=1)
    columns = tuple(Column(name, Role.QUASI, Kind.NUMBER) for name in "ab")
    encoding = dataclasses.replace(Encoding((), ()), columns=columns, parts=(Part(), Part()))
    errors = np.square(points - means[labels]).sum(axis=0)
    replies = {"h": Evaluated(("a", "b"), errors, np.full(2, 300.0), np.zeros(0, dtype=np.uint64), "")}
    curve = loss_by_k(Classes(encoding, means, sizes), 100 * errors.sum() / 600, replies)
    assert [one["k"] >= 3 * m for one, m in zip(curve, (1, 2, 3, 5, 10), strict=True)] == [True] * 5
    unions = MDAV(2).fit(means).labels_[labels]
    centres = np.stack([np.bincount(unions, x) / np.bincount(unions) for x in points.T], axis=1)
    assert curve[1]["loss_percent"] == pytest.approx(100 * np.square(points - centres[unions]).sum() / 600)
    assert curve == sorted(curve, key=lambda one: one["loss_percent"])


class Part:
    """A column of one dimension."""

    width = 1
