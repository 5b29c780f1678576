"""Settings files written for people: a holder's own, and a study's, with comments that say what to decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import tomli_w

from federated_anon.columns import Column
from federated_anon.crypto.signing import Identity
from federated_anon.study import Study


def holder_settings(
    name: str, source: str, columns: Sequence[Column], partners: Mapping[str, str], policy: Mapping[str, Any]
) -> dict[str, Any]:
    """A holder's settings as the content of its TOML file."""
    return {
        "holder": {"name": name, "identity": "identity.key", "ledger": "ledger"},
        "source": {"path": source},
        "partners": dict(partners),
        "columns": {column.name: column_settings(column) for column in columns},
        "policy": dict(policy),
    }


def column_settings(column: Column) -> dict[str, Any]:
    """One column's entry; what equals the default is left out."""
    entry: dict[str, Any] = {"role": column.role.value, "type": column.kind.value}
    if column.weight != 1.0:
        entry["weight"] = column.weight
    if column.levels:
        entry["levels"] = list(column.levels)
    return entry


def write_holder(
    folder: Path, name: str, table: pa.Table, columns: Sequence[Column], study: Study, seed: int
) -> None:
    """A simulated holder's folder: its columns, its identity derived from the seed, and settings that fit the study."""
    folder.mkdir(mode=0o700)
    own = table.select([column.name for column in columns])
    pyarrow.parquet.write_table(own, folder / "data.parquet", compression="none")
    Identity.for_simulation(seed, name).save(folder / "identity.key")
    partners = {p: Identity.for_simulation(seed, p).public.hex() for p in study.holders if p != name}
    policy = {"smallest_k": study.privacy.k, "exposures": [study.exposure], "most_rounds": 50}
    content = holder_settings(name, "data.parquet", columns, partners, policy)
    (folder / "settings.toml").write_text(tomli_w.dumps(content))
