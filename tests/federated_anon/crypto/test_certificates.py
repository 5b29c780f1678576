import datetime
import stat

import pytest

from federated_anon.crypto.certificates import (
    Certificate,
    OwnFiles,
    certificate_faults,
    is_issued_by,
    key_faults,
    own_faults,
    pin_faults,
)
from federated_anon.crypto.trial_authority import TrialAuthority, write_new, write_trial
from federated_anon.errors import StorageFailed

NOW = datetime.datetime.now(datetime.UTC)


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trial") / "certs"
    write_trial(folder, "coordinator", ["north", "south_1.x"], ("holder.example", "10.1.2.3"), 30)
    return folder


def files(trial, name) -> OwnFiles:
    own = trial / name
    return OwnFiles(own / f"{name}.crt", own / f"{name}.key", own / "authority.crt")


@pytest.mark.parametrize("name", ["coordinator", "north", "south_1.x"])
def test_a_trial_is_without_fault(trial, name):
    assert own_faults(files(trial, name), name, NOW) == []


def test_the_first_name_is_the_party_and_hosts_follow(trial):
    found = Certificate.load(trial / "north" / "north.crt")
    assert found.party == "north"
    assert found.names == ("north", "localhost", "127.0.0.1", "::1", "holder.example", "10.1.2.3")
    assert not found.is_authority


def test_keys_are_for_their_owner_and_pins_are_where_they_are_needed(trial):
    assert {stat.S_IMODE(path.stat().st_mode) for path in trial.rglob("*.key")} == {0o600}
    assert sorted(path.name for path in (trial / "north").iterdir()) == [
        "authority.crt",
        "coordinator.crt",
        "north.crt",
        "north.key",
    ]
    assert {path.name for path in (trial / "coordinator").glob("*.crt")} == {
        "authority.crt",
        "coordinator.crt",
        "north.crt",
        "south_1.x.crt",
    }
    assert [path.parent for path in trial.rglob("authority.key")] == [trial]


def test_nothing_is_written_over(trial):
    with pytest.raises(StorageFailed):
        write_trial(trial, "coordinator", ["north"], (), 30)
    with pytest.raises(StorageFailed):
        write_new(trial / "north" / "north.key", b"", 0o600)


def test_every_fault_of_a_certificate_is_named(trial):
    found = Certificate.load(trial / "north" / "north.crt")
    assert certificate_faults(found, "north", NOW) == []
    assert "expired" in certificate_faults(found, "north", NOW + datetime.timedelta(days=31))[0]
    assert "not valid before" in certificate_faults(found, "north", NOW - datetime.timedelta(days=1))[0]
    assert "must be 'south'" in certificate_faults(found, "south", NOW)[0]
    authority = Certificate.load(trial / "authority.crt")
    text = "\n".join(certificate_faults(authority, "north", NOW + datetime.timedelta(days=31)))
    assert "it is ''" in text
    assert "expired" in text
    assert "belongs to an authority" in text


def test_a_foreign_authority_and_a_wrong_key_are_faults(trial, tmp_path):
    foreign = TrialAuthority.create("elsewhere", NOW, 5)
    (tmp_path / "foreign.crt").write_bytes(foreign.issued.certificate)
    own = files(trial, "north")
    mixed = OwnFiles(own.certificate, trial / "coordinator" / "coordinator.key", tmp_path / "foreign.crt")
    text = "\n".join(own_faults(mixed, "north", NOW))
    assert "not issued by 'foreign.crt'" in text
    assert "does not belong" in text
    assert not is_issued_by(Certificate.load(own.certificate), Certificate.load(tmp_path / "foreign.crt"))


def test_a_key_that_others_can_read_is_a_fault(trial, tmp_path):
    key = tmp_path / "north.key"
    key.write_bytes((trial / "north" / "north.key").read_bytes())
    key.chmod(0o640)
    assert "chmod 600" in key_faults(key, Certificate.load(trial / "north" / "north.crt"))[0]


@pytest.mark.parametrize("content", [None, b"", b"no certificate", b"-----BEGIN CERTIFICATE-----\nAAAA\n"])
def test_a_file_that_is_no_certificate_is_a_fault(tmp_path, content):
    path = tmp_path / "x.crt"
    if content is not None:
        path.write_bytes(content)
    assert "cannot be used" in pin_faults(path, "x", NOW)[0]
    assert "cannot be used" in own_faults(OwnFiles(path, path, path), "x", NOW)[0]
