"""Several hosts on one machine: network namespaces on one bridge, for tests of what crosses a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Host:
    """One namespace with an address of its own."""

    namespace: str
    link: str
    address: str

    def command(self, *words: object) -> list[str]:
        """A command as it runs on this host."""
        return ["ip", "netns", "exec", self.namespace, *map(str, words)]

    def cut(self, is_cut: bool) -> None:
        """Take the host's link down, or up again."""
        ip("netns", "exec", self.namespace, "ip", "link", "set", "eth0", "down" if is_cut else "up")


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextmanager
def hosts(count: int) -> Iterator[list[Host]]:
    """``count`` hosts that reach each other and nothing else; skips where namespaces are not allowed."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    mark = uuid.uuid4().hex[:6]
    hub = f"fa{mark}hub"
    made = [Host(f"fa{mark}n{number}", f"v{mark}{number}", f"10.77.0.{number + 1}") for number in range(count)]
    try:
        try:
            ip("netns", "add", hub)
        except subprocess.CalledProcessError:
            pytest.skip("network namespaces are not allowed here")
        ip("-n", hub, "link", "add", "bridge", "type", "bridge")
        ip("-n", hub, "link", "set", "bridge", "up")
        for host in made:
            ip("netns", "add", host.namespace)
            ip("-n", hub, "link", "add", host.link, "type", "veth", "peer", "name", "eth0", "netns", host.namespace)
            ip("-n", hub, "link", "set", host.link, "master", "bridge", "up")
            ip("-n", host.namespace, "address", "add", f"{host.address}/24", "dev", "eth0")
            ip("-n", host.namespace, "link", "set", "eth0", "up")
            ip("-n", host.namespace, "link", "set", "lo", "up")
        yield made
    finally:
        for name in (hub, *(host.namespace for host in made)):
            with suppress(subprocess.CalledProcessError):
                ip("netns", "delete", name)
