"""Settings files written for people: a holder's own, and a study's, with comments that say what to decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import tomli_w

from federated_anon.columns import Column, Role, infer_column
from federated_anon.crypto.signing import Identity
from federated_anon.deal import REST, Roles
from federated_anon.errors import StorageFailed
from federated_anon.study import Study

UNDECIDED = "choose"

SETTINGS_HEAD = """\
# A holder's own settings. Nothing here leaves the holder but names, roles and types of columns.
#
# [columns.X] role: identifier (dropped), key (aligns people, exactly one), quasi-identifier (grouped),
#   sensitive (kept, shuffled inside groups, l and t apply), keep (kept, shuffled), set-valued (not released here).
#   type: number, integer, boolean, ordered (with levels, lowest first), category, date, timestamp, text.
#   weight: how much the column counts in distances (1 unless said).
# [policy] is the last word: no request can loosen it. smallest_k, exposures ("open": the coordinator is trusted
#   with cell indices; "sealed": nobody is), methods, never_send, most_rounds, one_release_per_data_version.
# [partners] pins the public keys of the other holders: compare them with their owners by another way.

"""

STUDY_HEAD = """\
# What all parties agree on. Optional: [privacy] l, diversity ("distinct" or "entropy"), t;
# [map] rows, cols, scale, passes; [collaboration] rounds, strength, radius, align, side_information, cells;
# [alignment] minimum_overlap. [deployment.X] says where holder X runs: its settings file there, and, on a
# Ray cluster, the custom resource of its node. It is not part of what holders agree on.

"""


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


def write_holder(folder: Path, name: str, table: pa.Table, columns: Sequence[Column], study: Study, seed: int) -> None:
    """A simulated holder's folder: its columns, its identity derived from the seed, and settings that fit the study."""
    folder.mkdir(mode=0o700)
    own = table.select([column.name for column in columns])
    pyarrow.parquet.write_table(own, folder / "data.parquet", compression="none")
    Identity.for_simulation(seed, name).save(folder / "identity.key")
    partners = {p: Identity.for_simulation(seed, p).public.hex() for p in study.holders if p != name}
    policy = {"smallest_k": study.privacy.k, "exposures": [study.exposure], "most_rounds": 50}
    content = holder_settings(name, "data.parquet", columns, partners, policy)
    (folder / "settings.toml").write_text(tomli_w.dumps(content))


def draft_study(folder: Path, tables: Mapping[str, tuple[Path, pa.Table]], roles: Roles, k: int) -> int:
    """Write a study and one folder per holder; returns how many columns still need a role."""
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise StorageFailed(f"'{folder}' cannot be made: {error.strerror}; choose another --out") from None
    identities = {name: Identity.create() for name in tables}
    undecided = 0
    for name, (path, table) in tables.items():
        columns = {column: _entry(column, table[column], roles) for column in table.column_names}
        undecided += sum(entry["role"] == UNDECIDED for entry in columns.values())
        partners = {other: identity.public.hex() for other, identity in identities.items() if other != name}
        (folder / name).mkdir(mode=0o700)
        identities[name].save(folder / name / "identity.key")
        content = holder_settings(name, str(path.absolute()), (), partners, {"smallest_k": k, "exposures": ["open"]})
        (folder / name / "settings.toml").write_text(SETTINGS_HEAD + tomli_w.dumps(content | {"columns": columns}))
    (folder / "study.toml").write_text(STUDY_HEAD + tomli_w.dumps(_study(folder.name, tuple(tables), k)))
    return undecided


def _entry(name: str, values: pa.ChunkedArray, roles: Roles) -> dict[str, Any]:
    named = roles.named()
    found = [role for role, wanted in named.items() if name in wanted]
    found = found or [role for role, wanted in named.items() if REST in wanted]
    column = infer_column(name, found[0] if found else Role.KEEP, values)
    entry = column_settings(column)
    return entry if found else entry | {"role": UNDECIDED}


def _study(name: str, holders: tuple[str, ...], k: int) -> dict[str, Any]:
    return {
        "name": name,
        "holders": list(holders),
        "method": "best",
        "exposure": "open",
        "seed": 0,
        "privacy": {"k": k},
        "deployment": {holder: {"settings": f"{holder}/settings.toml"} for holder in holders},
    }
