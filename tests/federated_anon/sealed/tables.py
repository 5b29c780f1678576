"""Tables for the tests of sealed splitting, and the swaps that must leave no trace."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Labels, Points
from federated_anon.columns import Column, Kind, Role
from federated_anon.deal import dealt as product_deal
from federated_anon.sealed import Proposer, SealedGroups, SplitRules
from federated_anon.sealed.groups import split_down


def standardised(folder: Path, name: str) -> Points:
    with (folder / f"{name}.csv").open() as file:
        head, *rows = csv.reader(file)
    kept = [place for place, column in enumerate(head) if column != "label"]
    table = np.array([[float(row[place]) for place in kept] for row in rows])
    table = table[:, table.std(axis=0) > 0]
    return (table - table.mean(axis=0)) / table.std(axis=0)


def dealt(table: Points, seed: int, holders: int = 3) -> list[Points]:
    parts = np.array_split(np.random.default_rng(seed).permutation(table.shape[1]), holders)
    return [table[:, part] for part in parts]


def dealt_as_simulated(table: Points, seed: int) -> list[Points]:
    """Columns of three holders as ``simulate`` deals them."""
    columns = [Column("id", Role.KEY, Kind.INTEGER)]
    columns += [Column(str(number), Role.QUASI, Kind.NUMBER) for number in range(table.shape[1])]
    parts = product_deal(columns, 3, (), seed).values()
    return [table[:, [int(column.name) for column in part if column.role is Role.QUASI]] for part in parts]


def numbers(records: int, holders: int, seed: int = 0) -> list[NDArray[np.int64]]:
    """Private numbers of each holder, which belong to people and move with them."""
    rng = np.random.default_rng(seed)
    return [rng.permutation(records) for _ in range(holders)]


def grouped(
    blocks: Sequence[Points],
    private: Sequence[NDArray[np.int64]],
    rules: SplitRules,
    proposer: type[Proposer] = Proposer,
) -> SealedGroups:
    proposers = [proposer(block, draw, rules) for block, draw in zip(blocks, private, strict=True)]
    return split_down(proposers, len(blocks[0]), rules)


def swap_inside(labels: Labels, rng: np.random.Generator) -> Labels:
    """A random permutation that maps every group onto itself."""
    swap = np.empty(len(labels), dtype=np.int64)
    swap[np.argsort(labels, kind="stable")] = np.lexsort((rng.random(len(labels)), labels))
    return swap
