"""Organisations for tests: three holders in processes of their own on loopback, with certificates made on the spot."""

from __future__ import annotations

import contextlib
import datetime
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
import tomli_w

from coordinator.credentials import Credentials, load_credentials
from coordinator.remote import FlightHolders
from federated_anon.crypto.trial_authority import Issued, TrialAuthority, write_trial
from federated_anon.demo import write_organisations
from federated_anon.messages import COORDINATOR, VERSION, Envelope, Message, Step, decode, encode, payloads
from federated_anon.messages.framing import HELLO, announcement
from federated_anon.messages.payloads import REPLIES, Enrol, Evaluate, Refused
from federated_anon.people import organisations
from federated_anon.simulate import COORDINATOR_KEY
from federated_anon.study import load_study

HOLDERS = ("hospital", "insurer", "registry")
UNPINNED = "registry"
"""The one holder that lets in whoever its authority calls the coordinator."""

COMMAND = (sys.executable, "-m", "federated_anon")
PEOPLE, SEED = 300, 5
START = 60.0


def free_port() -> int:
    """A port that nobody listens on at the moment."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


@dataclass
class Site:
    """One organisation: its settings, and the process that serves it."""

    name: str
    settings: Path
    port: int
    host: str = "127.0.0.1"
    prefix: tuple[str, ...] = ()
    process: subprocess.Popen[str] | None = field(default=None)

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def log(self) -> Path:
        return self.settings.parent / "service.log"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def launch(self) -> None:
        """Start the process; ``wait_ready`` says when it serves."""
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [*self.prefix, *COMMAND, "holder", "serve", str(self.settings)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def wait_ready(self) -> str:
        assert self.process is not None
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("Ready:"), self.log.read_text()
        return line

    def restart(self) -> None:
        self.launch()
        self.wait_ready()

    def kill(self) -> None:
        """kill -9, and nothing left."""
        os.kill(self.pid, signal.SIGKILL)
        self.end()

    def end(self, timeout: float = 20) -> int:
        """The exit code of a process that was told to end."""
        assert self.process is not None
        code = self.process.wait(timeout)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process = None
        return code

    def memory(self) -> int:
        """Resident bytes of the process."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


@dataclass
class Region:
    """All organisations of a study, their certificates, and the study file that knows their addresses."""

    folder: Path
    sites: dict[str, Site]

    @property
    def study(self) -> Path:
        return self.folder / "study.toml"

    @property
    def certificates(self) -> Path:
        return self.folder / "certs" / "coordinator"

    @property
    def addresses(self) -> dict[str, str]:
        return {name: site.address for name, site in self.sites.items()}

    def credentials(self) -> Credentials:
        return load_credentials(self.certificates, self.sites)

    def holders(self) -> FlightHolders:
        return FlightHolders(self.addresses, self.credentials())

    def issued(self, name: str) -> Issued:
        """What a party has in its folder."""
        place = self.folder / "certs" / name
        return Issued((place / f"{name}.crt").read_bytes(), (place / f"{name}.key").read_bytes())

    def authority(self) -> TrialAuthority:
        """The trial's authority, loaded again to issue more."""
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        place = self.folder / "certs"
        key: Any = load_pem_private_key((place / "authority.key").read_bytes(), None)
        return TrialAuthority(x509.load_pem_x509_certificate((place / "authority.crt").read_bytes()), key)


def organised(folder: Path, exposure: str = "open") -> Path:
    """Three organisations whose policy is this exposure, with their data below ``folder``, and their study."""
    study = write_organisations(folder / "data", organisations(PEOPLE, SEED), SEED)
    for path in (study, *(folder / "data" / name / "settings.toml" for name in HOLDERS)):
        path.write_text(path.read_text().replace('"open"', f'"{exposure}"'))
    return study


def prepared(folder: Path, exposure: str = "open", hosts: Mapping[str, str] | None = None, **service: Any) -> Region:
    """Data, settings, certificates and study of three organisations; nothing is started."""
    places = dict.fromkeys(HOLDERS, "127.0.0.1") | dict(hosts or {})
    written = organised(folder, exposure)
    write_trial(folder / "certs", "coordinator", HOLDERS, (), 30)
    sites = {name: Site(name, folder / "data" / name / "settings.toml", free_port(), places[name]) for name in HOLDERS}
    for name, site in sites.items():
        section = service_section(folder / "certs" / name, name, site.address) | service
        site.settings.write_text(site.settings.read_text() + tomli_w.dumps({"service": section}))
    text = written.read_text()
    for name, site in sites.items():
        text = text.replace(f'settings = "{name}/settings.toml"', f'address = "{site.address}"')
    (folder / "study.toml").write_text(text)
    shutil.copy(folder / "data" / COORDINATOR_KEY, folder)
    return Region(folder, sites)


def service_section(certs: Path, name: str, address: str) -> dict[str, Any]:
    """A holder's [service]."""
    section = {
        "address": address,
        "certificate": str(certs / f"{name}.crt"),
        "key": str(certs / f"{name}.key"),
        "authority": str(certs / "authority.crt"),
    }
    pin = {"coordinator_certificate": str(certs / "coordinator.crt")}
    return section if name == UNPINNED else section | pin


@contextlib.contextmanager
def serving(region: Region) -> Iterator[Region]:
    """The region with all its services up; every process is gone at the end."""
    try:
        for site in region.sites.values():
            site.launch()
        for site in region.sites.values():
            site.wait_ready()
        yield region
    finally:
        for site in region.sites.values():
            if site.process is not None:
                site.kill()


def issue(authority: TrialAuthority, party: str, days: int = 30) -> Issued:
    """A certificate on the side."""
    return authority.issue(party, ("localhost", "127.0.0.1"), datetime.datetime.now(datetime.UTC), days)


def client(site: Site, trusted: bytes, issued: Issued | None) -> flight.FlightClient:
    """A bare client with any certificate, or none."""
    own = {} if issued is None else {"cert_chain": issued.certificate, "private_key": issued.key}
    options = [("grpc.use_local_subchannel_pool", 1)]
    place = f"grpc+tls://{site.address}"
    return flight.FlightClient(
        place, tls_root_certs=trusted, override_hostname=site.name, generic_options=options, **own
    )


def hello(caller: flight.FlightClient) -> bytes:
    """Say hello; whatever goes wrong is raised."""
    options = flight.FlightCallOptions(timeout=10)
    return next(iter(caller.do_action(flight.Action(HELLO, b""), options))).body.to_pybytes()


def sent(caller: flight.FlightClient, command: bytes, pieces: list[bytes]) -> Any:
    """Send pieces under any announcement; the payload of the reply."""
    writer, reader = caller.do_exchange(
        flight.FlightDescriptor.for_command(command), flight.FlightCallOptions(timeout=30)
    )
    for piece in pieces:
        writer.write_metadata(pa.py_buffer(piece))
    writer.done_writing()
    reply = []
    while True:
        try:
            reply.append(reader.read_chunk().app_metadata.to_pybytes())
        except StopIteration:
            return decode(b"".join(reply), REPLIES).payload


def caller(region: Region, name: str) -> flight.FlightClient:
    """The true coordinator's client."""
    trusted = (region.folder / "certs" / "authority.crt").read_bytes()
    return client(region.sites[name], trusted, region.issued(COORDINATOR))


def enrolled(region: Region, name: str) -> flight.FlightClient:
    """The coordinator's client after the study was accepted, so that refusals have a ledger to stand in."""
    study, found = load_study(region.study).study, caller(region, name)
    envelope = Envelope(VERSION, study.digest, Step.ENROL, COORDINATOR, int(time.time() * 1000))
    request = encode(Message(envelope, Enrol(study.text)))
    assert not isinstance(sent(found, announcement(request), [request]), Refused)
    return found


def unknown_step(region: Region) -> bytes:
    envelope = Envelope(VERSION, load_study(region.study).study.digest, Step.EVALUATE, COORDINATOR, 2**50)
    return encode(Message(envelope, Evaluate())).replace(b"evaluate", b"evilplan")


def sample(region: Region, rng: random.Random, may_enrol: bool) -> bytes:
    """A well-formed request of some step, with a fresh sequence and made-up content."""
    ints = np.array([rng.randrange(-2, 300) for _ in range(rng.randrange(300))], dtype=np.int32)
    matrix = np.array([[rng.randrange(50) for _ in range(20)]] * 2, dtype=np.int32)
    study = load_study(region.study).study
    choices: list[tuple[Step, Any]] = [
        (Step.ENROL, payloads.Enrol(study.text)),
        (Step.MAP, payloads.TrainMap(ints, rng.randrange(-1, 99), rng.randrange(-1, 99), ints)),
        (Step.COLLABORATE, payloads.Collaborate(rng.randrange(-1, 9), np.array([0.5, np.nan]), matrix)),
        (Step.CODE, payloads.MakeCode((rng.randbytes(50), b""))),
        (Step.CONSTRAIN, payloads.CheckGroups(rng.randrange(-1, 9), ints)),
        (Step.RELEASE, payloads.MakeRelease(ints, ("age", "diagnosis"))),
        (Step.EVALUATE, payloads.Evaluate()),
    ]
    step, payload = rng.choice(choices if may_enrol else choices[1:])
    return encode(Message(Envelope(VERSION, study.digest, step, COORDINATOR, int(time.time() * 1000)), payload))


def fuzzed(region: Region, rng: random.Random, may_enrol: bool = True) -> tuple[bytes, list[bytes]]:
    """A request as it should be, or with bytes flipped, cut, repeated or made up, its announcement right or wrong."""
    content = bytearray(sample(region, rng, may_enrol) if rng.random() < 0.8 else rng.randbytes(rng.randrange(2000)))
    for _ in range(rng.choice([0, 0, 1, 2, 20])):
        if content:
            content[rng.randrange(len(content))] = rng.randrange(256)
    content = content[: rng.randrange(len(content) + 1)] if rng.random() < 0.1 else content
    content = content * rng.randrange(1, 4) if rng.random() < 0.1 else content
    said = announcement(bytes(content)) if rng.random() < 0.95 else rng.randbytes(rng.randrange(40))
    return said, [bytes(content)]


class Relay:
    """A network between the coordinator and a service, which can be cut or made to stand still."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._door = socket.create_server(("127.0.0.1", 0))
        self._lines: list[socket.socket] = []
        self._flows = threading.Event()
        self._flows.set()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._door.getsockname()[1])

    def cut(self) -> None:
        """Every connection breaks, in both directions."""
        lines, self._lines = self._lines, []
        for line in lines:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    def stall(self, seconds: float) -> None:
        """Nothing goes through for a while, and nothing is lost."""
        self._flows.clear()
        soon(seconds, self._flows.set)

    def close(self) -> None:
        self._door.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._door.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._target))
            self._lines += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while content := source.recv(2**16):
                self._flows.wait()
                sink.sendall(content)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)


def soon(seconds: float, act: Any) -> threading.Thread:
    """Do something a little later, beside what goes on."""
    timer = threading.Timer(seconds, act)
    timer.start()
    return timer
