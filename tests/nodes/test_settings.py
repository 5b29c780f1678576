"""A holder's settings: what is read from them, and that all their faults come in one message."""

from pathlib import Path

import pytest

from federated_anon.columns import Kind, Role
from federated_anon.crypto.signing import Identity
from federated_anon.errors import SettingsRefused, StorageFailed
from nodes.settings import load_settings

GOOD = """
[holder]
name = "clinic"
identity = "own.key"

[source]
path = "data/people.csv"

[partners]
bank = "{key}"

[columns.id]
role = "key"

[columns.age]
role = "quasi-identifier"
type = "integer"
weight = 2.0

[columns.school]
role = "quasi-identifier"
type = "ordered"
levels = ["low", "high"]

[policy]
smallest_k = 7
exposures = ["open"]
"""


@pytest.fixture
def folder(tmp_path) -> Path:
    Identity.for_simulation(0, "clinic").save(tmp_path / "own.key")
    return tmp_path


def written(folder: Path, text: str = GOOD) -> Path:
    path = folder / "settings.toml"
    path.write_text(text.replace("{key}", Identity.for_simulation(0, "bank").public.hex()))
    return path


def faults(folder: Path, before: str, after: str) -> tuple[str, ...]:
    assert before in GOOD
    with pytest.raises(SettingsRefused) as refused:
        load_settings(written(folder, GOOD.replace(before, after, 1)))
    return refused.value.faults


def test_paths_are_relative_to_the_file_and_defaults_are_strict(folder):
    found = load_settings(written(folder))
    assert (found.name, found.source.place, found.ledger) == ("clinic", folder / "data/people.csv", folder / "ledger")
    assert found.partners == {"bank": Identity.for_simulation(0, "bank").public}
    assert [(c.name, c.role, c.kind, c.weight) for c in found.columns] == [
        ("id", Role.KEY, Kind.TEXT, 1.0),
        ("age", Role.QUASI, Kind.INTEGER, 2.0),
        ("school", Role.QUASI, Kind.ORDERED, 1.0),
    ]
    assert found.policy.smallest_k == 7
    assert found.policy.one_release_per_data_version
    sealed = load_settings(written(folder, GOOD.replace('exposures = ["open"]\n', "")))
    assert sealed.policy.exposures == ("sealed",)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("[policy]", "[policy]\nmost_round = 3", "[policy] unknown key 'most_round'; known keys: "),
        ("[columns.id]", "[colums.id]", "unknown key 'colums'"),
        ('role = "quasi-identifier"\ntype = "integer"', 'type = "integer"', "[columns.age] 'role' is missing"),
        ('"integer"', '"int"', "[columns.age] type must be 'number', 'integer'"),
        ('"integer"', "3", "[columns.age] type must be"),
        ("weight = 2.0", "weight = 0", "weight must be greater than 0"),
        ("weight = 2.0", 'weight = "2"', "weight must be a valid number"),
        ('levels = ["low", "high"]', "", "needs at least two levels"),
        ('levels = ["low", "high"]', 'levels = ["low", "low"]', "levels named more than once: low"),
        ('role = "key"', 'role = "keep"', "exactly one column has the role 'key', the one that names the person; none"),
        ("smallest_k = 7", "smallest_k = 1", "[policy] smallest_k must be at least 2, got 1"),
        ("smallest_k = 7", 'never_send = ["wage"]', "[policy] never_send names unknown columns: wage"),
        ('exposures = ["open"]', 'exposures = ["naked"]', "[policy.exposures]"),
        ("[partners]\nbank", '[partners]\nshop = "12"\nbank', "[partners] shop must be"),
        ('name = "clinic"', 'name = "our clinic"', "[holder] name must be"),
        ('identity = "own.key"', "", "[holder] 'identity' is missing"),
    ],
)
def test_every_fault_is_named_with_its_place(folder, before, after, told):
    found = faults(folder, before, after)
    assert any(told in fault for fault in found), found


def test_faults_come_together_even_where_roles_are_still_to_be_chosen(folder):
    text = GOOD.replace('role = "quasi-identifier"', 'role = "choose"').replace("smallest_k = 7", "smallest_kk = 7")
    with pytest.raises(SettingsRefused) as refused:
        load_settings(written(folder, text.replace("weight = 2.0", "weight = -1.0")))
    told = str(refused.value)
    assert "3 faults" in told
    assert "choose a role for: age, school (roles: identifier, key, quasi-identifier" in told
    assert "unknown key 'smallest_kk'" in told
    assert "weight must be" in told


@pytest.mark.parametrize("content", ["columns = 3", 'columns = ["id"]', "[columns]\nid = 3", ""])
def test_columns_of_another_shape_are_refused(folder, content):
    text = GOOD[: GOOD.index("[columns.id]")] + GOOD[GOOD.index("[policy]") :]
    with pytest.raises(SettingsRefused):
        load_settings(written(folder, content + "\n" + text if content[:1] != "[" else text + "\n" + content))


def test_a_key_file_that_is_none_is_told_with_its_cure(folder):
    (folder / "own.key").write_text("not a key")
    with pytest.raises(StorageFailed, match="make one with 'federated-anon keys'"):
        load_settings(written(folder))
