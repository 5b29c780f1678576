"""Holders for tests: real ones over small tables, and ones that lag, lie, forget or vanish."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import coordinator.driver
from coordinator.holders import InProcess
from coordinator.protocol import Outcome
from coordinator.tape import Tape
from federated_anon.columns import Column, Kind, Role
from federated_anon.crypto.signing import Identity
from federated_anon.messages import COORDINATOR, VERSION, Envelope, Message, Step, decode, encode
from federated_anon.messages.payloads import REPLIES
from federated_anon.policy import Policy
from federated_anon.sections import checked
from federated_anon.study import Study
from nodes.holder import DataHolder
from nodes.origin import Origin
from nodes.settings import HolderSettings

__all__ = ["Tape"]
NAMES = ("north", "south")
SECRET = bytes(range(32))
Driver = functools.partial(coordinator.driver.Driver, secret=SECRET)


def make_study(holders: Sequence[str] = NAMES, k: int = 3, **changes: Any) -> Study:
    """A study with small defaults."""
    content = {"name": "trial", "holders": list(holders), "exposure": "open", "privacy": {"k": k}, **changes}
    return checked(Study, content, "study")


def make_table(rows: int, seed: int, prefix: str) -> tuple[pa.Table, tuple[Column, ...]]:
    """A small mixed table whose column names begin with ``prefix``; keyed by ``id``."""
    rng = np.random.default_rng(seed)
    number = rng.normal(size=rows).round(3)
    table = pa.table(
        {
            "id": [f"Person {i:04d}" for i in rng.permutation(rows)],
            f"{prefix}_number": pa.array(number, mask=rng.random(rows) < 0.1),
            f"{prefix}_integer": rng.integers(0, 50, rows),
            f"{prefix}_colour": rng.choice(["red", "green", "blue"], rows),
            f"{prefix}_illness": rng.choice(["flu", "cold", "none", "gout"], rows),
        }
    )
    columns = (
        Column("id", Role.KEY, Kind.TEXT),
        Column(f"{prefix}_number", Role.QUASI, Kind.NUMBER),
        Column(f"{prefix}_integer", Role.QUASI, Kind.INTEGER),
        Column(f"{prefix}_colour", Role.QUASI, Kind.CATEGORY),
        Column(f"{prefix}_illness", Role.SENSITIVE, Kind.CATEGORY),
    )
    return table, columns


def make_settings(
    folder: Path, name: str, table: pa.Table, columns: Sequence[Column], holders: Sequence[str], **policy: Any
) -> HolderSettings:
    """Settings of one holder whose table lies in ``folder``."""
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(table, place / "data.parquet")
    return HolderSettings(
        name=name,
        identity=Identity.for_simulation(0, name),
        identity_file=place / "identity.key",
        ledger=place / "ledger",
        source=Origin(place / "data.parquet"),
        partners={p: Identity.for_simulation(0, p).public for p in holders if p != name},
        columns=tuple(columns),
        policy=checked(Policy, {"smallest_k": 2, "exposures": ["open"]} | policy, "policy"),
    )


def make_holders(folder: Path, holders: Sequence[str] = NAMES, rows: int = 60, **policy: Any) -> dict[str, DataHolder]:
    """Real holders over made tables of the same people."""
    made = {}
    for number, name in enumerate(holders):
        table, columns = make_table(rows, number, name)
        made[name] = DataHolder(make_settings(folder, name, table, columns, holders, **policy))
    return made


def drive(study: Study, holders: Mapping[str, Any], **options: Any) -> Outcome:
    """A whole study in this process."""
    return Driver(study, InProcess({name: one.answer for name, one in holders.items()}), **options).run()


@dataclass
class LyingCoordinator:
    """Speaks to one holder as a coordinator would, and says what it likes."""

    holder: Any
    study: Study
    sequence: int = 10_000

    def ask(self, step: Step, payload: Any, **envelope: Any) -> Any:
        """Send a request, forged as wished; returns the reply's payload."""
        self.sequence += 1
        fields = {
            "version": VERSION,
            "study": self.study.digest,
            "step": step,
            "sender": COORDINATOR,
            "sequence": self.sequence,
        }
        return self.send(encode(Message(Envelope(**(fields | envelope)), payload)))

    def send(self, content: bytes) -> Any:
        """Send bytes as they are; returns the reply's payload."""
        return decode(self.holder.answer(content), REPLIES).payload
