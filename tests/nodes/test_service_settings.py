import socket

import pytest
import tomli_w

from coordinator.credentials import load_credentials
from federated_anon.errors import SettingsRefused
from federated_anon.sections import checked
from federated_anon.study import StudyFile
from nodes.service import opened
from nodes.service_doctor import examine_service
from nodes.settings import load_settings
from tests.services import prepared


@pytest.fixture(scope="module")
def region(tmp_path_factory):
    return prepared(tmp_path_factory.mktemp("region"))


def changed(region, tmp_path, name="hospital", **section):
    """Settings of a holder whose [service] is another."""
    site = region.sites[name]
    head = site.settings.read_text().partition("[service]")[0]
    path = site.settings.with_name(f"{tmp_path.name}.toml")
    path.write_text(head + tomli_w.dumps({"service": section}))
    return path


def test_a_section_is_read_with_its_paths_beside_the_file(region):
    service = load_settings(region.sites["hospital"].settings).service
    assert service is not None
    assert service.coordinator == "coordinator"
    assert service.pin is not None
    assert service.files.key.is_file()
    assert load_settings(region.sites["registry"].settings).service.pin is None


def test_all_faults_of_a_section_come_at_once(region, tmp_path):
    path = changed(region, tmp_path, address="nowhere", certificate="x.crt", key="x.key", speed=3)
    with pytest.raises(SettingsRefused) as caught:
        load_settings(path)
    text = str(caught.value)
    for fault in ("'authority' is missing", "unknown key 'speed'", "host:port"):
        assert fault in text


def test_a_service_with_faulty_files_does_not_start_and_says_all(region, tmp_path):
    certs = region.folder / "certs"
    path = changed(
        region,
        tmp_path,
        address="127.0.0.1:0",
        certificate=str(certs / "insurer" / "insurer.crt"),
        key=str(certs / "hospital" / "hospital.key"),
        authority=str(certs / "authority.crt"),
        coordinator="trials-unit",
        coordinator_certificate=str(certs / "coordinator" / "coordinator.crt"),
    )
    with pytest.raises(SettingsRefused) as caught:
        opened(load_settings(path))
    text = str(caught.value)
    for fault in ("must be 'hospital', it is 'insurer'", "does not belong", "must be 'trials-unit'"):
        assert fault in text


def test_without_a_section_nothing_is_served(region, tmp_path):
    path = region.sites["hospital"].settings.with_name("plain.toml")
    path.write_text(region.sites["hospital"].settings.read_text().partition("[service]")[0])
    settings = load_settings(path)
    assert list(examine_service(settings.name, settings.service)) == []
    with pytest.raises(SettingsRefused, match=r"\[service\] is missing"):
        opened(settings)


def test_the_doctor_sees_certificate_pin_and_port(region):
    settings = load_settings(region.sites["hospital"].settings)
    found = {finding.subject: finding for finding in examine_service("hospital", settings.service)}
    assert set(found) == {"certificate", "coordinator", "port"}
    assert all(finding.ok for finding in found.values())
    with socket.create_server(("127.0.0.1", region.sites["hospital"].port)):
        taken = {finding.subject: finding for finding in examine_service("hospital", settings.service)}
    assert not taken["port"].ok
    wrong = [finding for finding in examine_service("elsewhere", settings.service) if not finding.ok]
    assert [(finding.holder, finding.subject) for finding in wrong] == [("elsewhere", "service")]


def test_the_coordinators_folder_is_checked_whole(region, tmp_path):
    with pytest.raises(SettingsRefused) as caught:
        load_credentials(tmp_path, ["hospital"])
    assert "coordinator.crt" in str(caught.value)
    certs = region.folder / "certs"
    (tmp_path / "authority.crt").write_bytes((certs / "authority.crt").read_bytes())
    (tmp_path / "coordinator.crt").write_bytes((certs / "coordinator" / "coordinator.crt").read_bytes())
    (tmp_path / "coordinator.key").write_bytes((certs / "insurer" / "insurer.key").read_bytes())
    (tmp_path / "hospital.crt").write_bytes((certs / "insurer" / "insurer.crt").read_bytes())
    with pytest.raises(SettingsRefused) as caught:
        load_credentials(tmp_path, ["hospital"])
    for fault in ("chmod 600", "does not belong", "'hospital.crt': the first name must be 'hospital'"):
        assert fault in str(caught.value)


def place(**deployment):
    content = {"name": "x", "holders": ["a", "b"], "privacy": {"k": 3}, "deployment": deployment}
    return checked(StudyFile, content, "study.toml")


def test_a_place_is_a_file_or_an_address():
    assert place(a={"address": "a.example:7430"}, b={"address": "[::1]:7430"}).addresses == {
        "a": "a.example:7430",
        "b": "[::1]:7430",
    }
    assert place(a={"settings": "a.toml"}, b={"settings": "b.toml"}).addresses == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"settings": "a.toml", "address": "a:1"},
        {"address": "a"},
        {"address": "a:70000"},
        {"address": "a:1", "resource": "node"},
        {"address": "grpc://a:1"},
    ],
)
def test_other_places_are_refused(wrong):
    with pytest.raises(SettingsRefused):
        place(a=wrong)


def test_files_and_addresses_do_not_mix():
    with pytest.raises(SettingsRefused, match="either every holder"):
        place(a={"settings": "a.toml"}, b={"address": "b:1"})


def test_where_a_holder_is_does_not_change_the_study():
    assert place(a={"address": "a:1"}, b={"address": "b:1"}).study.digest == place().study.digest
