"""Every example study is loaded, examined and run, over generated people."""

import shutil
from pathlib import Path

import pytest

from coordinator.audit import audited
from federated_anon import load_study, run
from federated_anon.crypto.signing import Identity
from federated_anon.demo import write_table
from federated_anon.people import organisations
from nodes.doctor import examine_study
from nodes.settings import load_settings

STUDIES = sorted((Path(__file__).parents[1] / "deploy" / "studies").glob("*.toml"))
PEOPLE = 260


def furnished(example: Path, folder: Path) -> Path:
    """A copy of the example, with the keys that its settings pin and data where its settings say."""
    shutil.copytree(example.parent, folder)
    found = {one.name: one for one in organisations(PEOPLE, 0)}
    for name, place in load_study(example).deployment.items():
        settings = folder / place.settings
        Identity.for_simulation(0, name).save(settings.parent / f"{name}.key")
        write_table(found[name].table, load_settings(settings).source.place)
    return folder / example.name


def test_there_is_an_example_for_two_and_for_three_holders():
    assert {len(load_study(path).holders) for path in STUDIES} >= {2, 3}


@pytest.mark.parametrize("example", STUDIES, ids=lambda path: path.stem)
def test_every_example_is_healthy_runs_and_can_be_verified(example, tmp_path):
    path = furnished(example, tmp_path / "studies")
    study = load_study(path)
    assert [finding.text for finding in examine_study(study, path.parent) if not finding.ok] == []
    result = run(path, tmp_path / "run", runtime="in-process")
    assert audited(tmp_path / "run").reached.k >= study.privacy.k
    assert min(result.report["diversity_reached"].values()) >= (study.privacy.l or 1)
    assert {column["holder"] for column in result.report["columns"]} == set(study.holders)


def test_a_column_that_is_never_sent_is_not_in_the_release(tmp_path):
    example = next(path for path in STUDIES if path.stem == "two-holders")
    result = run(furnished(example, tmp_path / "studies"), runtime="in-process")
    assert "education" in result.table.column_names
    assert "region" not in result.table.column_names
