"""Ways in: a coordinator that leads a holder honestly up to some step, and says what it likes from there on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from coordinator.alignment import matched
from federated_anon.columns import Column, Kind, Role
from federated_anon.messages import Step
from federated_anon.messages import payloads as p
from federated_anon.messages.codec import encode_payload
from federated_anon.study import Study
from nodes.holder import DataHolder
from tests.simulator import LyingCoordinator, make_settings

NONE = np.zeros(0, dtype=np.int32)


def number_table(values: np.ndarray, name: str = "income", **more: Any) -> tuple[pa.Table, tuple[Column, ...]]:
    """One quasi-identifier of numbers per person, and further columns as (role, kind, values)."""
    ids = [f"Person {i:05d}" for i in range(len(values))]
    table = pa.table({"id": ids, name: values, **{key: given for key, (_, _, given) in more.items()}})
    extra = tuple(Column(key, role, kind) for key, (role, kind, _) in more.items())
    return table, (Column("id", Role.KEY, Kind.TEXT), Column(name, Role.QUASI, Kind.NUMBER), *extra)


def make_holder(
    folder: Path, name: str, made: tuple[pa.Table, Sequence[Column]], holders: Sequence[str], **policy: Any
) -> DataHolder:
    """A holder over a table made by ``number_table``."""
    return DataHolder(make_settings(folder, name, made[0], made[1], holders, **policy))


def aligned_liars(study: Study, holders: dict[str, DataHolder], first: int = 0) -> dict[str, LyingCoordinator]:
    """Every holder led honestly through enrolment, keys and alignment, with a liar at each door."""
    liars = {name: LyingCoordinator(one, study, 10_000 + first) for name, one in holders.items()}
    joined = {name: liar.ask(Step.ENROL, p.Enrol(study.text)) for name, liar in liars.items()}
    roster = [joined[name] for name in study.holders]
    share = p.Share(
        study.holders,
        tuple(one.identity for one in roster),
        tuple(one.agreement for one in roster),
        tuple(one.signature for one in roster),
    )
    wrapped = {name: liar.ask(Step.SHARE, share).wrapped for name, liar in liars.items()}[study.holders[0]]
    for liar, key in zip((liars[name] for name in study.holders), wrapped, strict=True):
        liar.pseudonyms = liar.ask(Step.ALIGN, p.Align(key)).pseudonyms  # type: ignore[attr-defined]
    return liars


def positions_of(liars: dict[str, Any]) -> dict[str, np.ndarray]:
    """The honest positions of the common people."""
    return dict(matched({name: liar.pseudonyms for name, liar in liars.items()}).positions)


def code_of(cells: np.ndarray, prototypes: np.ndarray, coefficients: Any = None, strength: Any = None) -> bytes:
    """A partner's code as a coordinator may invent it."""
    return encode_payload(
        p.Coded(
            cells.astype(np.int32),
            np.asarray(prototypes, dtype=float),
            np.zeros((0, 0)) if coefficients is None else coefficients,
            np.zeros(0, dtype=np.float32) if strength is None else strength,
        )
    )


def in_pseudonym_order(holder: DataHolder, values: np.ndarray) -> np.ndarray:
    """The truth, for judging an attack: the holder's values in the order in which the coordinator sees people."""
    from nodes.alignment import People

    return values[holder._recall(People).rows]
