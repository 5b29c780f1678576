"""Ctrl-C and SIGTERM at any moment: exit code 130, one line, nothing left: no folder, no process, no traceback."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from functools import partial
from pathlib import Path

import pytest

from federated_anon import simulate
from federated_anon.interruption import Interruption
from federated_anon.shell import guarded
from tests.command_line import ROLES, command, people, write

TOLD = "Interrupted; nothing unfinished is left.\n"


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp("interrupt") / "people.csv", people())


@pytest.mark.parametrize("exposure", ["open", "sealed"])
def test_ctrl_c_at_each_step_leaves_nothing(exposure, table, room, capsys):
    options = {"key": "id", "sensitive": ("illness",), "runtime": "in-process", "exposure": exposure}
    steps: list[str] = []
    simulate(table, **options, listen=lambda progress: steps.append(progress.step))
    assert {"enrol", "align", "constrain", "release", "close"} <= set(steps)
    for number in range(len(steps)):
        passed: list[str] = []

        def interrupt(progress, at=number, seen=passed) -> None:
            seen.append(progress.step)
            if len(seen) == at + 1:
                signal.raise_signal(signal.SIGINT)

        call = partial(simulate, table, **options, out="run", listen=interrupt)
        assert guarded(call) == 130
        assert passed == steps[: number + 1]
        assert capsys.readouterr().err == TOLD
        assert os.listdir(room) == []
        assert os.listdir(tempfile.gettempdir()) == []


@pytest.mark.parametrize("name", ["release.parquet", "release.csv"])
def test_ctrl_c_while_the_run_is_written_leaves_nothing(name, table, room, monkeypatch):
    write_bytes, seen = Path.write_bytes, []

    def interrupted(path: Path, content: bytes) -> int:
        count = write_bytes(path, content)
        if path.name == name:
            seen.extend(os.listdir(room))
            signal.raise_signal(signal.SIGINT)
        return count

    monkeypatch.setattr(Path, "write_bytes", interrupted)
    answer = command("simulate", table, *ROLES, "--runtime", "in-process", "--out", "run", "--json")
    assert (answer.code, answer.out, answer.err) == (130, "", TOLD)
    assert [place[:5] for place in seen] == [".run-"], "it was under way, under another name"
    assert os.listdir(room) == []


def test_a_signal_before_the_program_is_loaded_is_kept_until_it_is():
    handler = Interruption()
    handler(signal.SIGTERM, None)
    assert handler.came
    with pytest.raises(KeyboardInterrupt):
        handler.arm()


def test_an_impatient_second_signal_does_not_stop_the_clean_up():
    handler = Interruption()
    handler.arm()
    with pytest.raises(KeyboardInterrupt):
        handler(signal.SIGINT, None)
    handler(signal.SIGINT, None)


def test_an_exit_that_ray_makes_of_a_signal_is_an_interruption(capsys):
    assert guarded(lambda: sys.exit(signal.SIGTERM)) == 130
    assert capsys.readouterr().err == TOLD
    assert guarded(lambda: sys.exit(4)) == 4


needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are looked up in /proc")


class Trial:
    """The program at work in a session of its own, known by a mark in the environment of all its processes."""

    def __init__(self, folder: Path, temporary: str, *arguments: str) -> None:
        self.mark = f"FEDERATED_ANON_TRIAL={uuid.uuid4().hex}"
        self.folder = folder
        self.temporary = temporary
        name, value = self.mark.split("=")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "federated_anon", *arguments],
            cwd=folder,
            env=os.environ | {name: value, "TMPDIR": self.temporary},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def read_until(self, text: str) -> None:
        """Wait until the program has told something on stderr."""
        while text not in (line := self.process.stderr.readline()):
            assert line, "the program ended before"

    def wait_until(self, happened) -> None:
        """Wait until something is the case."""
        until = time.monotonic() + 60
        while not happened():
            assert self.process.poll() is None, self.process.stderr.read()
            assert time.monotonic() < until
            time.sleep(0.02)

    def require_clean_end(self) -> None:
        """Exit code 130, the last word on stderr, and nothing left of any kind."""
        out, err = self.process.communicate(timeout=60)
        assert self.process.returncode == 130, err
        assert out == ""
        assert err.endswith(TOLD)
        assert "Traceback" not in err
        assert "SIGTERM" not in err
        assert self.living() == []
        assert os.listdir(self.temporary) == []
        assert os.listdir(self.folder) == []

    def living(self) -> list[str]:
        """Processes that bear the mark."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (place / "environ").read_bytes():
                    found.append((place / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
        return found


@pytest.fixture
def short():
    """A temporary folder whose name is short enough for Ray's sockets."""
    folder = tempfile.mkdtemp(prefix="t", dir="/tmp")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@needs_proc
def test_sigterm_while_the_program_loads(table, tmp_path, short):
    trial = Trial(tmp_path, short, "simulate", str(table), *ROLES, "--out", "run", "--runtime", "in-process")
    trial.wait_until(lambda: b"numpy" in Path(f"/proc/{trial.process.pid}/maps").read_bytes())
    trial.process.send_signal(signal.SIGTERM)
    trial.require_clean_end()


@needs_proc
def test_ctrl_c_of_the_whole_terminal_while_ray_starts(table, tmp_path, short):
    trial = Trial(tmp_path, short, "simulate", str(table), *ROLES, "--out", "run", "--json")
    trial.wait_until(lambda: any(Path(trial.temporary).glob("federated-anon-*/session_*/logs/raylet*")))
    os.killpg(trial.process.pid, signal.SIGINT)
    trial.require_clean_end()


@needs_proc
def test_sigterm_while_holders_work_on_ray(table, tmp_path, short):
    trial = Trial(tmp_path, short, "simulate", str(table), *ROLES, "--out", "run")
    trial.read_until("enrol")
    trial.process.send_signal(signal.SIGTERM)
    trial.require_clean_end()
