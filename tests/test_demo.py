"""The demo: its generated people, its files, and what it shows; on Ray it is the same study as here in one process."""

import json
import os
from functools import partial
from pathlib import Path

import pyarrow.compute as pc
import pytest

from coordinator.audit import audited
from federated_anon import demo
from federated_anon.columns import Kind, Role
from federated_anon.people import organisations
from federated_anon.simulate import run
from nodes.doctor import examine_study
from nodes.identity import normalise_ids
from tests.command_line import command


def test_the_same_seed_makes_the_same_people():
    first, again, other = organisations(80, 3), organisations(80, 3), organisations(80, 4)
    assert all(one.table.equals(two.table) for one, two in zip(first, again, strict=True))
    assert not first[0].table.equals(other[0].table)


def test_people_are_as_they_really_are():
    """Partial overlap, other orders, other spellings of ids, missing values, dates, orders and names."""
    found = organisations(1000, 0)
    ids = [normalise_ids(one.table.column(0)) for one in found]
    common = set.intersection(*(set(own.to_pylist()) for own in ids))
    assert 0.78 < len(common) / 1000 < 0.9
    assert [own.to_pylist()[:5] for own in ids[1:]] != [ids[0].to_pylist()[:5]] * 2
    assert found[1].table.column(0)[0].as_py().isupper()
    assert found[2].table.column(0)[0].as_py().startswith(" ")
    columns = [column for one in found for column in one.columns]
    assert {Role.KEY, Role.IDENTIFIER, Role.QUASI, Role.SENSITIVE, Role.KEEP} == {column.role for column in columns}
    assert {Kind.DATE, Kind.ORDERED, Kind.BOOLEAN, Kind.INTEGER, Kind.NUMBER} <= {column.kind for column in columns}
    assert all(any(column.null_count for column in one.table.columns) for one in found)


def test_columns_of_different_organisations_are_related():
    found = organisations(2000, 1)
    hospital, insurer = (one.table for one in found[:2])
    rows = pc.index_in(normalise_ids(hospital["patient"]), normalise_ids(insurer["member"]))
    health = hospital["visits"].filter(pc.is_valid(rows)).to_numpy()
    claims = insurer["claims"].take(rows.drop_null()).to_numpy()
    assert abs(pc.mean(claims[health >= 3]).as_py()) > 1.2 * pc.mean(claims[health == 0]).as_py()


@pytest.fixture(scope="module")
def demonstrated(tmp_path_factory):
    """What the demo shows of a small population, without Ray, and where it was called."""
    folder = tmp_path_factory.mktemp("room")
    with pytest.MonkeyPatch.context() as changed:
        changed.chdir(folder)
        changed.setenv("COLUMNS", "80")
        changed.setattr(demo, "run", partial(run, runtime="in-process"))
        return command("demo", "--people", "300", "--out", "demo"), folder


@pytest.fixture
def shown(demonstrated, monkeypatch):
    """The demo's answer, standing where it was called."""
    answer, folder = demonstrated
    monkeypatch.chdir(folder)
    return answer


def test_the_demo_shows_what_was_lost_what_risk_is_left_and_who_learns_what(shown):
    assert shown.code == 0, shown.err
    for title in ("What was lost", "who learns what", "coordinator could link", "sent by holders", "Next:"):
        assert title in shown.out
    assert "Davies-Bouldin" in shown.err
    assert " keep" in shown.err or " revert" in shown.err
    assert max(len(line) for line in shown.out.splitlines() if line.startswith(("┃", "│"))) <= 80


def test_what_the_demo_wrote_is_healthy_verified_and_repeatable(shown):
    assert sorted(os.listdir("demo")) == sorted(demo.EXPOSURES)
    for exposure in demo.EXPOSURES:
        trial = Path("demo") / exposure
        assert {"hospital", "insurer", "registry", "run", "study.toml"} <= set(os.listdir(trial))
        found = audited(trial / "run")
        assert found.reached.k >= demo.K
        assert min(found.reached.diversity.values()) >= demo.L
        assert command("doctor", trial / "study.toml").code == 0
        again = command("run", trial / "study.toml", "--out", trial / "again", "--runtime", "in-process", "--json")
        assert again.code == 0, again.err
        assert (trial / "again/release.csv").read_bytes() == (trial / "run/release.csv").read_bytes()


def test_both_exposures_are_run_over_the_same_people_and_set_side_by_side(shown):
    for one in organisations(300, 0):
        first, second = (Path("demo", exposure, one.name, one.file).read_bytes() for exposure in demo.EXPOSURES)
        assert first == second
    reports = {one: json.loads(Path("demo", one, "run/report.json").read_text()) for one in demo.EXPOSURES}
    assert {one: report["exposure"] for one, report in reports.items()} == {one: one for one in demo.EXPOSURES}
    told = {line.split("│")[1].strip(): line.split("│")[2:4] for line in shown.out.splitlines() if line.count("│") == 4}
    for place, report in enumerate(reports.values()):
        assert f"{report['information_loss_percent']:.1f} %" == told["information lost"][place].strip()
        assert (
            told["coordinator could link"][place]
            .strip()
            .startswith(f"{100 * report['coordinator_view_linkage']:.1f} %")
        )
    linked = {one: report["coordinator_view_linkage"] for one, report in reports.items()}
    assert linked["sealed"] <= 1 / demo.K < 0.6 < linked["open"]


def test_the_commands_it_names_next_exist(shown):
    told = [line.split() for line in shown.out.splitlines() if line.startswith("  federated-anon ")]
    assert {words[1] for words in told} == {"verify", "doctor", "simulate"}
    looked = [line.split()[0] for line in shown.out.splitlines() if line.startswith("  demo/")]
    assert looked
    assert all(Path(name).exists() for name in looked)


def test_a_demo_that_fails_leaves_nothing(room, monkeypatch):
    def fail(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(demo, "run", fail)
    answer = command("demo", "--people", "60", "--out", "demo")
    assert answer.code == 9
    assert "'demo' cannot be written: No space left on device" in answer.err
    assert os.listdir(room) == []


def test_the_demo_never_writes_over_a_folder(room):
    Path("demo").mkdir()
    answer = command("demo", "--out", "demo")
    assert (answer.code, os.listdir("demo")) == (9, [])
    assert "exists already" in answer.err


def test_doctor_finds_nothing_wrong_with_fresh_organisations(tmp_path):
    from federated_anon import load_study

    path = demo.write_organisations(tmp_path / "fresh", organisations(60, 2), 2)
    findings = examine_study(load_study(path), path.parent)
    assert [finding.text for finding in findings if not finding.ok] == []
    assert {finding.subject for finding in findings} >= {"data", "ledger", "policy", "partners", "key file"}
