"""Noise on representatives through whole studies: budget, retries, refusals, and what one person can move."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_anon.columns import Column, Kind, Role
from federated_anon.errors import Code, HolderRefused, SettingsRefused
from federated_anon.messages import Step
from federated_anon.privacy.noise import Coins
from federated_anon.study import ReleaseSettings
from nodes import noise
from nodes.holder import DataHolder
from tests.simulator import Driver, Tape, drive, make_settings, make_study

NAMES = ("north", "south")
LAPLACE = {"noise": "laplace", "epsilon": 1.0}
BUDGET = {"exposures": ["sealed"], "most_epsilon": 1.0}


def holders(folder, bounds=(0.0, 10.0), kind=Kind.NUMBER, **policy):
    made = {}
    for number, name in enumerate(NAMES):
        rng = np.random.default_rng(number)
        values = rng.integers(0, 11, (2, 60)) if kind is Kind.INTEGER else rng.uniform(0, 10, (2, 60))
        table = pa.table({"id": [f"p{i}" for i in range(60)], f"{name}_a": values[0], f"{name}_b": values[1]})
        quasi = [Column(c, Role.QUASI, kind, bounds=bounds) for c in table.column_names[1:]]
        columns = (Column("id", Role.KEY, Kind.TEXT), *quasi)
        made[name] = DataHolder(make_settings(folder, name, table, columns, NAMES, **(BUDGET | policy)))
    return made


def study(name="one", **release):
    return make_study(NAMES, name=name, exposure="sealed", release=release or LAPLACE)


@pytest.mark.parametrize("kind", [Kind.NUMBER, Kind.INTEGER])
@pytest.mark.parametrize("release", [LAPLACE, {"noise": "gaussian", "epsilon": 1.0, "delta": 1e-6}])
def test_a_release_has_noise_inside_its_bounds_and_keeps_k(tmp_path, release, kind):
    outcome = drive(study(**release), holders(tmp_path, kind=kind, most_delta=1e-5))
    assert outcome.release.reached.k >= 3
    values = outcome.release.table["north_a"].to_numpy()
    assert values.min() >= 0
    assert values.max() <= 10
    assert len(np.unique(values)) > 1
    assert pa.types.is_integer(outcome.release.table["north_a"].type) == (kind is Kind.INTEGER)


def test_a_retry_after_a_restart_gives_the_same_bytes(tmp_path):
    first, second = (Tape(holders(tmp_path)) for _ in range(2))
    releases = [
        Driver(study(), tape, first_sequence=10_000 * n).run().release for n, tape in enumerate((first, second))
    ]
    assert releases[0].csv() == releases[1].csv()


def test_noise_does_not_follow_from_the_public_seed(tmp_path, monkeypatch):
    secrets = []
    monkeypatch.setattr(noise, "Coins", lambda secret: secrets.append(secret) or Coins(secret))
    drive(study(), holders(tmp_path))
    assert len(set(secrets)) == len(secrets) == 4  # One per column, of two holders with identities of their own.


def test_the_budget_is_spent_over_studies_of_one_version_and_then_refused(tmp_path):
    free = {"one_release_per_data_version": False, "most_epsilon": 2.5}
    for name in ("one", "two"):
        drive(study(name), holders(tmp_path, **free))
    with pytest.raises(HolderRefused) as stopped:
        drive(study("three"), holders(tmp_path, **free))
    assert (stopped.value.code, stopped.value.step) == (Code.BUDGET, Step.ENROL)
    drive(study("two"), holders(tmp_path, **free), first_sequence=10_000)  # Told before, so it costs nothing.
    entries = holders(tmp_path)["north"]._guard._entries(study("two").digest)
    assert next(entry["spent"] for entry in entries if entry["step"] == "release" and entry["sent"]) == [1.0, 0.0]


@pytest.mark.parametrize(
    ("policy", "release"),
    [
        ({"most_epsilon": None}, LAPLACE),
        ({}, {"noise": "none"}),
        ({}, {"noise": "laplace", "epsilon": 1.5}),
        ({}, {"noise": "gaussian", "epsilon": 1.0, "delta": 1e-6}),
        ({"bounds": None}, LAPLACE),
    ],
)
def test_noise_and_budget_must_agree(tmp_path, policy, release):
    with pytest.raises(HolderRefused) as stopped:
        drive(study(**release), holders(tmp_path, **policy))
    assert (stopped.value.code, stopped.value.step) == (Code.POLICY_NOISE, Step.ENROL)


@pytest.mark.parametrize(
    "release",
    [
        {"noise": "laplace"},
        {"epsilon": 1.0},
        {"noise": "laplace", "epsilon": 1.0, "delta": 1e-6},
        {"noise": "gaussian", "epsilon": 1.0},
        {"noise": "laplace", "epsilon": -1.0},
    ],
)
def test_half_a_setting_is_refused(release):
    with pytest.raises(SettingsRefused):
        study(**release)


@given(seed=st.integers(0, 999), person=st.integers(0, 19), value=st.floats(-1e6, 1e6) | st.none())
def test_one_person_moves_one_sum_by_no_more_than_the_noise_is_measured_for(seed, person, value):
    """The mechanism without its noise, on two tables that differ in one person, whatever that person's value is."""
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(4), 5))
    one = rng.uniform(-3, 13, 20).tolist()
    other = [*one[:person], value, *one[person + 1 :]]
    column = Column("x", Role.QUASI, Kind.NUMBER, bounds=(0.0, 10.0))
    means = [plain_means(values, column, groups) for values in (one, other)]
    moved = np.abs(means[0] - means[1])
    assert (moved[np.arange(4) != groups[person]] == 0).all()
    assert moved.max() <= 10.0 / 5 + 1e-9


def plain_means(values, column, groups) -> np.ndarray:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise, "_noise", lambda count, *rest: np.zeros(count, dtype=np.int64))
        settings = ReleaseSettings(noise="laplace", epsilon=1.0)
        table = pa.table({"x": pa.array(values, pa.float64())})
        return noise.noised(table, [column], groups, settings, bytes(32))["x"].to_numpy()


def test_bounds_are_checked_where_they_are_declared():
    from federated_anon.columns import column_faults

    for kind, bounds in (
        (Kind.CATEGORY, (0, 1)),
        (Kind.NUMBER, (1, 1)),
        (Kind.NUMBER, (0, np.inf)),
        (Kind.DATE, (0, 1)),
    ):
        assert column_faults(Column("x", Role.QUASI, kind, bounds=bounds))
    assert not column_faults(Column("x", Role.QUASI, Kind.INTEGER, bounds=(0, 1)))
