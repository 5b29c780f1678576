"""Whatever is killed, and at whatever step: the same bytes as an undisturbed run, or no release.

A few cases run with every test run, the whole grid with ``make test-faults``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from federated_anon.simulate import run
from tests.clusters import running_nodes, written

ray = pytest.importorskip("ray")
STEPS = {
    "open": ("enrol", "align", "map", "code", "constrain", "release", "evaluate", "close"),
    "sealed": ("enrol", "align", "seat", "propose", "split", "constrain", "release", "evaluate", "close"),
}
ALWAYS = {
    ("open", "actor", "code"),
    ("sealed", "actor", "split"),
    ("sealed", "node", "constrain"),
    ("sealed", "coordinator", "propose"),
}
VICTIM = "insurer"
FILES = ("release.parquet", "release.csv", "report.json")


def grid():
    for exposure, steps in STEPS.items():
        for victim in ("actor", "node", "coordinator"):
            for step in steps:
                marks = () if (exposure, victim, step) in ALWAYS else (pytest.mark.faults,)
                yield pytest.param(exposure, victim, step, marks=marks, id=f"{exposure}-{victim}-{step}")


@pytest.fixture(scope="module")
def nodes():
    with running_nodes() as found:
        yield found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The files of runs that nothing happened to, by exposure."""
    folder = tmp_path_factory.mktemp("undisturbed")
    return {
        exposure: run(
            written(folder / exposure, exposure, pinned=False), folder / f"{exposure}-run", runtime="in-process"
        ).folder
        for exposure in STEPS
    }


@pytest.mark.parametrize(("exposure", "victim", "step"), list(grid()))
def test_a_kill_changes_nothing(exposure, victim, step, nodes, undisturbed, tmp_path):
    study = written(tmp_path / "data", exposure)
    attempt = {"actor": killed_actor, "node": killed_node, "coordinator": killed_coordinator}[victim]
    attempt(study, tmp_path / "run", nodes, step)
    for name in FILES:
        assert (tmp_path / "run" / name).read_bytes() == (undisturbed[exposure] / name).read_bytes()
    assert not [path for path in tmp_path.iterdir() if path.name not in {"data", "run"}], "nothing is left behind"


def once(step, act):
    """A listener that acts when the step is first asked for."""
    done = []

    def listen(progress):
        if progress.step == step and not done:
            done.append(True)
            act()

    return listen, done


def killed_actor(study, out, nodes, step):
    def kill():
        actors = [a for a in ray.util.list_named_actors(all_namespaces=True) if a["name"].endswith(VICTIM)]
        ray.kill(ray.get_actor(actors[0]["name"], namespace=actors[0]["namespace"]), no_restart=False)

    listen, done = once(step, kill)
    run(study, out, address=nodes.address, listen=listen, timeout=60)
    assert done


def killed_node(study, out, nodes, step):
    def kill():
        nodes.kill(VICTIM)
        nodes.bring_back(VICTIM)

    listen, done = once(step, kill)
    run(study, out, address=nodes.address, listen=listen, timeout=90)
    assert done


def killed_coordinator(study, out, nodes, step):
    """kill -9 of ``federated-anon run`` when it tells of the step; then the same command again."""
    kept = out.parent / "data" / "kept"
    command = [sys.executable, "-m", "federated_anon", "run", str(study), "--address", nodes.address]
    command += ["--out", str(out), "--checkpoints", str(kept)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        told = next((line for line in process.stderr if f" {step}:" in line), None)
        os.kill(process.pid, signal.SIGKILL)
    assert told, "the step was never told"
    if not out.exists():
        assert kept_privately(kept)
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    assert not list(kept.glob("*")), "checkpoints are removed at the end"


def kept_privately(kept: Path) -> bool:
    return all(path.stat().st_mode & 0o077 == 0 for path in kept.rglob("*"))
