"""The same study across organisations: three processes, mutual TLS, strangers at the door, and kill -9."""

import _thread
import json
import os
import random
import signal
import socket
import subprocess
import time

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from coordinator.checkup import examine_links
from coordinator.credentials import load_credentials
from coordinator.remote import FlightHolders
from federated_anon.crypto.trial_authority import TrialAuthority
from federated_anon.errors import Code, HolderLate, HolderRefused, SettingsRefused
from federated_anon.ledger import verified_entries
from federated_anon.messages import COORDINATOR, decode
from federated_anon.messages.framing import announcement
from federated_anon.messages.payloads import REPLIES, Refused
from federated_anon.simulate import run
from federated_anon.study import load_study
from nodes.guard import NO_STUDY
from nodes.settings import load_settings
from tests.services import (
    COMMAND,
    HOLDERS,
    UNPINNED,
    Region,
    Relay,
    caller,
    client,
    enrolled,
    free_port,
    fuzzed,
    hello,
    issue,
    organised,
    prepared,
    sent,
    serving,
    soon,
    unknown_step,
)

FILES = ("release.parquet", "release.csv", "report.json")


@pytest.fixture(scope="module")
def in_process(tmp_path_factory):
    folder = tmp_path_factory.mktemp("in-process")
    return run(organised(folder), folder / "run", runtime="in-process").folder


@pytest.fixture(scope="module")
def region(tmp_path_factory):
    with serving(prepared(tmp_path_factory.mktemp("region"))) as found:
        yield found


def same_bytes(out, in_process) -> bool:
    return all((out / name).read_bytes() == (in_process / name).read_bytes() for name in FILES)


def test_three_processes_give_the_same_bytes_as_one(region, in_process, tmp_path):
    steps = []
    result = run(
        region.study, tmp_path / "run", certificates=region.certificates, listen=lambda p: steps.append(p.step)
    )
    assert same_bytes(tmp_path / "run", in_process)
    assert steps[0] == "enrol"
    assert steps[-1] == "close"
    assert result.summary["bytes_sent"] > 0


def test_a_sealed_study_gives_the_same_bytes_though_a_holder_is_killed(tmp_path):
    run(organised(tmp_path / "one", "sealed"), tmp_path / "in-process", runtime="in-process")
    with serving(prepared(tmp_path / "three", "sealed")) as region:
        site, kills = region.sites["registry"], []

        def listen(progress):
            if progress.step == "split" and progress.number > 8 and not kills:
                site.kill()
                kills.append(site.launch())

        run(region.study, tmp_path / "run", certificates=region.certificates, listen=listen, timeout=60)
        site.wait_ready()
    assert len(kills) == 1
    assert same_bytes(tmp_path / "run", tmp_path / "in-process")


@pytest.mark.parametrize(("step", "after"), [("map", 0.1), ("constrain", 0.0), ("close", 0.0)])
def test_a_holder_that_is_killed_and_started_again_changes_nothing(region, in_process, tmp_path, step, after):
    site, kills = region.sites["insurer"], []

    def fall_and_rise():
        site.kill()
        site.launch()

    def listen(progress):
        if progress.step == step and not kills:
            kills.append(soon(after, fall_and_rise) if after else fall_and_rise())

    run(region.study, tmp_path / "run", certificates=region.certificates, listen=listen, timeout=60)
    site.wait_ready()
    assert len(kills) == 1
    assert same_bytes(tmp_path / "run", in_process)


@pytest.mark.parametrize("harm", ["cut", "stall"])
def test_a_network_that_fails_changes_nothing(region, in_process, tmp_path, harm, caplog):
    relay = Relay(region.sites["insurer"].port)
    study, harms = region.folder / f"{harm}.toml", []  # Beside the coordinator's own secret, as the first one is.
    study.write_text(region.study.read_text().replace(region.sites["insurer"].address, f"127.0.0.1:{relay.port}"))

    def listen(progress):
        if progress.step == "code" and "insurer" in progress.holders and not harms:
            harms.append(soon(0.02, relay.cut) if harm == "cut" else relay.stall(1.0))

    run(study, tmp_path / "run", certificates=region.certificates, listen=listen, timeout=60)
    relay.close()
    assert len(harms) == 1
    assert ("lost 'insurer' on the way" in caplog.text) == (harm == "cut")
    assert same_bytes(tmp_path / "run", in_process)


def test_a_holder_that_stays_away_is_named_and_nothing_is_written(region, tmp_path):
    text = region.study.read_text().replace(region.sites["insurer"].address, f"127.0.0.1:{free_port()}")
    study = tmp_path / "study.toml"
    study.write_text(text)
    out = tmp_path / "run"
    command = [*COMMAND, "run", str(study), "--certificates", str(region.certificates), "--out", str(out)]
    ended = subprocess.run([*command, "--timeout", "2"], capture_output=True, text=True, timeout=60)
    assert ended.returncode == HolderLate.exit_code, ended.stderr
    assert "insurer" in ended.stderr
    assert "hospital" not in ended.stderr.split("Error:")[1]
    assert not out.exists()


def strangers(region: Region):
    """Everyone who is not the coordinator, by how they differ."""
    own = region.authority()
    foreign = TrialAuthority.create("elsewhere", own.certificate.not_valid_before_utc, 30)
    return {
        "no certificate": None,
        "foreign authority": issue(foreign, COORDINATOR),
        "expired": issue(own, COORDINATOR, days=-1),
        "not the pinned one": issue(own, COORDINATOR),
        "another party": region.issued("insurer"),
    }


@pytest.mark.parametrize(
    "who", ["no certificate", "foreign authority", "expired", "not the pinned one", "another party"]
)
def test_strangers_are_refused_by_a_service_with_a_pin_and_it_stays_up(region, who):
    trusted = (region.folder / "certs" / "authority.crt").read_bytes()
    with pytest.raises(flight.FlightUnavailableError):
        hello(client(region.sites["hospital"], trusted, strangers(region)[who]))
    assert b"hospital" in hello(caller(region, "hospital"))


@pytest.mark.parametrize("who", ["no certificate", "foreign authority", "expired"])
def test_strangers_are_refused_by_a_service_without_a_pin(region, who):
    trusted = (region.folder / "certs" / "authority.crt").read_bytes()
    with pytest.raises(flight.FlightUnavailableError):
        hello(client(region.sites[UNPINNED], trusted, strangers(region)[who]))
    assert UNPINNED.encode() in hello(caller(region, UNPINNED))


def test_without_a_pin_the_name_decides(region):
    site, trusted = region.sites[UNPINNED], (region.folder / "certs" / "authority.crt").read_bytes()
    other = client(site, trusted, strangers(region)["another party"])
    with pytest.raises(flight.FlightUnauthorizedError, match=Code.WRONG_SENDER):
        hello(other)
    with pytest.raises(flight.FlightUnauthorizedError, match=Code.WRONG_SENDER):
        sent(other, announcement(b"x"), [b"x"])
    assert UNPINNED.encode() in hello(client(site, trusted, strangers(region)["not the pinned one"]))


def test_plaintext_is_refused(region):
    plain = flight.FlightClient(f"grpc://{region.sites['hospital'].address}")
    with pytest.raises(flight.FlightUnavailableError):
        hello(plain)
    assert b"hospital" in hello(caller(region, "hospital"))


def door_notes(region: Region, name: str) -> list[str]:
    """Refusals that belong to no study, after a look at chain and signatures."""
    settings = load_settings(region.sites[name].settings)
    path = settings.ledger / f"{NO_STUDY}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [entry["note"] for entry in verified_entries(lines, NO_STUDY, name, settings.identity.public)]


@pytest.mark.parametrize(
    ("who", "code"),
    [
        ("no certificate", Code.CERTIFICATE),
        ("foreign authority", Code.CERTIFICATE),
        ("expired", Code.CERTIFICATE),
        ("not the pinned one", Code.CERTIFICATE),
        ("another party", Code.CERTIFICATE),
        ("plaintext", Code.HANDSHAKE),
        ("garbage", Code.HANDSHAKE),
    ],
)
def test_whoever_fails_at_the_door_is_a_code_in_the_ledger(region, who, code):
    site, before = region.sites["hospital"], door_notes(region, "hospital")
    if who == "garbage":
        with socket.create_connection(("127.0.0.1", site.port)) as line:
            line.sendall(bytes(range(256)) * 8)
            line.recv(100)
    else:
        trusted = (region.folder / "certs" / "authority.crt").read_bytes()
        stranger = (
            flight.FlightClient(f"grpc://{site.address}")
            if who == "plaintext"
            else client(site, trusted, strangers(region)[who])
        )
        with pytest.raises(flight.FlightUnavailableError):
            hello(stranger)
    assert b"hospital" in hello(caller(region, "hospital"))
    added = door_notes(region, "hospital")[len(before) :]
    assert added
    assert set(added) == {code}


def test_another_party_at_a_service_without_a_pin_is_a_code_in_the_ledger(region):
    trusted = (region.folder / "certs" / "authority.crt").read_bytes()
    before = len(door_notes(region, UNPINNED))
    with pytest.raises(flight.FlightUnauthorizedError):
        hello(client(region.sites[UNPINNED], trusted, strangers(region)["another party"]))
    assert b"registry" in hello(caller(region, UNPINNED))
    assert door_notes(region, UNPINNED)[before:] == [Code.WRONG_SENDER]


def test_the_coordinator_refuses_a_service_of_another_party(region):
    swapped = {"hospital": region.sites["insurer"].address}
    credentials = load_credentials(region.certificates, HOLDERS)
    for trusted in (credentials, load_credentials(region.certificates, ())):
        with pytest.raises(HolderLate, match="hospital"):
            FlightHolders(swapped, trusted).ask({"hospital": b"x"}, 0.5)


def test_the_coordinator_hears_that_it_is_not_welcome(region, tmp_path):
    other = region.issued("insurer")
    folder = tmp_path / "certs"
    folder.mkdir()
    (folder / "authority.crt").write_bytes((region.folder / "certs" / "authority.crt").read_bytes())
    (folder / "coordinator.crt").write_bytes(other.certificate)
    (folder / "coordinator.key").write_bytes(other.key)
    (folder / "coordinator.key").chmod(0o600)
    holders = FlightHolders(region.addresses, load_credentials(folder, HOLDERS))
    with pytest.raises(HolderRefused, match=Code.WRONG_SENDER):
        holders.ask({UNPINNED: b"x"}, 30)


def ledger(region: Region, name: str) -> list[dict]:
    settings, study = load_settings(region.sites[name].settings), load_study(region.study).study
    lines = (settings.ledger / f"{study.digest}.jsonl").read_text().splitlines()
    return verified_entries(lines, study.digest, name, settings.identity.public)


@pytest.mark.parametrize(
    ("name", "command", "pieces", "code"),
    [
        ("announced too large", b"federated-anon 1 answer 300000000", [], Code.OVERSIZED),
        ("more than announced", b"federated-anon 1 answer 10", [bytes(2**20)] * 8, Code.OVERSIZED),
        ("less than announced", b"federated-anon 1 answer 10", [b"12345"], Code.MALFORMED),
        ("no announcement", b"", [b"12345"], Code.MALFORMED),
        ("another announcement", b"federated-anon 1 answer -5", [b"12345"], Code.MALFORMED),
        ("garbage", announcement(bytes(1000)), [bytes(range(250)) * 4], Code.MALFORMED),
        ("nothing", announcement(b""), [], Code.MALFORMED),
    ],
)
def test_what_is_no_request_is_a_code_in_the_reply_and_in_the_ledger(region, name, command, pieces, code):
    found = enrolled(region, "hospital")
    before = len(ledger(region, "hospital"))
    assert sent(found, command, pieces) == Refused(code)
    added = ledger(region, "hospital")[before:]
    assert [entry["note"] for entry in added] == [code]


def test_a_request_that_is_too_large_is_let_go_by_and_refused(region):
    content = bytes(257 * 2**20)
    holders, site = region.holders(), region.sites["insurer"]
    before = site.memory()
    reply = holders.ask({"insurer": content}, 60)["insurer"]
    assert reply is not None
    assert decode(reply, REPLIES).payload == Refused(Code.OVERSIZED)
    assert site.memory() - before < 64 * 2**20, "it is never held in memory"


def test_an_unknown_step_is_refused(region):
    request = unknown_step(region)
    assert sent(enrolled(region, "hospital"), announcement(request), [request]) == Refused(Code.WRONG_STEP)


def test_arrow_data_in_place_of_bytes_is_refused(region):
    found = enrolled(region, "hospital")
    writer, reader = found.do_exchange(flight.FlightDescriptor.for_command(announcement(b"x")))
    batch = pa.record_batch({"x": [1, 2, 3]})
    writer.begin(batch.schema)
    writer.write_batch(batch)
    writer.done_writing()
    assert decode(reader.read_chunk().app_metadata.to_pybytes(), REPLIES).payload == Refused(Code.MALFORMED)


def test_other_calls_of_flight_are_not_served(region):
    found = caller(region, "hospital")
    with pytest.raises(flight.FlightServerError, match=Code.WRONG_STEP):
        list(found.do_action(flight.Action("drop", b"")))
    with pytest.raises(NotImplementedError):
        list(found.list_flights())
    with pytest.raises(NotImplementedError):
        found.do_get(flight.Ticket(b"everything")).read_all()
    assert b"hospital" in hello(found)


def test_fuzzed_requests_neither_end_nor_bloat_a_service(region):
    found, rng, site = enrolled(region, "hospital"), random.Random(0), region.sites["hospital"]
    codes, sizes = set(), []
    for number in range(400):
        payload = sent(found, *fuzzed(region, rng))
        codes.add(payload.code if isinstance(payload, Refused) else type(payload).__name__)
        if number in (100, 399):
            sizes.append(site.memory())
    assert {Code.MALFORMED, Code.OUT_OF_ORDER} <= codes <= {*Code, "Enrolled"} - {Code.FAULT}
    assert sizes[1] - sizes[0] < 16 * 2**20
    assert site.process is not None
    assert site.process.poll() is None
    assert b"hospital" in hello(found)


def test_neither_log_nor_reply_quotes_values(region):
    log = region.sites["hospital"].log.read_text()
    assert "answered:" in log
    assert "refused:" in log
    table = (region.sites["hospital"].settings.parent / "hospital.csv").read_text().splitlines()
    values = {cell for line in table[1:] for cell in line.split(",") if len(cell) > 5}
    assert not [value for value in values if value in log]


def test_an_interruption_ends_the_wait_at_once(region):
    nobody = FlightHolders({"hospital": f"127.0.0.1:{free_port()}"}, region.credentials())
    timer, started = soon(0.5, _thread.interrupt_main), time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        nobody.ask({"hospital": b"x"}, 60)
    timer.join()
    assert time.monotonic() - started < 5


def test_the_doctor_finds_ways_clocks_and_who_is_away(region):
    found = examine_links(region.addresses, region.certificates)
    assert all(finding.ok for finding in found)
    assert {finding.subject for finding in found} == {"certificate", "way", "clock"}
    away = region.addresses | {"insurer": f"127.0.0.1:{free_port()}"}
    faults = [finding for finding in examine_links(away, region.certificates) if not finding.ok]
    assert [(fault.holder, fault.subject) for fault in faults] == [("insurer", "way")]


def test_a_port_in_use_is_said_so(region):
    site = region.sites["hospital"]
    ended = subprocess.run(
        [*COMMAND, "holder", "serve", str(site.settings)], capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == SettingsRefused.exit_code
    assert "cannot listen" in ended.stderr
    assert ended.stdout == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_service_ends_cleanly_when_told(region, number):
    site = region.sites["registry"]
    os.kill(site.pid, number)
    assert site.end() == 0
    site.restart()


def test_the_command_doctor_examines_the_services_of_a_study(region):
    command = [*COMMAND, "doctor", str(region.study), "--certificates", str(region.certificates), "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    found = json.loads(ended.stdout)
    subjects = {(finding["holder"], finding["subject"]) for finding in found["findings"]}
    assert {("hospital", "clock"), ("insurer", "way"), ("coordinator", "certificate")} <= subjects
    assert found["healthy"]
    assert ended.returncode == 0
