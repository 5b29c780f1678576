"""Settings files written for people: a holder's own, and a study's, with comments that say what to decide."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import tomli_w

from federated_anon.columns import Column, Role, infer_column
from federated_anon.crypto.signing import Identity
from federated_anon.deal import REST
from federated_anon.errors import SettingsRefused
from federated_anon.folders import partial_folder
from federated_anon.sections import checked
from federated_anon.study import Study, StudyFile

UNDECIDED = "choose"
"""The role of a column whose role nobody has named yet."""

OPTIONS = {
    Role.QUASI: "quasi",
    Role.SENSITIVE: "sensitive",
    Role.KEEP: "keep",
    Role.IDENTIFIER: "drop",
    Role.KEY: "key",
}
"""How the command line calls the roles."""


@dataclass(frozen=True, slots=True)
class Drafted:
    """Column names by role, over several files; each file has its own key column."""

    quasi: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()

    def named(self) -> dict[Role, tuple[str, ...]]:
        """The names as given, by role."""
        return {
            Role.QUASI: self.quasi,
            Role.SENSITIVE: self.sensitive,
            Role.KEEP: self.keep,
            Role.IDENTIFIER: self.drop,
            Role.KEY: self.keys,
        }


SETTINGS_HEAD = """\
# A holder's own settings. Nothing in this file leaves the holder but names, roles and types of columns.
# Check it with: federated-anon doctor THIS_FILE

"""

SETTINGS_NOTES = {
    "[holder]": "# Who this is. The key file is a secret; 'ledger' is the folder that records every byte that leaves.",
    "[source]": "# The data: .csv (also .csv.gz), .tsv, .parquet, .arrow or .feather; relative to this file. Also a\n"
    '# folder of such files, a pattern ("parts/*.parquet"), or a database and a query: see docs/policy.md. And:\n'
    '# missing = ["", "NA"]  says how a text file spells missing values.',
    "[partners]": "# Public keys of the other holders. Compare them with their owners by phone.",
    "[policy]": "# The last word: no request can loosen it. Also known here:\n"
    '# methods = ["best"]                    which groupings this holder allows\n'
    '# never_send = ["income"]               columns that never leave, whatever their role\n'
    "# most_rounds = 20                      most rounds of collaboration\n"
    "# minimum_overlap = 1000                fewest people that all holders must have in common\n"
    "# one_release_per_data_version = true   two different releases of the same data could be compared\n"
    '# share_labels = "no"                   may labels guide the maps: "cells" (by units of k people), "records"\n'
    "# tell_rows = false                     whether the coordinator may know how many rows there are\n"
    "# share_profile = true                  tell for the report how columns changed, in counts of at least k",
}

COLUMNS_NOTE = """\
# The columns. Every one needs a role, and roles are never guessed:
#   identifier         names a person; dropped here, never sent
#   key                names a person in all files alike; exactly one; only pseudonyms of it leave
#   quasi-identifier   others may know it too: people are grouped so that k of them look the same
#   sensitive          its values stay, shuffled inside each group; l and t of the study apply to it
#   keep               its values stay, shuffled inside each group
#   wish               each person's own wish for k (whole numbers); kept by the study's [privacy] personal, never sent
# Types: number, integer, boolean, category, ordered (with levels = [...], lowest first), date, timestamp, text.
# weight = 2.0 makes a quasi-identifier count twice in distances.
"""

STUDY_HEAD = """\
# What all holders agree on. First: federated-anon doctor THIS_FILE, then: federated-anon run THIS_FILE
#
# method: "best" (smallest loss), or one as published, with its limits: docs/methods.md has the table.
# exposure: "sealed" (nobody learns more than the release) or "open" (the coordinator is trusted with the cell index of
#   every person at every holder; smaller loss).
# seed: same seed and same data, same bytes.

"""

STUDY_NOTES = {
    "[privacy]": "# Every combination of quasi-identifiers occurs at least k times. Optional:\n"
    "# l = 3                    every group shows at least l values of each sensitive column\n"
    '# diversity = "distinct"   how l is counted; or "entropy"\n'
    '# personal = "wished"      a column of wishes: nobody in a group smaller than their own wish\n'
    "# t = 0.3                  no group's sensitive values are farther than t from those of all (0 to 1)",
}

DEPLOYMENT_NOTE = """\
# Optional sections: [map] rows, cols, scale, passes, model, bandwidth; [collaboration] rounds, strength, radius, align,
# side_information, cells; [alignment] minimum_overlap.

# Where each holder runs: its settings file there, relative to this file; on a Ray cluster also the custom resource
# of its node (resource = "north"). This part is not agreed on, and holders never see it.
"""

CHOICE = "  # choose: identifier, key, quasi-identifier, sensitive, keep or wish"


def settings_text(content: Mapping[str, Any], facts: Mapping[str, str] | None = None) -> str:
    """A holder's settings as a file that explains itself; ``facts`` are remarks about single columns."""
    rest = {name: part for name, part in content.items() if name != "columns"}
    policy = tomli_w.dumps({"policy": rest.pop("policy")})
    parts = [SETTINGS_HEAD, noted(tomli_w.dumps(rest), SETTINGS_NOTES), "\n", COLUMNS_NOTE]
    for name, entry in content["columns"].items():
        remark = f"# {facts[name]}\n" if facts and name in facts else ""
        parts.append("\n" + remark + tomli_w.dumps({"columns": {name: entry}}))
    text = "".join([*parts, "\n", noted(policy, SETTINGS_NOTES)])
    return text.replace(f'role = "{UNDECIDED}"', f'role = "{UNDECIDED}"{CHOICE}')


def study_text(content: Mapping[str, Any]) -> str:
    """A study as a file that explains itself."""
    agreed = {name: part for name, part in content.items() if name != "deployment"}
    places = tomli_w.dumps({"deployment": content["deployment"]})
    return STUDY_HEAD + noted(tomli_w.dumps(agreed), STUDY_NOTES) + "\n" + DEPLOYMENT_NOTE + places


def noted(text: str, notes: Mapping[str, str]) -> str:
    """TOML text with a comment above each section that has one."""
    for section, note in notes.items():
        text = text.replace(f"{section}\n", f"{note}\n{section}\n", 1)
    return text


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
    policy: dict[str, Any] = {"smallest_k": study.privacy.k, "exposures": [study.exposure], "most_rounds": 50}
    if study.sets:
        policy["set_trees"] = [study.sets.tree]
    if study.labels:
        policy["share_labels"] = study.labels.share
    content = holder_settings(name, "data.parquet", columns, partners, policy)
    (folder / "settings.toml").write_text(tomli_w.dumps(content))


def draft_study(place: Path, tables: Mapping[str, tuple[Path, pa.Table]], roles: Drafted, k: int) -> int:
    """Write a study and one folder per holder, all or nothing; returns how many columns still need a role."""
    name = plain_name(place.name) or "study"
    study = checked(StudyFile, _study(name, tuple(tables), k), "command line")
    require_known(roles, {holder: table.column_names for holder, (_, table) in tables.items()})
    identities = {holder: Identity.create() for holder in tables}
    undecided = 0
    with partial_folder(place) as folder:
        for holder, (path, table) in tables.items():
            columns = {column: _entry(column, table[column], roles) for column in table.column_names}
            undecided += sum(entry["role"] == UNDECIDED for entry in columns.values())
            partners = {other: identity.public.hex() for other, identity in identities.items() if other != holder}
            (folder / holder).mkdir(mode=0o700)
            identities[holder].save(folder / holder / "identity.key")
            policy = {"smallest_k": k, "exposures": ["sealed"]}
            content = holder_settings(holder, str(path.absolute()), (), partners, policy) | {"columns": columns}
            facts = {column: _fact(table[column]) for column in table.column_names}
            (folder / holder / "settings.toml").write_text(settings_text(content, facts))
        (folder / "study.toml").write_text(study_text(_study(study.name, study.holders, k)))
    return undecided


def holder_names(files: Sequence[Path]) -> dict[str, Path]:
    """A holder's name for each file, from the file's own; names must differ."""
    named = {plain_name(file.name.split(".")[0]) or "holder": file for file in files}
    if len(named) < len(files):
        raise SettingsRefused("command line", ["every file needs a name of its own: it names the holder"])
    return named


def plain_name(text: str) -> str:
    """The letters, digits, dots, dashes and underscores of a text, others as dashes: what a name may hold."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-._")[:64]


def require_known(roles: Drafted, columns: Mapping[str, Sequence[str]]) -> None:
    """Raise unless every named column is in a file, with one role, and every file that has a key has only one."""
    known = {name for names in columns.values() for name in names}
    wanted = [(role, name) for role, names in roles.named().items() for name in names if name != REST]
    faults = [f"--{OPTIONS[role]}: no file has a column '{name}'" for role, name in wanted if name not in known]
    faults += _twice(wanted)
    for holder, names in columns.items():
        keys = [name for name in roles.keys if name in names]
        if roles.keys and len(keys) != 1:
            told = f"has {' and '.join(keys)}" if keys else f"has none of its columns ({', '.join(names)})"
            faults.append(f"--key: exactly one column of each file names the person; {holder} {told}")
    if sum(REST in names for names in roles.named().values()) > 1:
        faults.append("'*' stands for the rest in one role only")
    if faults:
        raise SettingsRefused("command line", faults)


def _twice(wanted: Sequence[tuple[Role, str]]) -> list[str]:
    names = [name for _, name in wanted]
    return [
        f"'{name}' has several roles: {', '.join(role for role, other in wanted if other == name)}"
        for name in sorted(set(names))
        if names.count(name) > 1
    ]


def _entry(name: str, values: pa.ChunkedArray, roles: Drafted) -> dict[str, Any]:
    named = roles.named()
    found = [role for role, wanted in named.items() if name in wanted]
    found = found or [role for role, wanted in named.items() if REST in wanted]
    column = infer_column(name, found[0] if found else Role.KEEP, values)
    entry = column_settings(column)
    return entry if found else entry | {"role": UNDECIDED}


def _fact(values: pa.ChunkedArray) -> str:
    """What helps to choose a role, without a value."""
    plain = values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values
    missing = f", {plain.null_count} missing" if plain.null_count else ""
    if pa.types.is_nested(plain.type):
        return f"{len(plain)} lists{missing}"
    distinct = pc.count_distinct(plain).as_py()
    if distinct == len(plain):
        return f"every value differs: {distinct} of {len(plain)} rows"
    return f"{distinct} distinct values in {len(plain)} rows{missing}"


def _study(name: str, holders: tuple[str, ...], k: int) -> dict[str, Any]:
    return {
        "name": name,
        "holders": list(holders),
        "method": "best",
        "exposure": "sealed",
        "seed": 0,
        "privacy": {"k": k},
        "deployment": {holder: {"settings": f"{holder}/settings.toml"} for holder in holders},
    }
