"""A holder's records: as read, and as the block of common people that a study works on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from federated_anon.arrays import Labels, Points
from federated_anon.columns import UNORDERED, Column, Role
from federated_anon.encoding import Encoding
from federated_anon.errors import Code, DataRefused, PolicyRefused
from federated_anon.ladder import climb, joined, top_rung
from federated_anon.privacy import closeness, distinct_diversity, entropy_diversity, require_wishes, unmet_groups
from federated_anon.study import Privacy
from nodes.identity import data_version, normalise_ids, require_unique
from nodes.scratch import Scratch
from nodes.settings import HolderSettings

NO_WISHES = np.zeros(0, dtype=np.int64)
PUBLISHED = frozenset({Role.QUASI, Role.SENSITIVE, Role.KEEP})


@dataclass(frozen=True, slots=True)
class Records:
    """All rows of a holder as declared, their normalised ids, and the name of this version of the data.

    ``wishes`` are the values of the column ``wish``, where there is one: each person's own k, 0 where it is missing.
    """

    table: pa.Table
    ids: pa.Array
    version: str
    published: tuple[Column, ...]
    scratch: Scratch = field(default_factory=Scratch)
    wish: Column | None = None
    wishes: Labels = field(default_factory=NO_WISHES.copy, repr=False)
    sets: pa.Table = field(default_factory=lambda: pa.table({}))

    @property
    def told(self) -> tuple[Column, ...]:
        """Columns of which a table study's coordinator knows names and types."""
        return (*self.published, *([self.wish] if self.wish else []))


def read_records(settings: HolderSettings) -> Records:
    """Read, check and name the holder's data; columns that are never sent do not even enter."""
    table = settings.source.declared(settings.columns)
    key = next(column.name for column in settings.columns if column.role is Role.KEY)
    ids = normalise_ids(table[key])
    require_unique(ids)
    version = data_version(table, key)
    published = tuple(
        column
        for column in settings.columns
        if column.role in PUBLISHED and column.name not in settings.policy.never_send
    )
    chosen = table.select([column.name for column in published])
    never = settings.policy.never_send
    wish = next((column for column in settings.columns if column.role is Role.WISH and column.name not in never), None)
    wishes = NO_WISHES if wish is None else read_wishes(table[wish.name])
    sets = table.select(
        [column.name for column in settings.columns if column.role is Role.SET and column.name not in never]
    )
    return Records(chosen, ids, version, published, settings.source.scratch, wish, wishes, sets)


def read_wishes(column: pa.ChunkedArray) -> Labels:
    """Each person's own k as whole numbers; a missing wish is none."""
    wishes: Labels = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
    return wishes


@dataclass(frozen=True, slots=True)
class Block:
    """The common people in common order: their columns, and the quasi-identifiers encoded for distances.

    A holder without quasi-identifiers has one constant dimension: all its records are alike.
    ``places`` is each record's rank among all the holder's ids, ``rows`` how many rows the holder has.
    """

    records: Records
    table: pa.Table
    encoding: Encoding
    points: Points
    places: np.ndarray
    rows: int
    wishes: Labels = field(default_factory=NO_WISHES.copy, repr=False)

    @classmethod
    def of(cls, records: Records, rows: np.ndarray) -> Block:
        """The block of the table rows given, in that order."""
        table, keep = records.table, records.scratch.keep
        taken = [keep(table.column(name).combine_chunks().take(pa.array(rows))) for name in table.column_names]
        table = pa.table(taken, table.schema) if taken else table.take(pa.array(rows))
        quasi = [column for column in records.published if column.role is Role.QUASI]
        encoding = Encoding.fit(table, quasi)
        points = encoding.encode(table, records.scratch.empty) if quasi else np.zeros((table.num_rows, 1))
        order = pc.sort_indices(records.ids).to_numpy()
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        wishes = NO_WISHES if records.wish is None else records.wishes[rows]
        return cls(records, table, encoding, points, rank[rows], len(order), wishes)


def failing_groups(block: Block, groups: Labels, privacy: Privacy) -> np.ndarray:
    """Per group: does a sensitive column of this holder break the study's l or t there, or the group a wish?"""
    failing = np.zeros(int(groups.max()) + 1, dtype=bool)
    if block.records.wish is not None:
        failing |= unmet_groups(groups, block.wishes)
    for column in block.records.published:
        if column.role is Role.SENSITIVE:
            failing |= _column_fails(block.table[column.name], column, groups, privacy)
    return failing


def require_kept(block: Block, groups: Labels, privacy: Privacy) -> None:
    """Raise ``PolicyRefused`` if a group breaks l, t or a wish; wishes are counted anew, by code of their own."""
    if failing_groups(block, groups, privacy).any():
        raise PolicyRefused("a group fails l or t of a sensitive column, or a wish", Code.GUARANTEE)
    if block.records.wish is not None:
        require_wishes(groups, block.wishes)


@dataclass(frozen=True, slots=True)
class Lifted:
    """How high each group stands on the ladder so that l and t are kept, and the groups joined so."""

    heights: Labels
    groups: Labels


def lifted_groups(block: Block, groups: Labels, privacy: Privacy) -> Lifted:
    """Groups joined where l or t asks for it; where nothing helps, all stand one above the top."""
    count = int(groups.max()) + 1
    heights = climb(count, lambda current: failing_groups(block, current[groups], privacy))
    if heights is None:
        return Lifted(np.full(count, top_rung(count) + 1, dtype=np.int32), np.zeros_like(groups))
    return Lifted(heights, joined(heights)[groups])


def _column_fails(values: pa.ChunkedArray, column: Column, groups: Labels, privacy: Privacy) -> np.ndarray:
    failing = np.zeros(int(groups.max()) + 1, dtype=bool)
    if privacy.l is not None:
        measure = entropy_diversity if privacy.diversity == "entropy" else distinct_diversity
        failing |= measure(values, groups) < privacy.l - 1e-9
    if privacy.t is not None:
        failing |= closeness(values, groups, column.kind not in UNORDERED, column.levels) > privacy.t + 1e-9
    return failing


def plain_types(table: pa.Table) -> pa.Table:
    """Dictionary-encoded text as plain text: a dictionary would list values that the rows do not hold."""
    for number, one in enumerate(table.schema):
        if pa.types.is_dictionary(one.type):
            plain = table.column(number).cast(one.type.value_type)
            table = table.set_column(number, one.with_type(plain.type), plain)
    if any(pa.types.is_nested(one.type) for one in table.schema):
        raise DataRefused("a column of lists or structures cannot be released")
    return table
