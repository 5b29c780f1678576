"""k, l and t of a table, counted anew from the table alone: what must hold, raises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from federated_anon.columns import UNORDERED, Kind, Role
from federated_anon.errors import GuaranteeBroken
from federated_anon.privacy import (
    closeness,
    distinct_diversity,
    entropy_diversity,
    equivalence_classes,
    smallest_class,
)
from federated_anon.study import Privacy, Study


class PublishedColumn(Protocol):
    """What verification needs to know of a column."""

    @property
    def name(self) -> str:
        """Its name in the release."""
        ...

    @property
    def role(self) -> Role:
        """Its declared role."""
        ...

    @property
    def kind(self) -> Kind:
        """Its declared kind."""
        ...

    @property
    def levels(self) -> tuple[str, ...]:
        """Its levels in order, where it is ordered."""
        ...


class _Columns(Protocol):
    @property
    def columns(self) -> tuple[PublishedColumn, ...]: ...


@dataclass(frozen=True, slots=True)
class Reached:
    """What the table keeps: the smallest class, and per sensitive column the worst diversity and closeness."""

    k: int
    diversity: dict[str, float]
    closeness: dict[str, float]


def require_promises(study: Study, roster: _Columns, table: pa.Table) -> Reached:
    """Raise ``GuaranteeBroken`` unless the table keeps the study's k, l and t; else say what it reaches."""
    reached = measured(study.privacy, roster.columns, table)
    wanted = study.privacy
    faults = [f"k is {reached.k}, promised {wanted.k}"] if reached.k < wanted.k else []
    if wanted.l is not None:
        low = {name: value for name, value in reached.diversity.items() if value < wanted.l - 1e-9}
        faults += [f"l of '{name}' is {value:.3g}, promised {wanted.l}" for name, value in low.items()]
    if wanted.t is not None:
        far = {name: value for name, value in reached.closeness.items() if value > wanted.t + 1e-9}
        faults += [f"t of '{name}' is {value:.3g}, promised {wanted.t}" for name, value in far.items()]
    if faults:
        raise GuaranteeBroken("the joined table breaks its promise: " + "; ".join(faults))
    return reached


def measured(privacy: Privacy, columns: tuple[PublishedColumn, ...], table: pa.Table) -> Reached:
    """k over every combination of quasi-identifiers (missing is a value), l and t of the classes they form."""
    quasi = [column.name for column in columns if column.role is Role.QUASI]
    classes = equivalence_classes(table, quasi)
    sensitive = [column for column in columns if column.role is Role.SENSITIVE]
    measure = entropy_diversity if privacy.diversity == "entropy" else distinct_diversity
    return Reached(
        smallest_class(classes),
        {one.name: float(measure(table[one.name], classes).min()) for one in sensitive},
        {
            one.name: float(closeness(table[one.name], classes, one.kind not in UNORDERED, one.levels).max())
            for one in sensitive
        },
    )
