"""The sites of a play: who holds which columns of which people, with their own noise and gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from federated_anon.columns import Column, Kind, Role
from federated_anon.deal import HOLDER, Roles, declared, with_key
from federated_anon.encoding import Encoding
from federated_anon.errors import SettingsRefused
from federated_anon.scenario.plan import Play, TableSettings
from federated_anon.seeds import stream

LABEL = "outcome"


@dataclass(frozen=True, slots=True)
class Site:
    """One site: its columns of its people."""

    name: str
    table: pa.Table
    columns: tuple[Column, ...]


def generated(settings: TableSettings, seed: int) -> pa.Table:
    """People whose columns depend on hidden traits plus noise of their own; the label depends on the first trait."""
    rng = stream(seed, "scenario people")
    traits = rng.standard_normal((settings.people, settings.traits))
    loads = rng.standard_normal((settings.traits, settings.columns)) * (
        rng.random((settings.traits, settings.columns)) < 0.6
    )
    values = traits @ loads + 0.6 * rng.standard_normal((settings.people, settings.columns))
    chance = 1 / (1 + np.exp(-2.5 * traits[:, 0]))
    columns = {f"c{number + 1:02d}": column.round(3) for number, column in enumerate(values.T)}
    return pa.table({**columns, LABEL: np.where(rng.random(settings.people) < chance, "yes", "no")})


def staged(table: pa.Table, label: str | None, drop: Sequence[str], play: Play) -> tuple[Site, ...]:
    """All sites of a play over ``table``; the label, if any, is kept by the last of them."""
    roles = Roles(quasi=("*",), keep=(label,) if label else (), drop=tuple(drop))
    people = with_key(table, declared(table, roles))
    quasi = [column for column in people.columns if column.role is Role.QUASI]
    if play.holders > len(quasi):
        fault = f"{len(quasi)} quasi-identifiers cannot be dealt to {play.holders} holders"
        raise SettingsRefused(f"scenario '{play.name}'", [fault])
    key = next(column for column in people.columns if column.role is Role.KEY)
    kept = [column for column in people.columns if column.role is Role.KEEP]
    sites = []
    for number, part in enumerate(dealt_parts(people.table, quasi, play)):
        rng = stream(play.seed, "site", str(number))
        own = [key, *part, *(kept if number == play.holders - 1 else ())]
        rows = np.sort(rng.permutation(table.num_rows)[: max(round(play.overlap * table.num_rows), play.k)])
        mine = people.table.select([column.name for column in own]).take(pa.array(rng.permutation(rows)))
        sites.append(Site(HOLDER.format(number + 1), disturbed(mine, part, play, rng), tuple(own)))
    return tuple(sites)


def dealt_parts(table: pa.Table, quasi: Sequence[Column], play: Play) -> list[list[Column]]:
    """Columns per site: at random, ``together`` (related columns at one site) or ``apart`` (at different ones).

    ``skew`` s gives the i-th site a share of the columns in proportion to i^-s, and at least one.
    """
    if play.deal == "random":
        order = stream(play.seed, "scenario deal").permutation(len(quasi))
    else:
        order = related_order(table, quasi)
    sizes = shares(len(quasi), play.holders, play.skew)
    if play.deal != "apart":
        edges = np.cumsum([0, *sizes])
        return [[quasi[place] for place in order[a:b]] for a, b in pairwise(edges)]
    parts: list[list[Column]] = [[] for _ in sizes]
    turn = 0
    for place in order:
        while len(parts[turn % len(parts)]) >= sizes[turn % len(parts)]:
            turn += 1
        parts[turn % len(parts)].append(quasi[place])
        turn += 1
    return parts


def shares(columns: int, sites: int, skew: float) -> list[int]:
    """How many columns each site gets."""
    weights = np.arange(1, sites + 1, dtype=float) ** -skew
    wanted = weights / weights.sum() * (columns - sites)
    sizes = 1 + np.floor(wanted).astype(int)
    for place in np.argsort(np.floor(wanted) - wanted, kind="stable")[: columns - int(sizes.sum())]:
        sizes[place] += 1
    return [int(size) for size in sizes]


def related_order(table: pa.Table, quasi: Sequence[Column]) -> np.ndarray:
    """Columns in an order in which related ones are neighbours: leaves of average linkage on 1 - |correlation|."""
    if len(quasi) < 3:
        return np.arange(len(quasi))
    encoding = Encoding.fit(table, quasi)
    points = encoding.encode(table)
    scores = np.stack([points[:, encoding.slices[column.name]][:, 0] for column in quasi], axis=1)
    scores = scores + 1e-9 * np.arange(len(scores))[:, None]  # So that constant columns have a correlation at all.
    gaps = 1 - np.abs(np.corrcoef(scores, rowvar=False))
    np.fill_diagonal(gaps, 0.0)
    return np.asarray(leaves_list(linkage(squareform(gaps, checks=False), "average")))


def disturbed(table: pa.Table, columns: Sequence[Column], play: Play, rng: np.random.Generator) -> pa.Table:
    """The site's own noise (standard deviations of each number) and gaps."""
    for column in columns:
        values = table.column(column.name).combine_chunks()
        if play.noise and column.kind is Kind.NUMBER:
            numbers = values.to_numpy(zero_copy_only=False).astype(float)
            spread = float(np.nanstd(numbers))
            values = pa.array(numbers + play.noise * spread * rng.standard_normal(len(numbers)), from_pandas=True)
        if play.missing:
            gone = pa.array(rng.random(len(values)) < play.missing)
            values = pa.compute.if_else(gone, pa.scalar(None, values.type), values)
        place = table.column_names.index(column.name)
        table = table.set_column(place, column.name, values)
    return table
