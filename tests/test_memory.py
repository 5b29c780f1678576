"""A holder's process under a memory limit that its table does not fit in."""

from __future__ import annotations

import os

import pytest

from benchmarks.bench_memory import CONTROLLER, caged, prepared
from federated_anon.study import load_study
from tests.services import serving
from tests.simulator import Driver

ROWS, COLUMNS, K, LIMIT = 250_000, 100, 2_000, 576 << 20

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(
        not os.access(CONTROLLER / "cgroup.procs", os.W_OK), reason="no memory cgroup of version 1 to be written to"
    ),
]


def outcome(region):
    with serving(region):
        return Driver(load_study(region.study).study, region.holders(), timeout=100.0).run()


def test_a_table_that_does_not_fit_goes_through_a_sealed_study(tmp_path):
    """200 MB as a file; table, codes and their sorted copy are 600 MB beside the program's 350."""
    with caged(LIMIT) as cage:
        found = outcome(prepared(tmp_path, ROWS, COLUMNS, K, cage))
        assert found.release.table.num_rows == ROWS
        assert cage.read("memory.max_usage_in_bytes") <= LIMIT
        assert "oom_kill 0" in (cage.place / "memory.oom_control").read_text()
