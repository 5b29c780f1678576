"""A finished set-valued study, checked from its files alone: k^m, ledgers, signatures, and every holder's own part."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coordinator.sets import FORM, TABLE, SetRelease, parquet_bytes, released, set_endorsement
from coordinator.transcripts import name_of
from federated_anon.errors import FederatedAnonError, MessageRefused, VerificationFailed
from federated_anon.ledger import Entry, bytes_sent, verified_entries
from federated_anon.messages import Step, decode
from federated_anon.messages.payloads import REPLIES
from federated_anon.messages.set_payloads import Sets
from federated_anon.setvalued.schema import to_json
from federated_anon.study import Study, load_study

FILES = (FORM, TABLE, "report.json", "study.toml", "ledger", "transcript")
STEPS = {
    "people": (Step.ENROL, Step.GATHER, Step.DISASSOCIATE),
    "items": (Step.ENROL, Step.ALIGN, Step.GATHER, Step.DISASSOCIATE),
}


@dataclass(frozen=True, slots=True)
class SetStudyAudit:
    """What was found in order: the promise, and per holder its identity, entries and bytes."""

    study: str
    people: int
    clusters: int
    smallest: int
    k: int
    m: int
    table_records: int
    identities: Mapping[str, str]
    entries: Mapping[str, int]
    bytes_sent: Mapping[str, int]


def is_set_study(folder: Path) -> bool:
    """Whether a folder says that it holds a set-valued study."""
    try:
        return load_study(folder / "study.toml").kind == "set-valued"
    except FederatedAnonError:
        return False


def audited_set_study(folder: Path, pins: Mapping[str, str] | None = None) -> SetStudyAudit:
    """Check a run folder; raises ``VerificationFailed`` that says what does not fit.

    The release is put together once more from the replies that the holders signed, each verified alone and all
    together; it must be the file for publication, byte by byte. ``pins`` are identities known from elsewhere.
    """
    missing = [name for name in FILES if not (folder / name).exists()]
    if missing:
        raise VerificationFailed(f"'{folder}' is not a whole run: it has no {', '.join(missing)}")
    study, report = _opened(folder)
    identities = _identities(study, report, pins or {})
    seal = set_endorsement(study.digest, _bytes(folder / FORM), report).hex()
    ledgers = {name: _ledger(folder, name, study, identities[name], seal) for name in study.holders}
    parts = {name: _signed(folder, name, ledgers[name]) for name in study.holders}
    try:
        release = released(study, parts)
    except VerificationFailed:
        raise
    except FederatedAnonError as error:
        raise VerificationFailed(str(error)) from None
    _require_files(folder, release)
    _require_told(report, release, parts)
    sizes = [cluster.size for cluster in release.form.clusters]
    return SetStudyAudit(
        study.digest,
        release.form.people,
        len(sizes),
        min(sizes),
        release.form.k,
        release.form.m,
        len(release.drawn),
        identities,
        {name: len(entries) for name, entries in ledgers.items()},
        {name: bytes_sent(entries) for name, entries in ledgers.items()},
    )


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise VerificationFailed(f"'{path}' cannot be read: {error.strerror}") from None


def _opened(folder: Path) -> tuple[Study, dict[str, Any]]:
    """Study and report, in the very bytes they are written in; no strange file lies beside them."""
    try:
        study = load_study(folder / "study.toml").study
        report = json.loads(_bytes(folder / "report.json"))
    except VerificationFailed:
        raise
    except FederatedAnonError as error:
        raise VerificationFailed(str(error)) from None
    except ValueError:
        raise VerificationFailed("report.json is not JSON") from None
    if not isinstance(report, dict) or report.get("study") != study.digest:
        raise VerificationFailed("report.json is of another study")
    if _bytes(folder / "report.json").decode() != json.dumps(report, indent=2, sort_keys=True) + "\n":
        raise VerificationFailed("report.json is not as it was written")
    if _bytes(folder / "study.toml").decode(errors="replace") != study.to_toml():
        raise VerificationFailed("study.toml is not as it was written")
    known = {FORM, TABLE, "report.json", "report.html", "study.toml"}
    known |= {f"ledger/{name}.jsonl" for name in study.holders}
    known |= {f"transcript/{name_of(Step.DISASSOCIATE, 0, name)}" for name in study.holders}
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    if strange := sorted(found - known):
        raise VerificationFailed(f"files that are not part of a run: {', '.join(strange)}")
    return study, report


def _identities(study: Study, report: Mapping[str, Any], pins: Mapping[str, str]) -> dict[str, str]:
    try:
        named = {name: str(report["holders"][name]["identity"]) for name in study.holders}
        _ = [bytes.fromhex(key) for key in named.values()]
    except (KeyError, TypeError, ValueError):
        raise VerificationFailed("the report does not name the identity of every holder") from None
    if wrong := [name for name, key in pins.items() if named.get(name) != key]:
        raise VerificationFailed(f"not the pinned identity: {', '.join(sorted(wrong))}")
    return named


def _ledger(folder: Path, holder: str, study: Study, identity: str, seal: str) -> list[Entry]:
    lines = _bytes(folder / "ledger" / f"{holder}.jsonl").decode(errors="replace").removesuffix("\n").split("\n")
    entries = verified_entries(lines, study.digest, holder, bytes.fromhex(identity))
    split = study.sets.split if study.sets else "people"
    if missing := set(STEPS[split]) - {entry["step"] for entry in entries if entry["sent"]}:
        raise VerificationFailed(f"ledger of '{holder}': no entry for {', '.join(sorted(missing))}")
    if entries[-1]["note"] != f"endorsed {seal}":
        raise VerificationFailed(f"ledger of '{holder}': release and report are not what this holder signed")
    return entries


def _signed(folder: Path, holder: str, entries: Sequence[Entry]) -> Sets:
    """The holder's own part, as it signed it."""
    path = folder / "transcript" / name_of(Step.DISASSOCIATE, 0, holder)
    content = _bytes(path)
    hashes = {e["reply"] for e in entries if e["sent"] and e["step"] == Step.DISASSOCIATE}
    if hashlib.sha256(content).hexdigest() not in hashes:
        raise VerificationFailed(f"transcript: '{path.name}' is not what '{holder}' signed")
    try:
        payload = decode(content, REPLIES).payload
    except MessageRefused:
        raise VerificationFailed(f"transcript: '{path.name}' cannot be read") from None
    if not isinstance(payload, Sets):
        raise VerificationFailed(f"transcript: '{path.name}' is another reply")
    return payload


def _require_files(folder: Path, release: SetRelease) -> None:
    if _bytes(folder / FORM) != to_json(release.form):
        raise VerificationFailed(f"{FORM} is not what the holders' parts make")
    if _bytes(folder / TABLE) != parquet_bytes(release.table):
        raise VerificationFailed(f"{TABLE} is not the table that the study's seed draws from the form")


def _require_told(report: Mapping[str, Any], release: SetRelease, parts: Mapping[str, Sets]) -> None:
    form = release.form
    told = {
        "people": form.people,
        "clusters": len(form.clusters),
        "occurrences": sum(part.occurrences for part in parts.values()),
        "smallest_cluster": min(cluster.size for cluster in form.clusters),
        "reassociated_records": len(release.drawn),
        "k": form.k,
        "m": form.m,
    }
    if wrong := [name for name, value in told.items() if report.get(name) != value]:
        raise VerificationFailed(f"the report tells something else than the release: {', '.join(wrong)}")
