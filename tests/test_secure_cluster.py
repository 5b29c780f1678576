"""A Ray cluster of four hosts, each in a network namespace of its own, with a token and mutual TLS."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.runtime import end_all, marked, processes_of
from federated_anon.crypto.trial_authority import write_trial
from federated_anon.simulate import run
from tests.clusters import HOLDERS, written
from tests.namespaces import hosts

pytest.importorskip("ray")
PORT = 6379
SESSION = Path(f"/tmp/fa-{os.getpid()}")  # Short: paths of sockets have a limit.


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """The hosts, the environment that lets a process in, and the folder that marks all of the cluster's processes."""
    folder = tmp_path_factory.mktemp("cluster")
    with hosts(4) as machines:
        environment = secure_environment(folder, [machine.address for machine in machines])
        try:
            with marked(folder):
                for machine, holder in zip(machines, (None, *HOLDERS), strict=True):
                    started(machine, machines[0], holder, {**os.environ, **environment}, folder)
            yield machines, {**os.environ, **environment}
        finally:
            end_all(folder, processes_of(folder))
            shutil.rmtree(SESSION, ignore_errors=True)


def secure_environment(folder: Path, addresses) -> dict[str, str]:
    write_trial(folder / "tls", "coordinator", ("node",), addresses, 2)
    token = folder / "token"
    token.write_text(secrets.token_hex(32))
    token.chmod(0o600)
    return {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
        "RAY_USE_TLS": "1",
        "RAY_TLS_SERVER_CERT": str(folder / "tls" / "node" / "node.crt"),
        "RAY_TLS_SERVER_KEY": str(folder / "tls" / "node" / "node.key"),
        "RAY_TLS_CA_CERT": str(folder / "tls" / "authority.crt"),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1",  # Studies on clusters of their own set it to 0 in this process.
    }


def started(machine, head, holder, environment, folder):
    own = ["--head", f"--port={PORT}", "--num-cpus=0", "--include-dashboard=false", f"--temp-dir={SESSION}"]
    joined = [f"--address={head.address}:{PORT}", "--num-cpus=1", f"--resources={json.dumps({holder: 1})}"]
    words = [sys.executable, "-m", "ray.scripts.scripts", "start", f"--node-ip-address={machine.address}"]
    words += ["--object-store-memory=80000000", *(own if holder is None else joined)]
    with (folder / f"{machine.namespace}.log").open("w") as log:  # Not a pipe: Ray's children keep it open.
        subprocess.run(machine.command(*words), env=environment, stdout=log, stderr=log, check=True, timeout=60)


def command(machines, environment, *words):
    call = machines[0].command(sys.executable, "-m", "federated_anon", *words)
    return subprocess.run(call, env=environment, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return written(tmp_path_factory.mktemp("data") / "data", "sealed")


def test_the_release_is_the_same_as_in_one_process(secured, study, tmp_path):
    machines, environment = secured
    address = f"{machines[0].address}:{PORT}"
    done = command(machines, environment, "run", study, "--address", address, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "one trust domain" in done.stderr.lower()
    alone = run(written(tmp_path / "alone", "sealed", pinned=False), tmp_path / "alone-run", runtime="in-process")
    for name in ("release.parquet", "release.csv", "report.json"):
        assert (tmp_path / "run" / name).read_bytes() == (alone.folder / name).read_bytes()


def test_doctor_sees_nodes_token_and_tls(secured, study):
    machines, environment = secured
    done = command(machines, environment, "doctor", study, "--address", f"{machines[0].address}:{PORT}", "--json")
    found = {(one["holder"], one["subject"]): one for one in json.loads(done.stdout)["findings"]}
    assert done.returncode == 0, done.stdout
    assert "4 up" in found["cluster", "nodes"]["text"]
    assert all(machines[number + 1].address in found[name, "node"]["text"] for number, name in enumerate(HOLDERS))


def test_without_the_token_nobody_comes_in(secured, study):
    machines, environment = secured
    other = {**environment, "RAY_AUTH_TOKEN_PATH": "", "RAY_AUTH_TOKEN": "0" * 64}
    done = command(machines, other, "doctor", study, "--address", f"{machines[0].address}:{PORT}", "--json")
    found = {one["subject"]: one for one in json.loads(done.stdout)["findings"] if one["holder"] == "cluster"}
    assert done.returncode == 3
    assert not found["nodes"]["ok"]
    assert "no way into" in found["nodes"]["text"]
