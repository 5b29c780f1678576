"""A finished run, checked from its files alone: promises, ledgers, signatures, and that nothing was touched since."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from coordinator.assembly import Published, csv_bytes, endorsement
from coordinator.transcripts import audit_transcript
from coordinator.verification import Reached, require_promises
from federated_anon.columns import Kind, Role
from federated_anon.errors import FederatedAnonError, GuaranteeBroken, StorageFailed, VerificationFailed
from federated_anon.ledger import Entry, bytes_sent, verified_entries
from federated_anon.messages import Step
from federated_anon.report.page import without_pictures
from federated_anon.report.run_page import DATA, EVALUATED, PAGE, SIMULATED, folder_page
from federated_anon.study import Study, load_study

FILES = ("release.parquet", "release.csv", "report.json", PAGE, "study.toml", "ledger")
STEPS = (Step.ENROL, Step.ALIGN, Step.CONSTRAIN, Step.RELEASE, Step.EVALUATE)
EXPOSED = {"open": (Step.MAP, Step.CODE), "sealed": (Step.SEAT, Step.PROPOSE)}


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found in order: the promises kept, and per holder its identity, entries and bytes.

    ``view_linkage`` is the expected share of people linked from the coordinator's whole view: proved from the
    transcript to be at most 1/k in sealed exposure, as the report measured it in open exposure.
    """

    study: str
    records: int
    reached: Reached
    view_linkage: float
    identities: Mapping[str, str]
    entries: Mapping[str, int]
    bytes_sent: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Run:
    study: Study
    table: pa.Table
    report: dict[str, Any]
    columns: tuple[Published, ...]


def audited(folder: Path, pins: Mapping[str, str] | None = None) -> Audit:
    """Check a run folder; raises ``VerificationFailed`` that says what does not fit.

    ``pins`` are identities (hex) known from elsewhere: without them the run is checked against the keys it names.
    """
    _require_run(folder)
    run = _opened(folder)
    if csv_bytes(run.table) != _bytes(folder / "release.csv"):
        raise VerificationFailed("release.csv and release.parquet do not hold the same table")
    _require_as_written(folder, run)
    try:
        reached = require_promises(run.study, run, run.table)
    except GuaranteeBroken as error:
        raise VerificationFailed(str(error)) from None
    _require_told(run.report, reached, run.table)
    identities = _identities(run, pins or {})
    seal = endorsement(run.study.digest, run.table, run.report).hex()
    ledgers = {name: _ledger(folder, name, run.study, identities[name], seal) for name in run.study.holders}
    _require_page(folder, run)
    return Audit(
        run.study.digest,
        run.table.num_rows,
        reached,
        _view(folder, run, ledgers),
        identities,
        {name: len(entries) for name, entries in ledgers.items()},
        {name: bytes_sent(entries) for name, entries in ledgers.items()},
    )


def _require_run(folder: Path) -> None:
    """Raise unless ``folder`` has the files that every run has; all that are missing are named."""
    if not folder.is_dir():
        raise VerificationFailed(f"'{folder}' {'is not a folder' if folder.exists() else 'does not exist'}")
    missing = [name for name in FILES if not (folder / name).exists()]
    if missing:
        raise VerificationFailed(f"'{folder}' is not a run, or not a whole one: it has no {', '.join(missing)}")


def _opened(folder: Path) -> _Run:
    try:
        study = load_study(folder / "study.toml").study
        report = json.loads(_bytes(folder / "report.json"))
        table = pyarrow.parquet.read_table(folder / "release.parquet")
        columns = tuple(
            Published(c["name"], c["holder"], Role(c["role"]), Kind(c["kind"]), tuple(c["levels"]))
            for c in report["columns"]
        )
    except VerificationFailed:
        raise
    except FederatedAnonError as error:
        raise VerificationFailed(str(error)) from None
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise VerificationFailed(f"'{folder}' is not a readable run folder: {type(error).__name__}: {error}") from None
    if [column.name for column in columns] != table.column_names:
        raise VerificationFailed("the release does not hold the columns that the report names")
    return _Run(study, table, report, columns)


def _require_as_written(folder: Path, run: _Run) -> None:
    """Raise unless every file has the very bytes that a run is written in, and no other file lies among them."""
    ledgers = {f"ledger/{name}.jsonl" for name in run.study.holders}
    known = ledgers | {"release.parquet", "release.csv", "report.json", PAGE, SIMULATED, EVALUATED, "study.toml"}
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    if strange := sorted(name for name in found - known if not name.startswith("transcript/")):
        raise VerificationFailed(f"files that are not part of a run: {', '.join(strange)}")
    if _bytes(folder / "report.json").decode() != json.dumps(run.report, indent=2, sort_keys=True) + "\n":
        raise VerificationFailed("report.json is not as it was written")
    if _bytes(folder / "study.toml").decode() != run.study.to_toml():
        raise VerificationFailed("study.toml is not as it was written")
    if hashlib.sha256(_bytes(folder / "release.parquet")).hexdigest() != run.report.get("parquet_sha256"):
        raise VerificationFailed("release.parquet is not as it was written")


def _require_page(folder: Path, run: _Run) -> None:
    """Raise unless report.html is what its data give when drawn again.

    Pictures of another version of the drawing library differ in their bytes; then all but the pictures is compared.
    """
    found, told = _bytes(folder / PAGE).decode(errors="replace"), run.report.get("versions", {})
    try:
        pages = [folder_page(folder)]
        if (folder / EVALUATED).exists():  # An evaluation may have come after the page.
            pages.append(folder_page(folder, with_evaluation=False))
    except StorageFailed as error:
        raise VerificationFailed(str(error)) from None
    if any(told.get(name) != version(name) for name in ("jinja2", "matplotlib")):
        found, *pages = (without_pictures(text) for text in (found, *pages))
    if found not in pages:
        raise VerificationFailed(f"{PAGE} is not what {DATA} and the ledgers give; federated-anon report draws it anew")


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise VerificationFailed(f"'{path}' cannot be read: {error.strerror}") from None


def _require_told(report: Mapping[str, Any], reached: Reached, table: pa.Table) -> None:
    if report.get("k_reached") != reached.k or report.get("records") != table.num_rows:
        raise VerificationFailed("the report tells another k or another number of records than the release has")


def _identities(run: _Run, pins: Mapping[str, str]) -> dict[str, str]:
    try:
        named = {name: str(run.report["holders"][name]["identity"]) for name in run.study.holders}
        _ = [bytes.fromhex(key) for key in named.values()]
    except (KeyError, TypeError, ValueError):
        raise VerificationFailed("the report does not name the identity of every holder") from None
    wrong = [name for name, key in pins.items() if named.get(name) != key]
    if wrong:
        raise VerificationFailed(f"not the pinned identity: {', '.join(sorted(wrong))}")
    return named


def _view(folder: Path, run: _Run, ledgers: Mapping[str, list[Entry]]) -> float:
    if run.study.exposure == "open":
        return float(run.report["coordinator_view_linkage"])
    return 1 / audit_transcript(folder / "transcript", run.study, run.table.num_rows, ledgers)


def _ledger(folder: Path, holder: str, study: Study, identity: str, seal: str) -> list[Entry]:
    lines = _bytes(folder / "ledger" / f"{holder}.jsonl").decode(errors="replace").removesuffix("\n").split("\n")
    entries = verified_entries(lines, study.digest, holder, bytes.fromhex(identity))
    missing = {*STEPS, *EXPOSED[study.exposure]} - {entry["step"] for entry in entries if entry["sent"]}
    if missing:
        raise VerificationFailed(f"ledger of '{holder}': no entry for {', '.join(sorted(missing))}")
    if entries[-1]["note"] != f"endorsed {seal}":
        raise VerificationFailed(f"ledger of '{holder}': release and report are not what this holder signed")
    return entries
