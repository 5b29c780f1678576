"""The doctor: what it finds of a holder and of a study, without touching anything."""

import os
from pathlib import Path

import pytest

from federated_anon import load_study, run
from federated_anon.crypto.signing import Identity
from federated_anon.demo import write_organisations
from federated_anon.people import organisations
from nodes.doctor import examine_holder, examine_study, load_all


@pytest.fixture
def study(tmp_path) -> Path:
    return write_organisations(tmp_path / "demo", organisations(80, 0), 0)


def edit(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))


def faults(study: Path) -> list[tuple[str, str, str]]:
    findings = examine_study(load_study(study), study.parent)
    return [(finding.holder, finding.subject, finding.text) for finding in findings if not finding.ok]


def test_a_healthy_study_is_told_so_and_nothing_is_written(study):
    before = sorted(study.parent.rglob("*"))
    assert faults(study) == []
    assert sorted(study.parent.rglob("*")) == before


def test_data_faults_are_told_with_counts_and_without_values(study):
    rows = (study.parent / "hospital" / "hospital.csv").read_text().splitlines()
    (study.parent / "hospital" / "hospital.csv").write_text("\n".join([*rows, rows[1], ""]))
    [(holder, subject, text)] = faults(study)
    assert (holder, subject) == ("hospital", "data")
    assert "1 of 76 ids occur more than once" in text
    assert rows[1].split(",")[0] not in text


def test_a_key_that_others_can_read(study):
    (study.parent / "insurer" / "identity.key").chmod(0o640)
    [(holder, subject, text)] = faults(study)
    assert (holder, subject) == ("insurer", "key file")
    assert "mode 640" in text
    assert "chmod 600" in text


def test_a_ledger_that_cannot_be_written(study):
    edit(study.parent / "insurer" / "settings.toml", 'ledger = "ledger"', 'ledger = "/proc/ledger"')
    [(holder, subject, text)] = faults(study)
    assert (holder, subject) == ("insurer", "ledger")
    assert "'/proc/ledger' cannot be written" in text


def test_a_pin_that_is_not_the_key_its_owner_has(study):
    settings = study.parent / "registry" / "settings.toml"
    edit(settings, Identity.for_simulation(0, "insurer").public.hex(), "0" * 64)
    [(holder, subject, text)] = faults(study)
    assert (holder, subject) == ("registry", "partners")
    assert f'insurer = "{Identity.for_simulation(0, "insurer").public.hex()}"' in text


def test_a_partner_that_nobody_pinned(study):
    edit(study.parent / "registry" / "settings.toml", "insurer = ", "stranger = ")
    assert faults(study) == [("registry", "partners", "pin the public key of: insurer (under [partners])")]


def test_every_breach_of_a_policy(study):
    settings = study.parent / "registry" / "settings.toml"
    edit(settings, "smallest_k = 5", 'smallest_k = 50\nmethods = ["c-tca"]')
    [(holder, subject, text)] = faults(study)
    assert (holder, subject) == ("registry", "policy")
    assert "k is 5, smallest accepted is 50" in text
    assert "method 'best', accepted: c-tca" in text


def test_columns_that_two_holders_bring_under_one_name(study):
    settings = study.parent / "insurer" / "settings.toml"
    edit(settings, "[columns.claims]", "[columns.visits]")
    found = faults(study)
    assert ("study", "columns", "hospital and insurer both bring 'visits': rename or drop one") in found


def test_a_holder_that_is_not_here_and_one_that_is_nowhere(study):
    (study.parent / "registry" / "settings.toml").unlink()
    assert faults(study) == []
    findings = examine_study(load_study(study), study.parent)
    assert [f.text for f in findings if f.subject == "place"] == [
        "'registry/settings.toml' is not on this machine: run doctor there"
    ]
    edit(study, '[deployment.registry]\nsettings = "registry/settings.toml"', "")
    assert [(holder, subject) for holder, subject, _ in faults(study)] == [("registry", "place")]


def test_settings_of_another_holder(study):
    edit(study.parent / "registry" / "settings.toml", 'name = "registry"', 'name = "office"')
    assert ("registry", "settings", "[holder] name is 'office', the study says 'registry'") in faults(study)
    _, told = load_all({"registry": str(study.parent / "registry" / "settings.toml")})
    assert told == ["[deployment.registry] the settings are of holder 'office'"]


def test_a_released_version_is_told(study, tmp_path):
    run(study, tmp_path / "run", runtime="in-process")
    texts = [f.text for f in examine_holder(study.parent / "hospital" / "settings.toml") if f.subject == "data"]
    assert "this version was released before" in texts[0]
    assert os.listdir(study.parent / "hospital" / "ledger")
