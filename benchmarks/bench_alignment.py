"""Alignment alone: three real holders in one process, from their files to the positions of the common people.

The holders answer one after another and each uses all cores, as three machines with fewer cores would side by side.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.reporting import page, table
from coordinator.alignment import Overlap
from coordinator.driver import Driver
from coordinator.holders import InProcess
from coordinator.protocol import aligned, enrolled
from federated_anon.columns import Column, Kind, Role
from nodes.alignment import People
from nodes.holder import DataHolder
from tests.simulator import make_settings, make_study

NAMES = ("north", "south", "west")
SHARE = 0.9


def people(count: int, seed: int) -> np.ndarray:
    """The numbers of the people that one holder knows: 90 % of all, in an order of its own."""
    rng = np.random.default_rng(seed)
    return rng.permutation(int(count / SHARE))[:count]


def make(folder: Path, name: str, known: np.ndarray) -> DataHolder:
    """A real holder with these people and one column."""
    ids = pa.array(np.char.add("Person ", known.astype(str)))
    columns = (Column("id", Role.KEY, Kind.TEXT), Column(f"{name}_x", Role.QUASI, Kind.NUMBER))
    content = pa.table({"id": ids, f"{name}_x": np.zeros(len(ids))})
    return DataHolder(make_settings(folder, name, content, columns, NAMES))


def row(method: str, count: int) -> tuple[object, ...]:
    """Seconds from the first step to the positions, bytes, and whether the people found are the right ones."""
    known = {name: people(count, seed) for seed, name in enumerate(NAMES)}
    with tempfile.TemporaryDirectory() as place:
        holders = {name: make(Path(place), name, known[name]) for name in NAMES}
        study = make_study(NAMES, alignment={"method": method})
        driver = Driver(study, InProcess({name: one.answer for name, one in holders.items()}), secret=bytes(32))
        begun = time.perf_counter()
        roster = finished(driver, enrolled(study))
        read = time.perf_counter()
        overlap: Overlap = finished(driver, aligned(study, roster))
        done = time.perf_counter()
        found = [known[n][holders[n]._recall(People).rows[overlap.positions[n]]] for n in NAMES]
    truth = set.intersection(*(set(own.tolist()) for own in known.values()))
    exact = set(found[0].tolist()) == truth and all(np.array_equal(found[0], one) for one in found)
    sent = max(driver.bytes_received.values()) / 1e6
    return method, f"3 x {count:,}", read - begun, done - read, sent, overlap.records, "yes" if exact else "NO"


def finished(driver: Driver, course: object) -> object:
    """What a course of steps returns, carried out by the driver."""
    try:
        ask = next(course)  # type: ignore[call-overload]
        while True:
            ask = course.send(driver._carry_out(ask))  # type: ignore[attr-defined]
    except StopIteration as end:
        return end.value


def main() -> None:
    """Both methods, at the sizes that were promised."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hmac", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--ecdh", type=int, nargs="*", default=[10_000, 100_000])
    chosen = parser.parse_args()
    row("ecdh", 100)
    head = (
        "method",
        "ids",
        "s to enrol",
        "s to align",
        "MB sent per holder",
        "people in common",
        "exact",
    )
    rows = [row("hmac", count) for count in chosen.hmac] + [row("ecdh", count) for count in chosen.ecdh]
    page("alignment", "Alignment of three holders, ids to positions", [table(head, rows)])


if __name__ == "__main__":
    main()
