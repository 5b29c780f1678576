"""The files of a finished sweep beside its cells."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet

from federated_anon.comparison.outcome import MEASURES, Standings
from federated_anon.comparison.pages import html, markdown
from federated_anon.comparison.pictures import ranks_png
from federated_anon.comparison.plan import Sweep
from federated_anon.errors import StorageFailed
from federated_anon.folders import reason


def write_results(folder: Path, sweep: Sweep, results: pa.Table, found: Standings) -> tuple[Path, ...]:
    """``results.parquet``, ``comparison.md``, ``comparison.html`` a picture per ranking; each whole or not there."""
    pictures = {f"ranks-{name}.png": ranks_png(ranking, MEASURES[name][0]) for name, ranking in found.rankings.items()}
    pages = {"comparison.md": markdown(sweep, found), "comparison.html": html(sweep, found)}
    return write_files(folder, results, {**pages, **pictures})


def write_files(folder: Path, results: pa.Table, contents: Mapping[str, str | bytes]) -> tuple[Path, ...]:
    """``results.parquet`` and further files by name."""
    sink = pa.BufferOutputStream()
    parquet.write_table(results, sink)
    whole: dict[str, str | bytes] = {"results.parquet": sink.getvalue().to_pybytes(), **contents}
    try:
        for name, content in whole.items():
            partial = folder / f".{name}.partial"
            partial.write_bytes(content.encode() if isinstance(content, str) else content)
            os.replace(partial, folder / name)
    except OSError as error:
        raise StorageFailed(f"'{folder}' cannot be written: {reason(error)}") from None
    return tuple(folder / name for name in whole)
