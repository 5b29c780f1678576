"""A run's folder: written beside its place under another name, renamed when complete, so it is whole or not there."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet

from coordinator.protocol import Outcome
from federated_anon.errors import StorageFailed


def require_free(place: Path) -> None:
    """Raise ``StorageFailed`` unless a run can be written at ``place``; asked before any work is done."""
    if place.exists():
        raise StorageFailed(f"'{place}' exists already; choose another --out, or remove it")
    parent = place.absolute().parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise StorageFailed(f"'{parent}' is not a folder that can be written to")


@contextmanager
def partial_folder(place: Path) -> Iterator[Path]:
    """A temporary folder beside ``place`` that becomes ``place`` at the end, or vanishes."""
    require_free(place)
    partial = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.absolute().parent))
    try:
        yield partial
        partial.chmod(0o755)
        partial.rename(place)
    except OSError as error:
        raise StorageFailed(f"'{place}' cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_run(place: Path, outcome: Outcome) -> None:
    """Release, report data, resolved study and ledgers, all or nothing."""
    with partial_folder(place) as folder:
        pyarrow.parquet.write_table(outcome.release.table, folder / "release.parquet")
        (folder / "release.csv").write_bytes(outcome.release.csv())
        (folder / "report.json").write_text(json.dumps(outcome.report, indent=2, sort_keys=True) + "\n")
        (folder / "study.toml").write_text(outcome.release.study.to_toml())
        (folder / "ledger").mkdir()
        for holder, lines in outcome.ledgers.items():
            (folder / "ledger" / f"{holder}.jsonl").write_text("".join(line + "\n" for line in lines))
