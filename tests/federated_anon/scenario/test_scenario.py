from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from federated_anon.columns import Role
from federated_anon.errors import SettingsRefused
from federated_anon.play import played
from federated_anon.scenario import load_scenario, staged
from federated_anon.scenario.plan import Play, TableSettings
from federated_anon.scenario.sites import LABEL, generated, shares

TABLE = TableSettings(people=80, columns=6)


def plan(tmp_path, *scenarios, **common):
    content = {"name": "trial", "table": {"people": 80, "columns": 6}, "common": common, "scenario": list(scenarios)}
    file = tmp_path / "scenario.toml"
    file.write_text(tomli_w.dumps(content))
    return load_scenario(file)


def ending(tmp_path, does, step, exposure="sealed"):
    trouble = [{"site": 2, "step": step, "does": does, "seconds": 0.05}]
    found = plan(tmp_path, {"name": "plain"}, {"name": "troubled", "trouble": trouble}, k=3, exposure=exposure)
    return [played(found, play) for play in found.plays]


@pytest.mark.parametrize(("exposure", "step"), [("open", "code"), ("sealed", "split"), ("sealed", "release")])
@pytest.mark.parametrize("does", ["restart", "lag"])
def test_a_site_that_comes_back_changes_nothing(tmp_path, does, step, exposure):
    plain, troubled = ending(tmp_path, does, step, exposure)
    same = set(plain) - {"seconds", "bytes"}
    assert {key: plain[key] for key in same} == {key: troubled[key] for key in same}
    assert plain["ending"] == "released"


@pytest.mark.parametrize(
    ("does", "code"), [("vanish", "holder-late"), ("garbage", "malformed-message"), ("replay", "other-study")]
)
def test_a_site_that_is_lost_or_lies_ends_the_study_in_the_documented_way(tmp_path, does, code):
    _, troubled = ending(tmp_path, does, "release")
    assert troubled["ending"] == code
    assert "k_reached" not in troubled


def test_a_liar_that_takes_every_split_costs_information_and_not_k(tmp_path):
    plain, troubled = ending(tmp_path, "inflate", "propose")
    assert troubled["ending"] == "released"
    assert troubled["k_reached"] >= 3
    assert troubled["information_loss"] > plain["information_loss"]


def test_lists_are_swept_and_faults_are_told_together(tmp_path):
    found = plan(tmp_path, {"name": "a", "k": [3, 5]}, {"name": "b"}, exposure=["open", "sealed"])
    assert sorted((play.name, play.k, play.exposure) for play in found.plays)[:3] == [
        ("a", 3, "open"), ("a", 3, "sealed"), ("a", 5, "open"),
    ]  # fmt: skip
    assert len(found.plays) == 6
    with pytest.raises(SettingsRefused, match=r"(?s)unknown key 'speed'.*unknown key 'mood'.*'name' is missing"):
        plan(tmp_path, {"mood": 1}, speed=2)
    with pytest.raises(SettingsRefused, match="site 9 of 3 holders"):
        plan(tmp_path, {"name": "x", "trouble": [{"site": 9, "step": "map", "does": "lag"}]})
    with pytest.raises(SettingsRefused, match="does 'dance'; known: restart"):
        plan(tmp_path, {"name": "x", "trouble": [{"site": 1, "step": "map", "does": "dance"}]})
    with pytest.raises(SettingsRefused, match="at most 500"):
        plan(tmp_path, {"name": "x", "seed": list(range(600))})


def test_more_sites_than_columns_is_a_clear_fault():
    with pytest.raises(SettingsRefused, match="6 quasi-identifiers cannot be dealt to 7 holders"):
        staged(generated(TABLE, 0), LABEL, (), Play(name="x", holders=7))


def test_sites_know_their_share_of_people_with_gaps_and_noise_of_their_own():
    table = generated(TABLE, 0)
    sites = staged(table, LABEL, (), Play(name="x", overlap=0.5, missing=0.3, noise=0.5))
    assert [site.table.num_rows for site in sites] == [40, 40, 40]
    names = [column.name for site in sites for column in site.columns if column.role is Role.QUASI]
    assert sorted(names) == [name for name in table.column_names if name != LABEL]
    numbers = [site.table[column.name] for site in sites for column in site.columns if column.role is Role.QUASI]
    assert 0.15 < np.mean([column.null_count / 40 for column in numbers]) < 0.45
    assert staged(table, LABEL, (), Play(name="x", overlap=0.5)) == staged(
        table, LABEL, (), Play(name="x", overlap=0.5)
    )


def test_related_columns_lie_together_or_apart():
    rng = np.random.default_rng(0)
    hidden = rng.standard_normal((200, 3))
    values = {f"{'abc'[j % 3]}{j // 3}": hidden[:, j % 3] + 0.1 * rng.standard_normal(200) for j in range(9)}
    table = pa.table(values)

    def families(deal):
        sites = staged(table, None, (), Play(name="x", deal=deal))
        return [sorted({c.name[0] for c in site.columns if c.role is Role.QUASI}) for site in sites]

    assert sorted(families("together")) == [["a"], ["b"], ["c"]]
    assert families("apart") == [["a", "b", "c"]] * 3


@given(st.integers(1, 60), st.integers(0, 200), st.floats(0, 3))
def test_shares_give_everyone_a_column_and_deal_all(sites, more, skew):
    found = shares(sites + more, sites, skew)
    assert sum(found) == sites + more
    assert min(found) >= 1
    assert skew == 0 or found[0] == max(found)
