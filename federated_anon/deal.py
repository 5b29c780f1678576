"""One table for several players: roles from column names, and columns dealt to holders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from federated_anon.columns import Column, Kind, Role, infer_column
from federated_anon.errors import SettingsRefused
from federated_anon.seeds import stream

REST = "*"
ROW = "row"
HOLDER = "holder-{}"
"""How holders are called to whom columns are dealt, from 1 on."""


@dataclass(frozen=True, slots=True)
class Roles:
    """Column names by role; ``'*'`` in one of them stands for every column not named otherwise."""

    quasi: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    key: str | None = None
    wish: str | None = None

    def named(self) -> dict[Role, tuple[str, ...]]:
        """The names as given, by role."""
        key = (self.key,) if self.key else ()
        return {
            Role.QUASI: self.quasi,
            Role.SENSITIVE: self.sensitive,
            Role.KEEP: self.keep,
            Role.IDENTIFIER: self.drop,
            Role.KEY: key,
            Role.WISH: (self.wish,) if self.wish else (),
        }


@dataclass(frozen=True, slots=True)
class People:
    """A table whose rows are people, with a key column."""

    table: pa.Table
    columns: tuple[Column, ...]


def declared(table: pa.Table, roles: Roles) -> tuple[Column, ...]:
    """Every column of ``table`` with its role as named and its kind as inferred; all faults in one message."""
    by_name = assigned(table.column_names, roles)
    columns = tuple(infer_column(name, role, table[name]) for name, role in by_name.items())
    texts = [c.name for c in columns if c.role is Role.QUASI and c.kind in (Kind.TEXT, Kind.SET)]
    if texts:
        raise SettingsRefused(
            "columns",
            [
                f"'{name}' looks like free text, which cannot be a quasi-identifier: drop it, keep it, or, if it "
                "names people, make it the key"
                for name in texts
            ],
        )
    return columns


def assigned(names: Sequence[str], roles: Roles) -> dict[str, Role]:
    """The role of each column; unknown names, names with two roles and columns without one are refused together."""
    named = roles.named()
    chosen: dict[str, list[Role]] = {name: [] for name in names}
    faults = []
    for role, wanted in named.items():
        for name in wanted:
            if name in chosen:
                chosen[name].append(role)
            elif name != REST:
                faults.append(f"unknown column '{name}'; the table has: {', '.join(names)}")
    faults += [f"'{n}' has {len(r)} roles: {', '.join(r)}; one is enough" for n, r in chosen.items() if len(r) > 1]
    rest = [role for role, wanted in named.items() if REST in wanted]
    if len(rest) > 1:
        faults.append(f"'*' stands for the rest once only, not for {' and '.join(rest)}")
    bare = [name for name, found in chosen.items() if not found]
    if bare and not rest:
        faults.append(f"columns without a role: {', '.join(bare)}; name them, or give '*' to one role")
    if faults:
        raise SettingsRefused("columns", faults)
    return {name: (found or rest)[0] for name, found in chosen.items()}


def with_key(table: pa.Table, columns: Sequence[Column]) -> People:
    """The table with a key column; without one, the row number is the key."""
    complete = keyed(columns)
    if len(complete) > len(columns):
        table = table.append_column(complete[-1].name, pa.array(np.arange(table.num_rows)))
    return People(table, complete)


def keyed(columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns with a key among them; without one, a last column for the row number, under a free name."""
    if any(column.role is Role.KEY for column in columns):
        return tuple(columns)
    name = ROW
    while name in {column.name for column in columns}:
        name += "_"
    return (*columns, Column(name, Role.KEY, Kind.INTEGER))


def dealt(
    columns: Sequence[Column], holders: int, views: Sequence[Sequence[str]], seed: int
) -> dict[str, tuple[Column, ...]]:
    """Columns per holder, the key with each: as ``views`` says, or at random by the seed.

    Quasi-identifiers are dealt evenly, so that every holder has at least one; identifiers are dealt to nobody.
    """
    key = next(column for column in columns if column.role is Role.KEY)
    shared = [c for c in columns if c.role not in (Role.KEY, Role.IDENTIFIER)]
    parts = _viewed(shared, views) if views else _random(shared, holders, seed)
    return {HOLDER.format(number + 1): (key, *part) for number, part in enumerate(parts)}


def _random(columns: Sequence[Column], holders: int, seed: int) -> list[list[Column]]:
    quasi = [column for column in columns if column.role is Role.QUASI]
    if not 1 <= holders <= len(quasi):
        count = f"{len(quasi)} quasi-identifiers"
        fault = f"{count} cannot be dealt to {holders} holders: each needs at least one; choose fewer holders"
        raise SettingsRefused("columns", [fault if holders > 0 else f"at least one holder is needed, got {holders}"])
    rng = stream(seed, "deal")
    parts: list[list[Column]] = [[] for _ in range(holders)]
    others = [column for column in columns if column.role is not Role.QUASI]
    for pile in (quasi, others):
        for place, number in enumerate(rng.permutation(len(pile))):
            parts[place % holders].append(pile[number])
    return [sorted(part, key=list(columns).index) for part in parts]


def _viewed(columns: Sequence[Column], views: Sequence[Sequence[str]]) -> list[list[Column]]:
    by_name: Mapping[str, Column] = {column.name: column for column in columns}
    named = [name for view in views for name in view]
    faults = [f"views: unknown column '{name}'" for name in named if name not in by_name]
    faults += [f"views: '{name}' is dealt twice" for name in sorted(set(named)) if named.count(name) > 1]
    faults += [f"views: '{name}' is dealt to nobody" for name in by_name if name not in named]
    if faults:
        raise SettingsRefused("columns", faults)
    return [[by_name[name] for name in view] for view in views]
