import pytest
from typer.testing import CliRunner

from federated_anon.cli import app
from federated_anon.cli_service import checked_parties
from federated_anon.crypto.certificates import Certificate
from federated_anon.errors import SettingsRefused


def test_certs_writes_a_folder_per_party_and_says_what_to_do(tmp_path):
    folder = tmp_path / "certs"
    arguments = ["certs", str(folder), "--parties", "coordinator, north,south", "--host", "north.example"]
    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == 0
    assert "For a trial only" in ended.output
    assert "[service]" in ended.output
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == ["coordinator", "north", "south"]
    assert "north.example" in Certificate.load(folder / "north" / "north.crt").names


@pytest.mark.parametrize(
    ("parties", "fault"),
    [
        ("north,south", "must name 'coordinator' once"),
        ("coordinator", "at least one holder"),
        ("coordinator,north,north", "everyone once"),
        ("coordinator,../north", "'../north' is not a party's name"),
        ("coordinator,authority", "the authority's own files"),
        ("../x,authority", "must name 'coordinator' once"),
    ],
)
def test_parties_are_checked_whole(parties, fault):
    with pytest.raises(SettingsRefused) as caught:
        checked_parties(parties, "coordinator")
    assert fault in str(caught.value)
