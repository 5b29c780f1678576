"""``compare`` as a program: interrupted, gone on with, and refused with all faults."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

from tests.command_line import command, program, require_refusal


def written(folder):
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, size=60)
    columns = {name: np.round(rng.normal(size=60) + label, 3) for name in "abcd"}
    csv.write_csv(pa.table({**columns, "label": label}), folder / "small.csv")
    return folder / "small.csv"


def test_an_interrupted_sweep_leaves_only_finished_cells_and_goes_on(tmp_path):
    (tmp_path / "tmp").mkdir()
    options = ("--label", "label", "--methods", "mdav,c-tca", "--k", "3", "--holders", "2", "--seeds", "0")
    arguments = ["compare", written(tmp_path), *options, "--folds", "2", "--workers", "2", "--out", tmp_path / "out"]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    begun = subprocess.Popen(
        [sys.executable, "-m", "federated_anon", *map(str, arguments)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    until = time.monotonic() + 90
    while not list((tmp_path / "out").glob("cells/*.json")) and time.monotonic() < until:
        time.sleep(0.05)
    begun.send_signal(signal.SIGINT)
    out, err = begun.communicate(timeout=60)
    assert (begun.returncode, out) == (130, "")
    assert "Traceback" not in err
    done = {path.name: path.read_bytes() for path in (tmp_path / "out" / "cells").iterdir()}
    assert 0 < len(done) < 4
    assert not [name for name in done if not name.endswith(".json")]
    assert list((tmp_path / "tmp").iterdir()) == []
    answer = program(*arguments, "--json", env=environment)
    assert answer.code == 0, answer.err
    told = json.loads(answer.out)
    assert (told["cells"], told["measured_now"]) == (4, 4 - len(done))
    assert {name: (tmp_path / "out" / "cells" / name).read_bytes() for name in done} == done
    assert (tmp_path / "out" / "ranks-held_out.png").exists() is False, "one table with one k is no ranking"
    assert "Information loss" in (tmp_path / "out" / "comparison.md").read_text()


def test_a_wish_that_cannot_be_is_refused_before_anything_starts(room):
    refused = command("compare", "none.csv", "--methods", "magic", "--k", "1", "--out", "out")
    require_refusal(refused, 3, "none.csv", "magic", "k: at least 2")
    require_refusal(command("compare", written(room), "--k", "three", "--out", "out"), 3, "--k takes whole numbers")
    assert not (room / "out").exists()
