"""``federated-anon attack``: what each party's whole view gives away, in both exposures, and what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import federated_anon.attacks.links
import nodes.veil
from federated_anon import simulate
from federated_anon.attacks import Attempt, Verdict
from federated_anon.attacks.attempt import exactly
from federated_anon.privacy.linkage import Rate, wilson
from tests.command_line import command

DATA = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """A generated table with a key, numbers, categories, missing values and a sensitive column; related columns."""
    rng = np.random.default_rng(3)
    count = 240
    health = rng.normal(size=count)
    table = pa.table(
        {
            "id": [f"p{number:04d}" for number in rng.permutation(count)],
            "name": [f"Person {number}" for number in range(count)],
            "age": 50 + 12 * health + rng.normal(0, 6, count),
            "income": np.exp(10 - 0.3 * health + rng.normal(0, 0.5, count)),
            "weight": pa.array(70 + 5 * health + rng.normal(0, 9, count), mask=rng.random(count) < 0.1),
            "region": rng.choice(["north", "south", "east"], count),
            "illness": rng.choice(["flu", "cold", "gout", "none"], count),
        }
    )
    path = tmp_path_factory.mktemp("people") / "people.csv"
    pyarrow.csv.write_csv(table, path)
    return path


@pytest.fixture(scope="module")
def runs(people, tmp_path_factory):
    """The same table as a sealed and as an open study."""
    place = tmp_path_factory.mktemp("runs")
    options = {"k": 3, "l": 2, "key": "id", "drop": ["name"], "sensitive": ["illness"], "runtime": "in-process"}
    for exposure in ("sealed", "open"):
        simulate(people, exposure=exposure, out=place / exposure, **options)
    return place


def attacked(run, original, *more) -> dict:
    answer = command("attack", str(run), "--original", str(original), "--json", *more)
    assert answer.code == 0, answer.err
    told = json.loads(answer.out)
    return {one["name"]: one for one in told["attempts"]} | {"other": told["other_exposure"]["attempts"]}


def test_a_sealed_study_keeps_every_bound_and_the_same_attack_on_an_open_one_links(runs, people):
    found = attacked(runs / "sealed", people, "--key", "id")
    for name in ("coordinator-nearest", "coordinator-classes", "release-nearest"):
        assert 0.1 < found[name]["success"] <= 1.05 / 3, name
    for number in (1, 2, 3):
        assert abs(found[f"holder-{number}-order"]["success"] - found["coordinator-classes"]["success"]) < 0.1
    assert found["differencing"]["success"] == found["bridges"]["success"] == found["dictionary"]["success"] == 0
    assert found["dictionary-with-key"]["success"] == found["coalition-shuffles"]["success"] == 1
    assert found["inference-illness"]["baseline"] < found["inference-illness"]["success"] < 0.8
    assert {one["verdict"] for one in found.values() if isinstance(one, dict)} == {"holds", "stated"}
    assert [one["success"] > 0.6 for one in found["other"]] == [True, True]


def test_an_open_study_is_linked_by_its_coordinator_and_by_nobody_else(runs, people):
    found = attacked(runs / "open", people, "--key", "id")
    assert found["coordinator-nearest"]["success"] > 0.6
    assert found["coordinator-nearest"]["verdict"] == "stated"
    assert found["holder-1-partners"]["success"] > found["holder-1-partners"]["baseline"]
    assert found["release-nearest"]["verdict"] == found["bridges"]["verdict"] == "holds"
    assert all(one["success"] <= 1.05 / 3 for one in found["other"])


def bridged(place):
    """An open study of two related columns, whose groups cross the holders' cells; how its attack ends."""
    rng = np.random.default_rng(0)
    common = rng.normal(50, 10, 150)
    table = pa.table({name: common + rng.normal(0, 8, 150) for name in ("income", "rent")})
    pyarrow.csv.write_csv(table, place / "table.csv")
    simulate(place / "table.csv", k=3, holders=2, exposure="open", out=place / "run", runtime="in-process")
    return command("attack", str(place / "run"), "--original", str(place / "table.csv"), "--alone")


def test_bridges_are_veiled(tmp_path):
    assert bridged(tmp_path).code == 0


def test_bridges_unguarded_break_the_bound_and_the_command_says_so(tmp_path, monkeypatch):
    """Without the veil an open study gives records away exactly: the command must end with the code of that."""
    monkeypatch.setattr(nodes.veil, "_to_veil", lambda known, groups: np.zeros(int(groups.max()) + 1, dtype=bool))
    answer = bridged(tmp_path)
    assert answer.code == 7
    assert "BROKEN" in answer.out
    assert "a bound is broken: differencing, bridges" in answer.err


def test_an_unshuffled_block_is_noticed(people, tmp_path, monkeypatch):
    """Rows that the coordinator does not shuffle again are found by every holder that knows the order inside groups."""
    import coordinator.assembly

    plain = coordinator.assembly.shuffle_within
    kept = {"k": 3, "key": "id", "drop": ["name"], "sensitive": ["illness"], "runtime": "in-process"}
    for module in (coordinator.assembly, federated_anon.attacks.scene):
        monkeypatch.setattr(
            module,
            "shuffle_within",
            lambda labels, key: np.arange(len(labels)) if not labels.any() else plain(labels, key),
        )
    simulate(people, exposure="sealed", out=tmp_path / "run", **kept)
    answer = command("attack", str(tmp_path / "run"), "--original", str(people), "--key", "id", "--alone", "--json")
    assert answer.code == 7
    assert "holder-1-order" in answer.err


@pytest.mark.parametrize("table", ["census", "yeast"])
@pytest.mark.parametrize("k", [3, 10])
def test_linkage_on_published_tables_stays_at_its_bound_sealed_and_not_open(table, k, tmp_path):
    path = DATA / f"{table}.csv"
    if not path.exists():
        pytest.skip("the published tables are not beside this checkout")
    simulate(path, k=k, exposure="sealed", out=tmp_path / "run", runtime="in-process")
    found = attacked(tmp_path / "run", path)
    for name in ("coordinator-nearest", "coordinator-classes", "holder-1-order", "release-nearest"):
        assert found[name]["success"] <= 1.05 / k or found[name]["interval"][0] <= 1 / k, name
    assert found["coordinator-classes"]["success"] <= 1 / k
    assert all(one["success"] > 0.6 for one in found["other"])


def test_another_original_another_key_and_other_folders_are_refused(runs, people, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(people.read_text().replace("flu", "cold", 1))
    for run, file, key, word in [
        (runs / "sealed", other, "id", "another release"),
        (tmp_path, people, "id", "not a readable run folder"),
        (tmp_path / "none", people, "id", "not a readable run folder"),
    ]:
        answer = command("attack", str(run), "--original", str(file), "--key", key)
        assert (answer.code, answer.out) == (7, "")
        assert word in answer.err
        assert "Traceback" not in answer.err
    missing = command("attack", str(runs / "sealed"), "--original", str(tmp_path / "none.csv"), "--key", "id")
    assert missing.code == 4
    renamed = tmp_path / "renamed"
    shutil.copytree(runs / "sealed", renamed)
    study = renamed / "study.toml"
    study.write_text(study.read_text().replace("holder-3", "registry"))
    assert "is not a run of 'simulate'" in command("attack", str(renamed), "--original", str(people)).err


def test_a_lucky_guess_is_no_leak_and_a_leak_is():
    def attempt(success: Rate, bound: float | None) -> Verdict:
        return Attempt("x", "a", "b", "c", success, 0.0, bound).verdict

    assert attempt(wilson(40, 100), 1 / 3) is Verdict.HOLDS
    assert attempt(wilson(4000, 10_000), 1 / 3) is Verdict.BROKEN
    assert attempt(exactly(0.01), 0.0) is Verdict.BROKEN
    assert attempt(exactly(1.0), None) is Verdict.STATED
