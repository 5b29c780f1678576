"""A set-valued study as a course of steps; the coordinator sees finished clusters only, and verifies them again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from coordinator.alignment import Overlap
from coordinator.assembly import Roster
from coordinator.course import Ask, Course, everyone
from federated_anon.errors import DataRefused, GuaranteeBroken, MessageRefused
from federated_anon.messages import Step
from federated_anon.messages import set_payloads as p
from federated_anon.messages.payloads import Close, Enrol, Enrolled
from federated_anon.setvalued import Disassociated, Transactions, reassociate, require_disassociated
from federated_anon.setvalued.formats import to_lists
from federated_anon.setvalued.nested import NOBODY, SetTree
from federated_anon.setvalued.parties import chunk_by_chunk, side_by_side
from federated_anon.setvalued.schema import from_json, to_json
from federated_anon.study import SetSettings, Study

FORM, TABLE = "disassociated.json", "reassociated.parquet"
NONE = np.zeros(0, dtype=np.int32)
Align = Callable[[Study, Roster], Course[Overlap]]


@dataclass(frozen=True, slots=True)
class SetRelease:
    """The joint disassociated form, verified, and the data set that the study's seed draws from it."""

    study: Study
    form: Disassociated
    drawn: Transactions

    @property
    def table(self) -> pa.Table:
        """The re-associated data set: one list of items per record."""
        return pa.table({"items": to_lists(self.drawn)})

    def files(self) -> dict[str, bytes]:
        """What is published, by file name."""
        return {FORM: to_json(self.form), TABLE: parquet_bytes(self.table)}

    def endorsement(self, report: Mapping[str, Any]) -> bytes:
        """What every holder signs: SHA-256 over study, form and report; the drawn table follows from the form."""
        return set_endorsement(self.study.digest, to_json(self.form), report)


@dataclass(frozen=True, slots=True)
class SetOutcome:
    """A finished set-valued study."""

    release: SetRelease
    report: dict[str, Any]
    ledgers: Mapping[str, tuple[str, ...]]
    transcript: Mapping[str, bytes]


def parquet_bytes(table: pa.Table) -> bytes:
    """A table as Parquet."""
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def set_endorsement(study: str, form: bytes, report: Mapping[str, Any]) -> bytes:
    """SHA-256 over the study's digest, the form's file and the report's canonical JSON."""
    digest = hashlib.sha256(study.encode())
    digest.update(hashlib.sha256(form).digest())
    digest.update(json.dumps(report, sort_keys=True).encode())
    return digest.digest()


def conduct_sets(study: Study, aligned: Align) -> Course[SetOutcome]:
    """A whole set-valued study; ``aligned`` finds the people that all holders have."""
    asked = settings_of(study)
    replies = yield Ask(Step.ENROL, everyone(study, Enrol(study.text)))
    roster = _roster(study, replies)
    if asked.split == "items":
        overlap = yield from aligned(study, roster)
        gathered = yield Ask(Step.GATHER, {name: p.Gather(overlap.positions[name]) for name in study.holders})
        yield from grown(study, overlap.records)
    else:
        gathered = yield Ask(Step.GATHER, everyone(study, p.Gather(NONE)))
    parts = yield Ask(Step.DISASSOCIATE, everyone(study, p.Disassociate(0)), news=_news(gathered))
    release = released(study, parts)
    report = set_report(study, release, roster.identities, parts, gathered)
    endings = yield Ask(Step.CLOSE, everyone(study, Close(release.endorsement(report))))
    return SetOutcome(release, report, {name: reply.ledger for name, reply in endings.items()}, {})


def settings_of(study: Study) -> SetSettings:
    """How the study's sets are disassociated."""
    return study.sets or SetSettings()


def _roster(study: Study, replies: Mapping[str, Enrolled]) -> Roster:
    ordered = [replies[name] for name in study.holders]
    return Roster(
        tuple(reply.identity for reply in ordered),
        tuple(reply.agreement for reply in ordered),
        tuple(reply.signature for reply in ordered),
        (),
    )


def _news(gathered: Mapping[str, p.Gathered]) -> tuple[str, ...]:
    small = [name for name, reply in gathered.items() if not reply.enough]
    return tuple(f"'{name}' has fewer than k people: it leaves, and sends nothing of them" for name in small)


def grown(study: Study, records: int) -> Course[SetTree]:
    """The joint tree: per round, every open node is split by the holder whose best item is the most frequent."""
    tree = SetTree.whole(records, study.privacy.k, settings_of(study).delta)
    number, winners = 0, NONE
    branches: tuple[bytes, ...] = ()
    signatures: tuple[bytes, ...] = ()
    while opened := tree.open_nodes:
        request = p.CountItems(number, winners, branches, signatures)
        news = (f"round {number}: {len(opened)} nodes are open",) if number % 20 == 0 else ()
        counts = yield Ask(Step.COUNT, everyone(study, request), news)
        table = np.stack([_fitting(name, counts[name].supports, len(opened)) for name in study.holders])
        winners = np.where(table.max(axis=0) > 0, table.argmax(axis=0), NOBODY).astype(np.int32)
        asks = {
            name: p.Branch(
                number, np.array(opened, np.int32)[winners == place], _bounds(table, place)[winners == place]
            )
            for place, name in enumerate(study.holders)
            if (winners == place).any()
        }
        told: Mapping[str, p.Branched] = (yield Ask(Step.BRANCH, asks)) if asks else {}
        branches = tuple(told[name].branches if name in told else b"" for name in study.holders)
        signatures = tuple(told[name].signature if name in told else b"" for name in study.holders)
        parts = {place: np.frombuffer(part, np.uint8) for place, part in enumerate(branches) if part}
        tree = tree.split(winners.tolist(), parts)
        number += 1
    if number:  # Every holder applies the last splits too; nothing is open, so nothing is told.
        yield Ask(Step.COUNT, everyone(study, p.CountItems(number, winners, branches, signatures)))
    return tree


def _bounds(table: np.ndarray, place: int) -> np.ndarray:
    """The best of all others, per node."""
    others = np.delete(table, place, axis=0)
    return (others.max(axis=0) if len(others) else np.zeros(table.shape[1])).astype(np.int32)


def _fitting(name: str, supports: np.ndarray, count: int) -> np.ndarray:
    if len(supports) != count or (len(supports) and supports.min() < 0):
        raise MessageRefused(f"'{name}' told {len(supports)} counts for {count} open nodes")
    return supports


def released(study: Study, parts: Mapping[str, p.Sets]) -> SetRelease:
    """The holders' forms as one: each is verified alone, and their union again, by code that no holder ran for us."""
    forms = {name: _opened(study, name, parts[name].form) for name in study.holders}
    full = {name: form for name, form in forms.items() if form.clusters}
    if not full:
        raise DataRefused(f"no holder has k = {study.privacy.k} people: there is nothing to publish")
    items = settings_of(study).split == "items"
    form = chunk_by_chunk(forms) if items else side_by_side(list(full.values()))
    require_disassociated(form)
    return SetRelease(study, form, reassociate(form, study.seed))


def _opened(study: Study, name: str, content: bytes) -> Disassociated:
    try:
        form = from_json(content)
    except DataRefused as error:
        raise MessageRefused(f"the form of '{name}' cannot be read: {error}") from None
    if (form.k, form.m) != (study.privacy.k, settings_of(study).m):
        raise MessageRefused(f"the form of '{name}' promises another k or m than the study")
    try:
        require_disassociated(form)
    except GuaranteeBroken as error:
        raise GuaranteeBroken(f"the form of '{name}': {error}") from None
    return form


def set_report(
    study: Study,
    release: SetRelease,
    identities: tuple[bytes, ...],
    parts: Mapping[str, p.Sets],
    gathered: Mapping[str, p.Gathered],
) -> dict[str, Any]:
    """Everything the report says, as plain data; the same study on the same data gives the same bytes."""
    asked, form = settings_of(study), release.form
    occurrences = sum(part.occurrences for part in parts.values())
    sizes = [cluster.size for cluster in form.clusters]
    return {
        "kind": "set-valued",
        "study": study.digest,
        "name": study.name,
        "k": study.privacy.k,
        "m": asked.m,
        "delta": asked.delta,
        "min_size": asked.least(study.privacy.k),
        "split": asked.split,
        "tree": asked.tree,
        "people": form.people,
        "clusters": len(sizes),
        "smallest_cluster": min(sizes),
        "occurrences": occurrences,
        "items_kept_percent": 100.0 * form.kept / occurrences if occurrences else 100.0,
        "reassociated_records": len(release.drawn),
        "caveats": _caveats(asked, gathered),
        "holders": {
            name: {"identity": key.hex(), "takes_part": gathered[name].enough, "occurrences": parts[name].occurrences}
            for name, key in zip(study.holders, identities, strict=True)
        },
        "seed": study.seed,
        "software": version("federated-anon"),
    }


def _caveats(asked: SetSettings, gathered: Mapping[str, p.Gathered]) -> list[str]:
    told = ["The re-associated table is not itself k^m-anonymous: what falls together there may do so by chance."]
    if asked.tree == "joint":
        told.append(
            "Joint tree: while it grew, holders and coordinator learned, for nodes of at least k pseudonymous people, "
            "that all of a node share an item of one holder, or that none does."
        )
    small = [name for name, reply in gathered.items() if not reply.enough]
    return [*told, *(f"'{name}' had fewer than k people: nothing of them is published." for name in small)]
