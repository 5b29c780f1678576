"""A real PostgreSQL server for tests, from the system's package, on loopback, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

OWNER, OWNER_PASSWORD = "keeper", "keeper's own"


@dataclass(frozen=True)
class Server:
    """A running server: where it listens, and how to end and start it."""

    binaries: Path
    folder: Path
    port: int

    def address(self, role: str) -> str:
        return f"postgresql://{role}@127.0.0.1:{self.port}/postgres"

    def execute(self, *statements: str) -> None:
        command = [self.binaries / "psql", "-qX", "-v", "ON_ERROR_STOP=1", self.address(OWNER)]
        text = "\n".join(f"{statement};" for statement in statements)
        environment = os.environ | {"PGPASSWORD": OWNER_PASSWORD}
        subprocess.run(command, input=text, text=True, env=environment, check=True, capture_output=True)

    def control(self, *words: str) -> None:
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -F"
        command = [self.binaries / "pg_ctl", "-D", self.folder / "data", "-o", options, "-l", self.folder / "log", "-w"]
        as_user([*command, *words])


def as_user(command: list[str | Path]) -> None:
    """Run a command that root may not run."""
    user = "postgres" if os.geteuid() == 0 else None
    subprocess.run(command, user=user, check=True, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def binaries() -> Path | None:
    """The newest server installed, if any."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    return found[-1].parent if found else None


@contextmanager
def running_server() -> Iterator[Server]:
    """A server over an empty database, ended at exit; skips where PostgreSQL is not installed."""
    place = binaries()
    if place is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    try:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            server = Server(place, folder, probe.getsockname()[1])
        (folder / "password").write_text(OWNER_PASSWORD)
        if os.geteuid() == 0:
            owner = pwd.getpwnam("postgres")
            for path in (folder, folder / "password"):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        secret = f"--pwfile={folder / 'password'}"
        as_user([place / "initdb", "-D", folder / "data", "-U", OWNER, "-A", "scram-sha-256", secret, "-N"])
        server.control("start")
        try:
            yield server
        finally:
            server.control("-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)
