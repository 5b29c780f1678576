"""Four machines in one: network namespaces joined by a bridge, one per organisation and one for the coordinator."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.services import COMMAND, Region

HUB = "coordinator"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def permitted() -> bool:
    """Whether this user may make namespaces here."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    try:
        ip("netns", "add", name := f"fa-probe-{os.getpid()}")
        ip("netns", "del", name)
    except (subprocess.CalledProcessError, OSError):
        return False
    return True


@dataclass(frozen=True)
class Network:
    """Parties, each with a namespace and an address of its own; the bridge stands in the coordinator's."""

    parties: tuple[str, ...]

    def space(self, party: str) -> str:
        return f"fa-{os.getpid()}-{party}"

    def address(self, party: str) -> str:
        return f"10.77.0.{1 if party == HUB else self.parties.index(party) + 2}"

    def inside(self, party: str) -> tuple[str, ...]:
        """What a command line begins with to run at a party."""
        return ("ip", "netns", "exec", self.space(party))

    def link(self, party: str, state: str) -> None:
        """Pull a party's cable out ("down"), or put it back ("up")."""
        ip("-n", self.space(HUB), "link", "set", f"v{self.parties.index(party)}", state)

    def cut(self, party: str, seconds: float) -> None:
        self.link(party, "down")
        time.sleep(seconds)
        self.link(party, "up")


@contextlib.contextmanager
def network(parties: Sequence[str]) -> Iterator[Network]:
    """The namespaces, gone at the end."""
    made = Network(tuple(parties))
    hub = made.space(HUB)
    try:
        for party in (HUB, *parties):
            ip("netns", "add", made.space(party))
            ip("-n", made.space(party), "link", "set", "lo", "up")
        ip("-n", hub, "link", "add", "br0", "type", "bridge")
        ip("-n", hub, "addr", "add", f"{made.address(HUB)}/24", "dev", "br0")
        ip("-n", hub, "link", "set", "br0", "up")
        for number, party in enumerate(parties):
            own = made.space(party)
            ip("-n", hub, "link", "add", f"v{number}", "type", "veth", "peer", "name", "eth0", "netns", own)
            ip("-n", hub, "link", "set", f"v{number}", "master", "br0", "up")
            ip("-n", own, "addr", "add", f"{made.address(party)}/24", "dev", "eth0")
            ip("-n", own, "link", "set", "eth0", "up")
        yield made
    finally:
        for party in (HUB, *parties):
            subprocess.run(["ip", "netns", "del", made.space(party)], check=False, capture_output=True)


class Conductor:
    """The coordinator as a process of its own; ``at(step, act)`` acts when a step is reached the how-manieth time."""

    def __init__(self, region: Region, out: Path, prefix: Sequence[str] = (), timeout: int = 120) -> None:
        self._command = [
            *prefix, *COMMAND, "run", str(region.study), "--certificates", str(region.certificates), "--out", str(out),
            "--checkpoints", str(region.folder / "kept"), "--timeout", str(timeout), "--json",
        ]  # fmt: skip
        self._place = region.folder / "kept"
        self._acts: list[tuple[int, Callable[[], None]]] = []
        self._process: subprocess.Popen[str] | None = None
        self._again = threading.Event()

    def at(self, replies: int, act: Callable[[], None]) -> None:
        """Act once so many replies are kept."""
        self._acts.append((replies, act))

    def kill(self) -> None:
        """kill -9 of the coordinator; ``run`` starts it again."""
        self._again.set()
        assert self._process is not None
        self._process.kill()

    def run(self) -> tuple[int, str]:
        """Run to the end, however often it is killed; exit code and what it said on stderr."""
        acts = sorted(self._acts, key=lambda one: one[0])
        while True:
            self._again.clear()
            self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while self._process.poll() is None:
                if acts and len(list(self._place.glob("*/*.arrow"))) >= acts[0][0]:
                    acts.pop(0)[1]()
                time.sleep(0.002)
            _, said = self._process.communicate()
            if not self._again.is_set():
                assert not acts, f"{len(acts)} acts were not reached"
                return self._process.returncode, said
