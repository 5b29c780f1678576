"""A holder whose table is larger than its memory, through a whole sealed study.

    python benchmarks/bench_memory.py [--rows 1500000] [--columns 250] [--limit-mb 1024] [--k 100]

The clinic's table is many Parquet files, written a part at a time; the registry has six columns of the same people.
Both serve in processes of their own. The clinic's is confined by a memory cgroup (version 1, needs root), page cache
included; where that is not to be had, the anonymous memory of the process is measured and nothing confines it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import tomli_w

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.reporting import page, table
from federated_anon.columns import Column, Kind, Role
from federated_anon.crypto.signing import Identity
from federated_anon.crypto.trial_authority import write_trial
from federated_anon.drafts import holder_settings
from federated_anon.simulate import run
from tests.services import COMMAND, Region, Site, free_port, service_section, serving

CONTROLLER = Path("/sys/fs/cgroup/memory")
SIDES = ("clinic", "registry")
PART, BESIDE, SEED = 50_000, 6, 0
NOTES = """Memory is what the clinic's process holds that cannot be dropped and read again (`RssAnon`), the most seen in
each step, sampled every 50 ms. The limit holds for that and for all pages of files together, the mapped scratch files
among them: the group is full most of the time, and the system takes pages back. Seconds are those of the step, with the
registry and the coordinator's part in it."""


@dataclass
class Cage:
    """A memory cgroup of a given size, or nothing where there is no right to make one."""

    limit: int
    place: Path = field(default_factory=lambda: CONTROLLER / f"federated-anon-{os.getpid()}")

    @property
    def is_there(self) -> bool:
        return self.place.exists()

    def read(self, name: str) -> int:
        return int((self.place / name).read_text())

    @property
    def told(self) -> str:
        """What the system says of the group in the end."""
        if not self.is_there:
            return "no cgroup could be made, so nothing was confined"
        killed = (self.place / "memory.oom_control").read_text().split()[-1]
        return f"limit {self.limit >> 20} MB, hit {self.read('memory.failcnt')} times, processes killed: {killed}"


@contextlib.contextmanager
def caged(limit: int) -> Iterator[Cage]:
    """The group, and nothing of it left afterwards."""
    cage = Cage(limit)
    with contextlib.suppress(OSError):
        cage.place.mkdir()
        (cage.place / "memory.limit_in_bytes").write_text(str(limit))
    try:
        yield cage
    finally:
        if cage.is_there:
            cage.place.rmdir()


@dataclass
class CagedSite(Site):
    """A holder's service that enters the group before it begins."""

    cage: Cage | None = None

    def launch(self) -> None:
        """Start the process inside."""
        enter = f"echo $$ > {self.cage.place}/cgroup.procs && " if self.cage and self.cage.is_there else ""
        command = ["sh", "-c", enter + 'exec "$@"', "sh", *COMMAND, "holder", "serve", str(self.settings)]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)


def write_parts(folder: Path, rows: int, columns: int) -> None:
    """The clinic's table: clusters and common factors, one file at a time."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(SEED)
    centres, loadings = 1.5 * rng.standard_normal((12, columns)), 0.7 * rng.standard_normal((12, 4, columns))
    people = rng.permutation(rows)
    for number, start in enumerate(range(0, rows, PART)):
        size = min(PART, rows - start)
        cluster = rng.integers(0, 12, size)
        found = centres[cluster] + 0.4 * rng.standard_normal((size, columns))
        for one in range(12):
            found[cluster == one] += rng.standard_normal((int((cluster == one).sum()), 4)) @ loadings[one]
        arrays = {f"c{column:03d}": found[:, column] for column in range(columns)}
        part = pa.table({"id": people[start : start + size], **arrays})
        parquet.write_table(part, folder / f"{number:04d}.parquet", compression="none", use_dictionary=["id"])


def write_beside(path: Path, rows: int) -> None:
    """The registry's few columns of the same people, in another order."""
    rng = np.random.default_rng(SEED + 1)
    columns = {f"r{column}": rng.standard_normal(rows).round(3) for column in range(BESIDE)}
    parquet.write_table(pa.table({"id": rng.permutation(rows), **columns}), path)


def prepared(folder: Path, rows: int, columns: int, k: int, cage: Cage | None, scratch: bool = True) -> Region:
    """Data, settings, certificates and study of both; nothing is started."""
    write_trial(folder / "certs", "coordinator", SIDES, (), 5)
    write_parts(folder / "clinic" / "parts", rows, columns)
    (folder / "registry").mkdir()
    write_beside(folder / "registry" / "data.parquet", rows)
    names = {"clinic": [f"c{n:03d}" for n in range(columns)], "registry": [f"r{n}" for n in range(BESIDE)]}
    paths = {"clinic": "parts", "registry": "data.parquet"}
    sites: dict[str, Site] = {}
    for name in SIDES:
        Identity.for_simulation(SEED, name).save(folder / name / "identity.key")
        own = [Column("id", Role.KEY, Kind.INTEGER), *(Column(one, Role.QUASI, Kind.NUMBER) for one in names[name])]
        partners = {other: Identity.for_simulation(SEED, other).public.hex() for other in SIDES if other != name}
        content = holder_settings(name, paths[name], own, partners, {"smallest_k": k, "exposures": ["sealed"]})
        if name == "clinic" and scratch:
            content["source"]["scratch"] = "scratch"
        site = CagedSite(name, folder / name / "settings.toml", free_port(), cage=cage if name == "clinic" else None)
        content["service"] = service_section(folder / "certs" / name, name, site.address)
        site.settings.write_text(tomli_w.dumps(content))
        sites[name] = site
    study = {"name": "memory", "holders": list(SIDES), "exposure": "sealed", "seed": SEED, "privacy": {"k": k}}
    places = {name: {"address": site.address} for name, site in sites.items()}
    (folder / "study.toml").write_text(tomli_w.dumps({**study, "deployment": places}))
    return Region(folder, sites)


class Watch:
    """The most anonymous memory of a process in each step, and how long the step took."""

    def __init__(self, pid: int) -> None:
        self.steps: dict[str, list[float]] = {}  # seconds, MB, times
        self._pid, self._step, self._begun = pid, "start", time.perf_counter()
        self._is_done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def enter(self, step: str) -> None:
        """A step begins, and the one before is over."""
        self._count(0.0)
        now = time.perf_counter()
        self.steps[self._step][0] += now - self._begun
        self.steps[self._step][2] += 1
        print(f"{now - self._begun:8.1f} s  {self.steps[self._step][1]:6.0f} MB  {self._step}", flush=True)
        self._step, self._begun = step, now

    def close(self) -> None:
        """No more."""
        self.enter("")
        self._is_done.set()
        self._thread.join()

    def _count(self, megabytes: float) -> None:
        entry = self.steps.setdefault(self._step, [0.0, 0.0, 0.0])
        entry[1] = max(entry[1], megabytes)

    def _sample(self) -> None:
        while not self._is_done.wait(0.05):
            with contextlib.suppress(OSError, StopIteration):
                lines = Path(f"/proc/{self._pid}/status").read_text().splitlines()
                found = next(line for line in lines if line.startswith("RssAnon"))
                self._count(int(found.split()[1]) / 1024)


def measured(region: Region, out: Path) -> tuple[Watch, dict[str, object]]:
    """The study run; what the clinic's process took, and the summary."""
    with serving(region):
        watch = Watch(region.sites["clinic"].pid)
        try:
            result = run(
                region.study, out, certificates=region.certificates, listen=lambda told: watch.enter(told.step.value)
            )
        finally:
            watch.close()
    return watch, dict(result.summary)


def main() -> None:
    """Write, run, tell."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_500_000)
    parser.add_argument("--columns", type=int, default=250)
    parser.add_argument("--limit-mb", type=int, default=1024)
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--folder", type=Path, help="on a local disk with five times the table free")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as place, caged(asked.limit_mb << 20) as cage:
        folder = Path(place)
        region = prepared(folder, asked.rows, asked.columns, asked.k, cage)
        parts = list((folder / "clinic" / "parts").iterdir())
        size = sum(part.stat().st_size for part in parts) / 1e9
        print(f"{size:.2f} GB in {len(parts)} files", flush=True)
        watch, summary = measured(region, folder / "run")
        about = f"{asked.rows:,} rows, {asked.columns} numbers, {size:.2f} GB in {len(parts)} files; {cage.told}."
    rows = [(step, int(times), seconds, round(most)) for step, (seconds, most, times) in watch.steps.items()]
    shown = table(("step", "times", "s", "memory of the clinic, MB"), rows)
    facts = ", ".join(f"{name} {summary[name]}" for name in ("records", "groups", "k_reached", "bytes_sent"))
    page("memory", "A table larger than memory", [about, shown, f"The release: {facts}."], NOTES)


if __name__ == "__main__":
    main()
