"""Finished cells as files, so that an interrupted sweep goes on where it stood."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from federated_anon.errors import SettingsRefused, StorageFailed
from federated_anon.folders import reason

SWEEP = "sweep.json"
CELLS = "cells"
C = TypeVar("C", bound="Named")
C_co = TypeVar("C_co", bound="Named", covariant=True)


class Named(Protocol):
    """A cell: a dataclass of plain values."""

    @property
    def name(self) -> str:
        """A name for its file."""
        ...


class Plan(Protocol[C_co]):
    """What is measured, cell by cell."""

    def as_dict(self) -> dict[str, Any]:
        """All that decides the figures."""
        ...

    def cells(self) -> tuple[C_co, ...]:
        """The cells in order."""
        ...


class Store(Generic[C]):
    """A folder with the sweep's settings and one small file per finished cell, each whole or not there."""

    def __init__(self, folder: Path, sweep: Plan[C]) -> None:
        self.folder, self._sweep = folder, sweep

    def open(self) -> None:
        """Begin, or go on with the same sweep; a folder of anything else is refused."""
        try:
            if self.folder.exists() and not (self.folder / SWEEP).is_file():
                raise StorageFailed(f"'{self.folder}' exists and holds other things; choose another --out")
            (self.folder / CELLS).mkdir(parents=True, exist_ok=True)
            if not (self.folder / SWEEP).is_file():
                self._write(self.folder / SWEEP, self._sweep.as_dict())
            before = json.loads((self.folder / SWEEP).read_text())
        except OSError as error:
            raise StorageFailed(f"'{self.folder}' cannot be used: {reason(error)}; choose another --out") from None
        except ValueError:
            raise StorageFailed(f"'{self.folder / SWEEP}' is damaged; choose another --out") from None
        self._require_same(before)

    def _require_same(self, before: Mapping[str, Any]) -> None:
        now = json.loads(json.dumps(self._sweep.as_dict()))
        changed = [name for name in now if before.get(name) != now[name]]
        if changed:
            faults = [f"{name} was {before.get(name)}, is {now[name]}" for name in changed]
            raise SettingsRefused(f"'{self.folder}' holds other results; choose another --out; it is", faults)

    def missing(self) -> list[C]:
        """Cells not yet measured, in order."""
        return [cell for cell in self._sweep.cells() if self._read(cell) is None]

    def keep(self, cell: C, figures: Mapping[str, Any]) -> None:
        """Write a finished cell."""
        try:
            self._write(self._place(cell), dict(figures))
        except OSError as error:
            raise StorageFailed(f"'{self.folder}' cannot be written: {reason(error)}") from None

    def table(self) -> pa.Table:
        """All finished cells, a row each, in the order of the sweep."""
        cells: list[Any] = [(cell, self._read(cell)) for cell in self._sweep.cells()]
        rows = [{**asdict(cell), **found} for cell, found in cells if found is not None]
        first = list(asdict(cells[0][0]))
        order = [*first, *sorted({name for row in rows for name in row} - set(first))]
        return pa.table({name: pa.array([row.get(name) for row in rows]) for name in order})

    def _place(self, cell: C) -> Path:
        return self.folder / CELLS / f"{cell.name}.json"

    def _read(self, cell: C) -> dict[str, Any] | None:
        """A finished cell's figures; a file that cannot be read is measured anew."""
        try:
            found = json.loads(self._place(cell).read_text())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    @staticmethod
    def _write(place: Path, content: Mapping[str, Any]) -> None:
        partial = place.with_suffix(".partial")
        partial.write_text(json.dumps(content, sort_keys=True) + "\n")
        os.replace(partial, place)
