"""What a sweep measures: every combination of table, method, k, number of holders and seed, each one a cell."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from federated_anon.errors import SettingsRefused
from federated_anon.methods import METHODS, PRESETS, resolved

CENTRAL = "mdav-central"
"""The textbook method on the joined table, which no holder has: a reference beside the ranking, not in it."""

ORIGINAL = "original"
"""No anonymisation at all: what models reach on the data as they are."""

SMALL = 2000
"""Records up to which all of five folds are held out in turn; of larger tables a third, once per seed."""

REFERENCES = (ORIGINAL, CENTRAL)


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination; references have no holders, and the original has no k (1)."""

    table: str
    method: str
    k: int
    holders: int
    seed: int

    @property
    def name(self) -> str:
        """A name for its file; two cells of a sweep never share one."""
        return f"{self.table}-{self.method}-k{self.k}-h{self.holders}-s{self.seed}"


@dataclass(frozen=True, slots=True)
class Sweep:
    """All that decides the figures: the same sweep gives the same cells, and its digest names it."""

    tables: tuple[tuple[str, str, str], ...]
    """Name, path and SHA-256 of each table."""
    methods: tuple[str, ...]
    ks: tuple[int, ...]
    holders: tuple[int, ...]
    seeds: tuple[int, ...]
    label: str | None = None
    drop: tuple[str, ...] = ()
    folds: int = 0
    """Folds of the held-out protocol; 0 is 5 for tables of up to 2,000 records; of larger ones, a third is held out."""

    def as_dict(self) -> dict[str, Any]:
        """Everything but where the tables lie."""
        content = asdict(self)
        content["tables"] = [[name, digest] for name, _, digest in self.tables]
        return content

    @property
    def digest(self) -> str:
        """SHA-256 of what decides the figures."""
        return hashlib.sha256(json.dumps(self.as_dict(), sort_keys=True).encode()).hexdigest()

    def path_of(self, table: str) -> str:
        """Where a table lies."""
        return next(path for name, path, _ in self.tables if name == table)

    def folds_for(self, records: int) -> tuple[int, int]:
        """Into how many folds a table is cut, and how many of them are held out in turn; each seed cuts anew."""
        if self.folds:
            return self.folds, self.folds
        return (5, 5) if records <= SMALL else (3, 1)

    def cells(self) -> tuple[Cell, ...]:
        """References first, then methods; table by table."""
        found: list[Cell] = []
        for name, _, _ in self.tables:
            found += [Cell(name, ORIGINAL, 1, 0, seed) for seed in self.seeds if self.label]
            found += [Cell(name, CENTRAL, k, 0, seed) for k in self.ks for seed in self.seeds]
            found += [
                Cell(name, method, k, holders, seed)
                for method in self.methods
                for k in self.ks
                for holders in self.holders
                for seed in self.seeds
            ]
        return tuple(found)


def planned(
    files: Sequence[Path],
    methods: Sequence[str],
    ks: Sequence[int],
    holders: Sequence[int],
    seeds: Sequence[int],
    label: str | None = None,
    drop: Sequence[str] = (),
    folds: int = 0,
) -> Sweep:
    """A sweep, checked whole: all faults of the wish come in one ``SettingsRefused``."""
    names = [file.name.split(".")[0] for file in files]
    chosen = tuple(dict.fromkeys(resolved(method) for method in methods))
    faults = [f"'{file}' is not a file" for file in files if not file.is_file()]
    faults += [f"two tables are called '{name}'" for name in sorted(set(names)) if names.count(name) > 1]
    faults += [f"unknown method '{name}'; known: {', '.join(METHODS)}" for name in chosen if name not in METHODS]
    labelled = [name for name in chosen if name in PRESETS and PRESETS[name].labels]
    faults += [f"'{name}' learns from the label: compare it apart, with --label" for name in labelled if not label]
    faults += _number_faults("k", ks, 2) + _number_faults("holders", holders, 1) + _number_faults("seeds", seeds, 0)
    faults += [] if folds == 0 or 2 <= folds <= 20 else [f"folds are 2 to 20, got {folds}"]
    faults += [f"at least one {what} is needed" for what, some in (("table", files), ("method", methods)) if not some]
    if faults:
        raise SettingsRefused("comparison", faults)
    tables = tuple((name, str(file), _digest(file)) for name, file in zip(names, files, strict=True))
    return Sweep(tables, chosen, tuple(ks), tuple(holders), tuple(seeds), label, tuple(drop), folds)


def _number_faults(what: str, values: Sequence[int], least: int) -> list[str]:
    if not values:
        return [f"at least one of {what} is needed"]
    low = [f"{what}: at least {least}, got {value}" for value in values if value < least]
    return low + ([f"{what}: every number once"] if len(set(values)) < len(values) else [])


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
