"""One cell of a sweep: anonymise the whole table once, and the training folds once each; measure both."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from federated_anon.arrays import Labels
from federated_anon.columns import Column, Role
from federated_anon.comparison.plan import CENTRAL, ORIGINAL, Cell, Sweep
from federated_anon.deal import Roles, declared
from federated_anon.encoding import Encoding
from federated_anon.errors import FederatedAnonError, SettingsRefused
from federated_anon.methods import PRESETS
from federated_anon.microaggregation import MDAV
from federated_anon.privacy import equivalence_classes, linkage_risk, smallest_class
from federated_anon.representatives import representatives
from federated_anon.seeds import stream
from federated_anon.utility.loss import classification_metric, discernibility, information_loss
from federated_anon.utility.separability import TREE, Separability, Task, held_out, printed
from federated_anon.utility.structure import structure
from federated_anon.utility.validity import validity

RECORD = "record number"
"""A column that tells in a simulation whose group is whose; it is kept like a label and measured nowhere."""


@dataclass(frozen=True, slots=True)
class _Subject:
    """A table with what is done to its columns."""

    table: pa.Table
    columns: tuple[Column, ...]
    label: str | None

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]


def measured(sweep: Sweep, cell: Cell, read: Callable[[str], pa.Table]) -> dict[str, Any]:
    """All figures of one cell as plain data; a combination that cannot be is told as ``error``, not raised."""
    begun = time.perf_counter()
    try:
        subject = _subject(read(sweep.path_of(cell.table)), sweep)
        figures = _reference(subject, cell, sweep) if cell.method == ORIGINAL else _figures(subject, cell, sweep)
    except FederatedAnonError as error:
        figures = {"error": str(error)}
    return {**figures, "cell_seconds": round(time.perf_counter() - begun, 2)}


def _subject(table: pa.Table, sweep: Sweep) -> _Subject:
    if sweep.label and sweep.label not in table.column_names:
        raise SettingsRefused("comparison", [f"no column '{sweep.label}'; known: {', '.join(table.column_names)}"])
    keep = (sweep.label,) if sweep.label else ()
    roles = Roles(quasi=("*",), keep=keep, drop=tuple(name for name in sweep.drop if name in table.column_names))
    columns = tuple(column for column in declared(table, roles) if column.role is Role.QUASI)
    return _Subject(table.select([*(column.name for column in columns), *keep]), columns, sweep.label)


def _reference(subject: _Subject, cell: Cell, sweep: Sweep) -> dict[str, Any]:
    """What the data as they are allow."""
    task = Task(sweep.label or "", subject.columns, seed=cell.seed)
    folds = sweep.folds_for(subject.table.num_rows)
    return {
        "k_reached": 1,
        "information_loss": 0.0,
        **_accuracies(held_out(subject.table, lambda rows: rows, task, *folds), printed(subject.table, task)),
    }


def _figures(subject: _Subject, cell: Cell, sweep: Sweep) -> dict[str, Any]:
    anonymise = _anonymiser(subject, cell)
    numbered = subject.table.append_column(RECORD, pa.array(np.arange(subject.table.num_rows)))
    begun = time.perf_counter()
    release = anonymise(numbered)
    seconds = time.perf_counter() - begun
    figures = {"seconds": round(seconds, 3), **_of_release(subject, release, cell)}
    if sweep.label:
        task = Task(sweep.label, subject.columns, seed=cell.seed)
        figures |= _accuracies(
            held_out(subject.table, anonymise, task, *sweep.folds_for(subject.table.num_rows)),
            printed(release.drop_columns([RECORD]), Task(task.label, task.columns, (TREE,), task.seed)),
        )
    return figures


def _of_release(subject: _Subject, release: pa.Table, cell: Cell) -> dict[str, Any]:
    """Figures of the whole table's release: what it keeps, loses and risks."""
    classes = equivalence_classes(release, subject.names)
    rows = np.argsort(release[RECORD].to_numpy(), kind="stable")
    aligned, groups = release.take(pa.array(rows)), classes[rows]
    shape = structure(subject.table, release, subject.columns, cell.seed)
    encoding = Encoding.fit(subject.table, subject.columns)
    points, published = encoding.encode(subject.table), encoding.encode(release)
    risk = linkage_risk(points, published, groups, classes, stream(cell.seed, "linkage"))
    figures = {
        "k_reached": smallest_class(classes),
        "groups": int(classes.max()) + 1,
        "information_loss": information_loss(subject.table, aligned, subject.columns).percent,
        "structural_median": shape.utility,
        "structural_worst": 1.0 - shape.worst_by_range,
        "sliced": shape.sliced,
        "correlation_error": shape.correlation.mean,
        "linked": risk.linked.value,
        "linked_high": risk.linked.high,
        "discernibility": discernibility(classes, cell.k),
    }
    if subject.label:
        figures["classification_metric"] = classification_metric(release[subject.label], classes, cell.k)
        figures |= _indices(published, release[subject.label].combine_chunks())
    return figures


def _indices(points: np.ndarray, classes: pa.Array) -> dict[str, float]:
    """How well the classes separate in the release."""
    codes = np.asarray(classes.cast(pa.string()).dictionary_encode().indices)
    if not 2 <= len(np.unique(codes)) < len(codes):
        return {}
    found = validity(points, codes)
    return {
        "silhouette": found.silhouette,
        "davies_bouldin": found.davies_bouldin,
        "calinski_harabasz": found.calinski_harabasz,
    }


def _accuracies(honest: Separability, flattering: Separability) -> dict[str, float]:
    """The two protocols side by side, as shares."""
    figures = {f"held_out_{model}": rate.value for model, rate in honest.accuracy.items()}
    tree = honest.accuracy[TREE]
    return {
        **figures,
        "held_out": honest.mean,
        "held_out_tree_low": tree.low,
        "held_out_tree_high": tree.high,
        "majority": honest.by_majority.value,
        "printed_tree": flattering.accuracy[TREE].value,
    }


def _anonymiser(subject: _Subject, cell: Cell) -> Callable[[pa.Table], pa.Table]:
    """From records to their release; everything else a table brings is kept beside its group."""
    if cell.method == CENTRAL:
        return lambda table: _central(table, subject.columns, MDAV(cell.k))
    return lambda table: _federated(table, subject, cell)


def _central(table: pa.Table, columns: Sequence[Column], estimator: MDAV) -> pa.Table:
    groups: Labels = estimator.fit(Encoding.fit(table, columns).encode(table)).labels_
    release = representatives(table, columns, groups).take(pa.array(groups))
    others = [name for name in table.column_names if name not in release.column_names]
    for name in others:
        release = release.append_column(name, table[name])
    return release


def _federated(table: pa.Table, subject: _Subject, cell: Cell) -> pa.Table:
    from federated_anon.simulate import simulate

    kept = [name for name in table.column_names if name not in subject.names]
    shared = {"labels": {"column": subject.label, "share": "cells"}}
    settings: dict[str, Any] = shared if PRESETS[cell.method].labels else {}
    found = simulate(
        table,
        k=cell.k,
        holders=cell.holders,
        quasi=subject.names,
        keep=kept,
        method=cell.method,
        seed=cell.seed,
        runtime="in-process",
        **settings,
    )
    return found.table
