"""A release against its originals: what it keeps, what it loses, what it risks, as plain data.

Rows of a release are shuffled, so most measures look at columns and groups as wholes. Those that need to know which row
stands for whom say so: with ``rows`` they are measured, without they are bounded where a bound exists, or not given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from federated_anon.arrays import Labels, Points
from federated_anon.columns import NUMERIC, UNORDERED, Column, Kind, Role
from federated_anon.encoding import Encoding
from federated_anon.errors import DataRefused
from federated_anon.privacy import closeness, distinct_diversity, entropy_diversity, equivalence_classes, smallest_class
from federated_anon.privacy import information as bits
from federated_anon.privacy.attacks import AttackRisk, attribute_inference, singling_out
from federated_anon.privacy.error import degree_of_anonymity, interval_width, mean_squared_error, normalised_variance
from federated_anon.privacy.linkage import CELLS, Rate, linkage_risk
from federated_anon.quantities import quantities
from federated_anon.seeds import stream
from federated_anon.utility.combined import combined_utility
from federated_anon.utility.loss import (
    classification_metric,
    discernibility,
    information_loss,
    least_distortion,
    minimal_distortion,
    range_loss,
    trade_off,
)
from federated_anon.utility.separability import (
    TREE,
    Anonymise,
    Separability,
    Task,
    feature_columns,
    held_out,
    printed,
    transferred,
)
from federated_anon.utility.structure import Structure, structure
from federated_anon.utility.validity import validity

FLATTERS = (
    "The printed protocol tests on the anonymised table itself, where a record's own group stands in the training "
    "folds: it flatters. Trust the held-out figure."
)
UNALIGNED = (
    "Which released row stands for whom is not known, so distortion, errors per record and the attack's true success "
    "are bounded or left out."
)
ONCE = (
    "The held-out protocol anonymises training folds anew, which a finished release does not allow: 'transferred' "
    "trains on the release and tests on the originals in it. `simulate --evaluate --label` measures the held-out one."
)


@dataclass(frozen=True, slots=True)
class Subject:
    """Both tables, what their columns are, and, where known, the released row of each original."""

    original: pa.Table
    release: pa.Table
    columns: tuple[Column, ...]
    rows: Labels | None = None
    label: str | None = None
    seed: int = 0

    def named(self, *roles: Role) -> tuple[Column, ...]:
        """Columns with one of these roles."""
        return tuple(column for column in self.columns if column.role in roles)

    @property
    def quasi(self) -> tuple[Column, ...]:
        """The quasi-identifiers, which make the groups."""
        return self.named(Role.QUASI)

    @property
    def classes(self) -> Labels:
        """(m,): the group of each released row."""
        return equivalence_classes(self.release, [column.name for column in self.quasi])


def evaluate(
    original: pa.Table,
    release: pa.Table,
    columns: Sequence[Column],
    *,
    label: str | None = None,
    rows: Labels | None = None,
    anonymise: Anonymise | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Every measure that these two tables allow.

    ``columns`` are those of the release, with their roles; ``rows[i]`` is the released row of original ``i``;
    ``anonymise`` makes the release of some of the originals, for the held-out protocol. A release that does not fit the
    originals is refused with all faults in one ``DataRefused``.
    """
    require_fit(original, release, columns, label, rows)
    kept = original.select([column.name for column in columns])
    subject = Subject(kept, release, tuple(columns), rows, label, seed)
    shape = structure(kept, release, subject.quasi, seed)
    separability = _separability(subject, anonymise)
    found = {
        "records": release.num_rows,
        "groups": int(subject.classes.max()) + 1,
        "rows_known": rows is not None,
        "privacy": _privacy(subject),
        "loss": _loss(subject),
        "structure": _structure(subject, shape),
        "risk": _risk(subject),
        "separability": separability,
        "validity": _validity(subject),
        "combined_utility": _combined(separability, shape),
        "notes": _notes(subject, anonymise),
    }
    return {name: value for name, value in found.items() if value is not None}


def require_fit(
    original: pa.Table,
    release: pa.Table,
    columns: Sequence[Column],
    label: str | None = None,
    rows: Labels | None = None,
) -> None:
    """Raise ``DataRefused`` with every reason why the two tables cannot be compared."""
    names = [column.name for column in columns]
    faults = [f"'{name}' is not a column of the release" for name in names if name not in release.column_names]
    faults += [f"'{name}' is not a column of the originals" for name in names if name not in original.column_names]
    faults += [
        f"'{name}' stands in the release only" for name in release.column_names if name not in original.column_names
    ]
    if original.num_rows != release.num_rows:
        faults.append(f"{original.num_rows} originals, {release.num_rows} released rows: as many are needed")
    if original.num_rows < 2:
        faults.append(f"at least 2 records are needed, got {original.num_rows}")
    both = [name for name in names if name in release.column_names and name in original.column_names]
    faults += [fault for name in both if (fault := _type_fault(name, original[name].type, release[name].type))]
    if not any(column.role is Role.QUASI for column in columns):
        faults.append("no column is a quasi-identifier: name at least one")
    if label is not None and label not in names:
        faults.append(f"the label '{label}' is not a column of both tables")
    if rows is not None and sorted(rows) != list(range(release.num_rows)):
        faults.append("rows must name every released row once")
    if faults:
        count = f"{len(faults)} fault" + ("s" if len(faults) > 1 else "")
        raise DataRefused(f"the release does not fit its originals, {count}:\n" + "\n".join(f"  {f}" for f in faults))


def _type_fault(name: str, before: pa.DataType, after: pa.DataType) -> str:
    """Why two types cannot be compared; numbers compare whatever their width."""
    families = [_family(kind) for kind in (before, after)]
    return "" if families[0] == families[1] else f"'{name}' is {before} in the originals and {after} in the release"


def _family(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        return _family(kind.value_type)
    for family, tests in (
        ("number", (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)),
        ("text", (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)),
        ("date", (pa.types.is_date,)),
        ("timestamp", (pa.types.is_timestamp,)),
        ("truth", (pa.types.is_boolean,)),
    ):
        if any(test(kind) for test in tests):
            return family
    return str(kind)


def _privacy(subject: Subject) -> dict[str, Any]:
    """What the groups promise."""
    classes, table = subject.classes, subject.release
    sets = bits.anonymity_sets(classes)
    sensitive = subject.named(Role.SENSITIVE)
    return {
        "k": smallest_class(classes),
        "anonymity_set_mean": float(sets.mean()),
        "entropy_bits": bits.identification_entropy(classes),
        "entropy_normalised": bits.identification_entropy(classes) / float(np.log2(len(classes))),
        "guesses_to_success": bits.time_to_success(classes),
        "degree": str(degree_of_anonymity(1.0 / smallest_class(classes), len(classes))),
        "l_distinct": {c.name: int(distinct_diversity(table[c.name], classes).min()) for c in sensitive},
        "l_entropy": {c.name: float(entropy_diversity(table[c.name], classes).min()) for c in sensitive},
        "t": {
            c.name: float(closeness(table[c.name], classes, c.kind not in UNORDERED, c.levels).max()) for c in sensitive
        },
    }


def _loss(subject: Subject) -> dict[str, Any]:
    """What was lost: by groups alone, and per record where rows are known."""
    names = [column.name for column in subject.quasi]
    found: dict[str, Any] = {
        "discernibility": discernibility(subject.classes),
        "distorted_cells_at_least": least_distortion(subject.original, subject.release, names),
    }
    if subject.label:
        found["classification_metric"] = classification_metric(subject.release[subject.label], subject.classes)
        found["trade_off"] = trade_off(subject.release[subject.label], subject.classes)
    if subject.rows is None:
        return {**found, "information_loss_at_least_percent": _least_loss(subject)}
    aligned = subject.release.take(pa.array(subject.rows))
    lost = information_loss(subject.original, aligned, subject.quasi)
    encoding = Encoding.fit(subject.original, subject.quasi)
    groups = subject.classes[subject.rows]
    spread = range_loss(subject.original, subject.quasi, groups)
    return {
        **found,
        "information_loss_percent": lost.percent,
        "columns_percent": lost.columns,
        "distorted_cells": minimal_distortion(subject.original, aligned, names),
        "range_loss": spread,
        "range_loss_share": spread / (len(groups) * len(names)),
        "mean_squared_error": mean_squared_error(encoding.encode(subject.original), encoding.encode(aligned)),
        "columns": {c.name: _column_error(subject, aligned, groups, c) for c in subject.quasi},
    }


def _column_error(subject: Subject, aligned: pa.Table, groups: Labels, column: Column) -> dict[str, float]:
    """How well a released column tells the true one."""
    found = {"mutual_information_bits": bits.mutual_information(_binned(subject.original, column), groups)}
    if column.kind not in NUMERIC:
        return found
    parts = [quantities(table[column.name], column.name) for table in (subject.original, aligned)]
    both = parts[0].present & parts[1].present
    if both.sum() < 2:
        return found
    true, seen = (part.values[both].astype(np.float64) for part in parts)
    width = interval_width(true, np.unique(groups[both], return_inverse=True)[1])
    noise = normalised_variance(true, seen)
    return {
        **found,
        "correlation": bits.correlation(true, seen),
        **({"normalised_variance": noise} if np.isfinite(noise) else {}),
        "interval_width_share": float(width.mean() / np.ptp(true)) if np.ptp(true) else 0.0,
    }


def _binned(table: pa.Table, column: Column, bins: int = 20) -> pa.Array:
    """Values of a category as they are, numbers by twentieths of their range; missing stays missing."""
    if column.kind not in NUMERIC:
        return table[column.name].combine_chunks()
    found = quantities(table[column.name], column.name)
    seen = found.values[found.present].astype(np.float64)
    edges = np.linspace(seen.min(), seen.max(), bins + 1)[1:-1] if len(seen) else np.zeros(0)
    return pa.array(np.searchsorted(edges, found.values.astype(np.float64), side="right"), mask=~found.present)


def _least_loss(subject: Subject) -> float:
    """100 SSE/SST if every original had the nearest released row: no alignment loses less."""
    encoding = Encoding.fit(subject.original, subject.quasi)
    points, published = encoding.encode(subject.original), encoding.encode(subject.release)
    total = float(np.square(points - points.mean(axis=0)).sum())
    nearest = published[_nearest(points, published)]
    return 100.0 * float(np.square(points - nearest).sum()) / total if total else 0.0


def _nearest(points: Points, published: Points) -> Labels:
    """(n,): a released row nearest to each point."""
    lengths = np.einsum("ij,ij->i", published, published)
    step = max(1, CELLS // len(published))
    parts = [
        np.argmin(lengths - 2.0 * (points[i : i + step] @ published.T), axis=1) for i in range(0, len(points), step)
    ]
    return np.concatenate(parts)


def _structure(subject: Subject, shape: Structure) -> dict[str, Any]:
    divergence = {c.name: _divergence(subject, c) for c in subject.quasi}
    columns = {name: {**asdict(one), "kl_bits": divergence[name]} for name, one in shape.columns.items()}
    return {**asdict(shape), "columns": columns, "utility": shape.utility}


def _divergence(subject: Subject, column: Column) -> float:
    """Kullback-Leibler divergence of the original's distribution from the release's, in bits."""
    tables = (subject.original, subject.release)
    if column.kind in NUMERIC:
        parts = [quantities(table[column.name], column.name) for table in tables]
        if not all(part.present.any() for part in parts):
            return 0.0
        first, second = (part.values[part.present].astype(np.float64) for part in parts)
        return bits.relative_entropy(*bits.histograms(first, second))
    counts = [_counts(table[column.name]) for table in tables]
    levels = sorted(set(counts[0]) | set(counts[1]))
    shares = [np.array([one.get(level, 0) + 0.5 for level in levels]) for one in counts]
    return bits.relative_entropy(*(one / one.sum() for one in shares))


def _counts(values: pa.ChunkedArray) -> dict[str, int]:
    spelled = values.cast(pa.string()).fill_null("\0")
    return {pair["values"]: pair["counts"] for pair in spelled.value_counts().to_pylist()}


def _risk(subject: Subject) -> dict[str, Any]:
    """Attacks with their baselines and intervals."""
    found: dict[str, Any] = {
        "linkage": _linkage(subject),
        "singling_out": _told(
            singling_out(subject.original, subject.release, subject.quasi, stream(subject.seed, "singling"), 1000)
        ),
    }
    secrets = [
        column for column in subject.named(Role.SENSITIVE, Role.KEEP) if column.kind not in {Kind.TEXT, Kind.SET}
    ]
    found["attribute_inference"] = {
        secret.name: _told(
            attribute_inference(
                subject.original, subject.release, subject.quasi, secret, stream(subject.seed, "inference", secret.name)
            )
        )
        for secret in secrets
    }
    return found


def _linkage(subject: Subject) -> dict[str, Any]:
    """Linked share where rows are known; else the most it can be, as if each nearest group were the person's own."""
    encoding = Encoding.fit(subject.original, subject.quasi)
    points, published = encoding.encode(subject.original), encoding.encode(subject.release)
    classes = subject.classes
    bound = 1.0 / smallest_class(classes)
    if subject.rows is None:
        own = bits.anonymity_sets(classes)[_nearest(points, published)]
        return {"at_most": float((1.0 / own).mean()), "bound": bound, "by_chance": 1.0 / len(classes)}
    found = linkage_risk(points, published, classes[subject.rows], classes, stream(subject.seed, "linkage"))
    return {"linked": asdict(found.linked), "bound": bound, "by_chance": found.by_chance.value}


def _told(risk: AttackRisk) -> dict[str, Any]:
    return {"success": asdict(risk.success), "baseline": asdict(risk.baseline), "advantage": risk.advantage}


def _separability(subject: Subject, anonymise: Anonymise | None) -> dict[str, Any] | None:
    if not subject.label:
        return None
    task = Task(subject.label, feature_columns(subject.quasi, subject.label), seed=subject.seed)
    found = {
        "original": printed(subject.original, task),
        "printed": printed(subject.release, task),
        "transferred": transferred(subject.original, subject.release, task),
        **({"held_out": held_out(subject.original, anonymise, task)} if anonymise else {}),
    }
    return {name: _accuracies(one) for name, one in found.items()}


def _accuracies(found: Separability) -> dict[str, Any]:
    rates: Mapping[str, Rate] = found.accuracy
    return {**{model: asdict(rate) for model, rate in rates.items()}, "majority": asdict(found.by_majority)}


def _validity(subject: Subject) -> dict[str, Any] | None:
    """How well the label's classes separate, before and after."""
    if not subject.label:
        return None
    encoding = Encoding.fit(subject.original, feature_columns(subject.quasi, subject.label))
    found = {}
    for name, table in (("original", subject.original), ("release", subject.release)):
        codes = np.asarray(table[subject.label].cast(pa.string()).combine_chunks().dictionary_encode("encode").indices)
        if 2 <= len(np.unique(codes)) < len(codes):
            found[name] = {k: v for k, v in asdict(validity(encoding.encode(table), codes)).items() if np.isfinite(v)}
    return found or None


def _combined(separability: Mapping[str, Any] | None, shape: Structure) -> dict[str, float] | None:
    """Halves of a tree's accuracy and of the median column's structure, per protocol."""
    if separability is None:
        return None
    protocols = [name for name in ("printed", "transferred", "held_out") if name in separability]
    return {name: combined_utility(separability[name][TREE]["value"], shape.utility) for name in protocols}


def _notes(subject: Subject, anonymise: Anonymise | None) -> list[str]:
    told = [] if subject.rows is not None else [UNALIGNED]
    if subject.label:
        told.append(FLATTERS)
        told += [] if anonymise else [ONCE]
    return told
