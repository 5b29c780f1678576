"""Linkage: whose record is this? By the coordinator, by holders, by readers of the release, by coalitions.

Every attacker knows all raw quasi-identifiers of all people.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from federated_anon.arrays import Labels
from federated_anon.attacks.attempt import Attempt, exactly
from federated_anon.attacks.scene import Scene
from federated_anon.columns import Role
from federated_anon.crypto.pseudonyms import shuffle_within
from federated_anon.privacy.kanonymity import equivalence_classes
from federated_anon.privacy.linkage import indices_linkage, linkage_risk, wilson
from federated_anon.seeds import stream

ALL = "all raw quasi-identifiers"
LUCK = 4.0
"""Width of the interval of a guess drawn once: places inside a group are drawn together, so luck varies more."""


def by_coordinator(scene: Scene) -> list[Attempt]:
    """From the whole view: the nearest record by what the messages say of values; then had it every class by heart."""
    bound = 1 / scene.k if scene.study.exposure == "sealed" else None
    found = linkage_risk(scene.points, scene.view, scene.seen, scene.seen, stream(scene.study.seed, "attack"))
    who, what = "coordinator", "whose pseudonym this is"
    view = f"{scene.study.exposure} view and {ALL}"
    ceiling = exactly(indices_linkage([scene.seen]))
    guess = 1 / scene.records
    return [
        Attempt("coordinator-nearest", who, view, what, found.linked, guess, bound),
        Attempt("coordinator-classes", who, f"{view}, and each person's class by heart", what, ceiling, guess, bound),
    ]


def by_release(scene: Scene) -> Attempt:
    """From the published table alone: the nearest record."""
    found = linkage_risk(
        scene.points, scene.published, scene.groups, scene.groups, stream(scene.study.seed, "attack release")
    )
    return Attempt(
        "release-nearest",
        "recipient",
        f"the release and {ALL}",
        "which row a person is",
        found.linked,
        1 / scene.records,
        1 / scene.k,
    )


def by_holder(scene: Scene, holder: str) -> Attempt:
    """A holder knows everyone's group and the holders' order inside groups: it takes a group's rows in that order."""
    guess = rows_in_holders_order(scene)
    hit = wilson(float((guess == scene.row_of).sum()), scene.records, LUCK)
    return Attempt(
        f"{holder}-order",
        holder,
        f"its own data, the groups, the holders' shuffle, the release and {ALL}",
        "which row a person is",
        hit,
        1 / scene.records,
        1 / scene.k,
    )


def by_coalition(scene: Scene) -> list[Attempt]:
    """A holder and the coordinator together know both shuffles, and read what stands in a person's row."""
    names = [column.name for column in scene.named(Role.SENSITIVE, Role.KEEP)]
    if not names:
        return []
    rows = scene.release.select(names).take(pa.array(scene.row_of))
    return [
        Attempt(
            "coalition-shuffles",
            f"{scene.first} with coordinator",
            "both shuffles, and the release",
            "sensitive and kept values of a person",
            exactly(float(alike(rows, scene.people.select(names)).mean())),
            float(alike(scene.release.select(names), scene.people.select(names)).mean()),
            None,
        )
    ]


def alike(left: pa.Table, right: pa.Table) -> np.ndarray:
    """(n,): whether two tables agree in a row; missing values are alike."""
    same = np.ones(left.num_rows, dtype=bool)
    for name in left.column_names:
        both = pa.chunked_array([*plain_text(left[name]).chunks, *plain_text(right[name]).chunks])
        codes = equivalence_classes(pa.table({"x": both}), ["x"])
        same &= codes[: left.num_rows] == codes[left.num_rows :]
    return same


def plain_text(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values by their spelling, whatever type the file had."""
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    return values.cast(kind).cast(pa.large_string())


def rows_in_holders_order(scene: Scene) -> Labels:
    """(n,): for each person the row a holder takes it for: rows of a group as they come, people in the shared order."""
    group_of_row = np.empty(scene.records, dtype=np.int64)
    group_of_row[scene.row_of] = scene.groups
    rows = np.argsort(group_of_row, kind="stable")
    guess = np.empty(scene.records, dtype=np.int64)
    guess[shuffle_within(scene.groups, scene.key)] = rows
    return guess
