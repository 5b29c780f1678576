"""Around ``evaluate``: where its tables come from, whose row is whose, and how its figures read in a terminal."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet

from federated_anon.arrays import Labels
from federated_anon.columns import Column, Kind, Role
from federated_anon.deal import Roles, declared
from federated_anon.errors import DataRefused, StorageFailed
from federated_anon.evaluation import evaluate
from federated_anon.folders import reason

RECORD = "record number"
EVALUATION = "evaluation.json"
PUBLISHED = (Role.QUASI, Role.SENSITIVE, Role.KEEP)

Shown = list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]
"""Title, header and rows of each table."""


def columns_of_run(folder: Path) -> tuple[pa.Table, tuple[Column, ...], dict[str, Any]]:
    """The release of a run, its columns as the study declared them, and what the holders measured themselves."""
    try:
        table = parquet.read_table(folder / "release.parquet")
        report = json.loads((folder / "report.json").read_text())
        columns = tuple(
            Column(one["name"], Role(one["role"]), Kind(one["kind"]), levels=tuple(one["levels"]))
            for one in report["columns"]
        )
        told = {"measured_by_holders": {"information_loss_percent": report["information_loss_percent"]}}
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        raise DataRefused(f"'{folder}' is not the folder of a finished run") from None
    return table, columns, told


def declared_for(original: pa.Table, roles: Roles) -> tuple[Column, ...]:
    """The columns that a release should have, by the originals' own kinds."""
    return tuple(column for column in declared(original, roles) if column.role in PUBLISHED)


def rows_by_key(original: pa.Table, release: pa.Table, key: str | None, aligned: bool) -> Labels | None:
    """(n,): the released row of each original; nothing where nobody says."""
    if aligned:
        return np.arange(release.num_rows) if original.num_rows == release.num_rows else None
    if key is None or key not in release.column_names or key not in original.column_names:
        return None
    before, after = (table[key].combine_chunks().cast(pa.string()) for table in (original, release))
    found = pc.index_in(before, value_set=after)
    if found.null_count or len(pc.unique(after)) != len(after) or len(before) != len(after):
        raise DataRefused(f"'{key}' does not name the same people once in both tables")
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)


def evaluate_simulation(
    original: pa.Table, folder: Path, options: Mapping[str, Any], label: str | None
) -> dict[str, Any]:
    """Evaluate a simulated run and write ``evaluation.json`` into its folder.

    The study is played once more with a column of record numbers beside it: its groups are the run's own if both
    published the same values, and then it is known who is where. Folds of the held-out protocol are anonymised by the
    same study.
    """
    release, columns, told = columns_of_run(folder)
    quasi = [column.name for column in columns if column.role is Role.QUASI]
    names = [column.name for column in columns]

    def anonymise(table: pa.Table) -> pa.Table:
        return _played(table, options).select(names)

    twin = _played(original.append_column(RECORD, pa.array(np.arange(original.num_rows))), options, (RECORD,))
    rows = _rows_like(twin, release, quasi)
    seed = int(options.get("seed", 0))
    found = evaluate(
        original, release, columns, label=label, rows=rows, anonymise=anonymise if label else None, seed=seed
    )
    _write(folder / EVALUATION, {**found, **told})
    return found


def _played(table: pa.Table, options: Mapping[str, Any], kept: tuple[str, ...] = ()) -> pa.Table:
    from federated_anon.simulate import simulate

    keep = (*options.get("keep", ()), *kept)
    return simulate(table, **{**options, "keep": keep}, runtime="in-process").table


def _rows_like(twin: pa.Table, release: pa.Table, quasi: list[str]) -> Labels | None:
    """A released row for each original, inside its group, if twin and release published the same groups."""
    order = [(name, "ascending") for name in quasi]
    places = [pc.sort_indices(table.select(quasi), sort_keys=order) for table in (twin, release)]
    sorted_ = [
        table.select(quasi).take(place).combine_chunks() for table, place in zip((twin, release), places, strict=True)
    ]
    if not sorted_[0].equals(sorted_[1]):
        return None
    people = twin[RECORD].combine_chunks().take(places[0]).to_numpy()
    rows = np.empty(len(people), dtype=np.int64)
    rows[people] = places[1].to_numpy()
    return rows


def _write(place: Path, content: Mapping[str, Any]) -> None:
    partial = place.with_name(f".{place.name}.partial")
    try:
        partial.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
        os.replace(partial, place)
    except OSError as error:
        raise StorageFailed(f"'{place}' cannot be written: {reason(error)}") from None


def shown(found: Mapping[str, Any]) -> Shown:
    """The figures that people ask for, each with how to read it."""
    tables: Shown = [("Privacy", ("what", "figure", "how to read it"), _privacy_rows(found))]
    tables.append(("What was lost", ("what", "figure", "how to read it"), _loss_rows(found)))
    if "separability" in found:
        tables.append(
            ("What models still learn", ("tested how", "tree, %", "linear, %", "boosted, %"), _learned(found))
        )
    return tables


def _privacy_rows(found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    privacy, risk = found["privacy"], found["risk"]
    diverse, close = privacy["l_distinct"].items(), privacy["t"].items()
    rows: list[tuple[str, ...]] = [
        ("k", str(privacy["k"]), f"everyone is alike with at least {privacy['k'] - 1} others"),
        ("bits to find somebody", f"{privacy['entropy_bits']:.2f}", "that an attacker lacks who knows all values"),
    ]
    rows += [(f"l of {name}", str(n), "values that each group shows at least") for name, n in diverse]
    rows += [(f"t of {name}", f"{t:.3f}", "0: each group as all; 1: as far as can be") for name, t in close]
    linkage = risk["linkage"]
    value = _interval(linkage["linked"]) if "linked" in linkage else f"at most {100 * linkage['at_most']:.2f} %"
    rows.append(("people linked", value, f"of all; k allows {100 * linkage['bound']:.1f} %"))
    rows.append(_attack("people singled out", risk["singling_out"]))
    return rows + [_attack(f"{name} inferred", one) for name, one in risk["attribute_inference"].items()]


def _attack(what: str, risk: Mapping[str, Any]) -> tuple[str, ...]:
    return what, _interval(risk["success"]), f"guessing blindly: {_interval(risk['baseline'])}"


def _interval(rate: Mapping[str, float]) -> str:
    return f"{100 * rate['value']:.1f} % ({100 * rate['low']:.1f}-{100 * rate['high']:.1f})"


def _loss_rows(found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    loss, shape = found["loss"], found["structure"]
    told = found.get("measured_by_holders", {}).get("information_loss_percent")
    rows: list[tuple[str, ...]] = []
    if "information_loss_percent" in loss:
        rows.append(("information", f"{loss['information_loss_percent']:.2f} %", "100: only means are left"))
    elif told is not None:
        rows.append(("information", f"{told:.2f} %", "as the holders measured it"))
    else:
        low = loss["information_loss_at_least_percent"]
        rows.append(("information", f"at least {low:.2f} %", "whose row is whose is not known"))
    rows += [
        ("typical column moved", f"{100 * shape['median_by_std']:.1f} %", "of its standard deviation (W1, median)"),
        (f"worst column ({shape['worst_column']})", f"{100 * shape['worst_by_std']:.1f} %", "of its deviation"),
        (
            "correlations",
            f"{shape['correlation']['mean']:.3f}",
            f"mean error; worst {shape['correlation']['worst']:.3f}",
        ),
        ("joint shape", f"{shape['sliced']:.3f}", "sliced Wasserstein distance, in deviations"),
    ]
    return rows


def _learned(found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    names = {
        "original": "on the originals",
        "held_out": "held-out: release of other people, tested on originals",
        "transferred": "release, tested on the originals in it",
        "printed": "on the release itself (flatters)",
    }
    rows = [
        (names[p], *(_interval(found["separability"][p][m]) for m in MODELS))
        for p in names
        if p in found["separability"]
    ]
    majority = _interval(found["separability"]["original"]["majority"])
    return [*rows, ("always the commonest label", majority, majority, majority)]


MODELS = ("tree", "linear", "boosted")
