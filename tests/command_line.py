"""The command line as tests call it: in this process, or as a program of its own."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from federated_anon.cli import app
from federated_anon.shell import guarded


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command gave: exit code, stdout, stderr."""

    code: int
    out: str
    err: str


def command(*arguments: str | Path) -> Answer:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = guarded(lambda: app([str(argument) for argument in arguments], standalone_mode=False))
    return Answer(code, out.getvalue(), err.getvalue())


def program(*arguments: str | Path, stdout: Any = subprocess.PIPE, **options: Any) -> Answer:
    """Run a command as a program of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "federated_anon", *map(str, arguments)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=120,
        **options,
    )
    return Answer(done.returncode, done.stdout or "", done.stderr)


HEAD = ("id", "age", "city", "pay", "illness")
ROLES = ("--key", "id", "--quasi", "*", "--sensitive", "illness")


def people(rows: int = 60) -> list[tuple]:
    rng = np.random.default_rng(0)
    return [
        (
            f"p{i}",
            int(rng.integers(18, 90)),
            "ABC"[rng.integers(3)],
            round(rng.normal(10, 2), 2),
            "xyz"[rng.integers(3)],
        )
        for i in range(rows)
    ]


def write(path: Path, rows: list[tuple], head: tuple = HEAD) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])
    return path


def require_refusal(answer: Answer, code: int, *told: str) -> None:
    """One message with all that is told, the exit code, no traceback, nothing on stdout, nothing left."""
    assert answer.code == code, answer.err
    assert answer.out == ""
    assert len(re.findall("Error:|Unexpected fault:", answer.err)) == 1
    assert "Traceback" not in answer.err
    assert "SECRET" not in answer.err
    assert [text for text in told if text not in answer.err] == []
    assert os.listdir(tempfile.gettempdir()) == []


def drafted(room: Path, **names: str) -> Path:
    """A study of two holders over two parts of the same people; returns its folder."""
    rows = people()
    write(room / "clinic.csv", [(r[0], r[1], r[4]) for r in rows[:55]], ("id", "age", "illness"))
    write(room / "bank.csv", [(r[0].upper(), r[2], r[3]) for r in rows[5:]], ("client", "city", "pay"))
    options = {"key": "id,client", "quasi": "*", "sensitive": "illness", "k": "4"} | names
    flags = [text for name, value in options.items() for text in (f"--{name}", value)]
    answer = command("init", room / "clinic.csv", room / "bank.csv", "--out", room / "study", *flags)
    assert answer.code == 0, answer.err
    return room / "study"


def edit(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))
