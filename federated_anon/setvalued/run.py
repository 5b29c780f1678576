"""The folder of a run on set-valued data: written whole or not at all, and checked from its files alone.

``manifest.json`` says what kind of run it is, how it was made, and the digest of every file for publication. What
needs the original to be known is in ``private/``, which must not be published; checking does not need it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from federated_anon.errors import DataRefused, FederatedAnonError, GuaranteeBroken, StorageFailed, VerificationFailed
from federated_anon.folders import partial_folder, reason
from federated_anon.report.page import without_pictures
from federated_anon.report.set_page import private_page, set_page
from federated_anon.setvalued.chunks import Disassociated
from federated_anon.setvalued.formats import Layout, read_with_layout, write_transactions
from federated_anon.setvalued.reassociation import Mode, parts, reassociate
from federated_anon.setvalued.report import private_report, public_report
from federated_anon.setvalued.safety import require_covered
from federated_anon.setvalued.schema import from_json, to_json
from federated_anon.setvalued.transactions import Transactions
from federated_anon.setvalued.verifier import require_disassociated, require_km_parts

KIND = "disassociated"
VERSION = 1
MANIFEST, FORM, REPORT, PRIVATE = "manifest.json", "disassociated.json", "report.json", "private/measures.json"
PAGE, PRIVATE_PAGE = "report.html", "private/report.html"


@dataclass(frozen=True, slots=True)
class SetRun:
    """A finished disassociation with what was asked for beside it."""

    form: Disassociated
    table: Transactions | None
    settings: Mapping[str, Any]
    public: Mapping[str, Any]
    private: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SetAudit:
    """What a check of a run's files found in order."""

    people: int
    clusters: int
    smallest: int
    k: int
    m: int
    table_records: int | None
    is_strict: bool
    is_covered: bool


def finished(
    original: Transactions, form: Disassociated, settings: Mapping[str, Any], mode: Mode | None, seed: int
) -> SetRun:
    """The form, the re-associated table if a ``mode`` is given, and the reports; a strict table is checked."""
    table = reassociate(form, seed, mode) if mode else None
    if table is not None and not len(table):
        raise GuaranteeBroken("every item is rarer than k in its cluster: nothing is left to re-associate")
    if table is not None and mode == "strict":
        require_strict(form, seed)
    return SetRun(form, table, settings, public_report(form, table), private_report(original, form, table))


def require_strict(form: Disassociated, seed: int) -> None:
    """Raise ``GuaranteeBroken`` unless the strict table is k^m-anonymous in every cluster."""
    require_km_parts(parts(form, seed, "strict"), form.k, form.m)


def write_set_run(place: Path, run: SetRun, layout: Layout) -> None:
    """Form, table, reports and manifest, all or nothing; the table has the format of the input."""
    with partial_folder(place) as folder:
        (folder / FORM).write_bytes(to_json(run.form))
        (folder / REPORT).write_text(_text({"kind": KIND, "settings": run.settings, **run.public}))
        told = json.loads((folder / REPORT).read_text())
        (folder / PAGE).write_text(set_page(told), encoding="utf-8")
        names = [FORM, REPORT, PAGE]
        if run.table is not None:
            names.append(f"reassociated{layout.suffix or '.txt'}")
            write_transactions(run.table, folder / names[-1], replace(layout, suffix=layout.suffix or ".txt"))
        (folder / PRIVATE).parent.mkdir(mode=0o700)
        (folder / PRIVATE).write_text(_text(run.private))
        (folder / PRIVATE_PAGE).write_text(private_page(run.private), encoding="utf-8")
        digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
        columns = {"person": layout.person, "item": layout.item, "column": layout.column}
        manifest = {"kind": KIND, "version": VERSION, "settings": run.settings, "publish": digests, "columns": columns}
        (folder / MANIFEST).write_text(_text(manifest))


def is_set_run(folder: Path) -> bool:
    """Whether a folder says that it holds a run on set-valued data."""
    try:
        return bool(json.loads((folder / MANIFEST).read_text()).get("kind") == KIND)
    except (OSError, ValueError, AttributeError):
        return False


def audited_sets(folder: Path) -> SetAudit:
    """Check a run from its files for publication; raises ``VerificationFailed`` that says what does not fit."""
    try:
        manifest = _manifest(folder)
        form = from_json(_bytes(folder, FORM, manifest["publish"]))
        told = json.loads(_bytes(folder, REPORT, manifest["publish"]))
        require_disassociated(form)
        settings = manifest["settings"]
        if settings["suppress"]:
            require_covered(form)
        table = _table(folder, manifest)
        if table is not None:
            _require_drawn(table, form, settings)
        if (settings["k"], settings["m"]) != (form.k, form.m):
            raise DataRefused("the manifest and the form name another k or m")
        if told != {"kind": KIND, "settings": settings, **json.loads(_text(public_report(form, table)))}:
            raise DataRefused(f"{REPORT} does not tell what the other files hold")
        if without_pictures(_bytes(folder, PAGE, manifest["publish"]).decode()) != without_pictures(set_page(told)):
            raise DataRefused(f"{PAGE} does not tell what {REPORT} holds")
    except VerificationFailed:
        raise
    except FederatedAnonError as error:
        raise VerificationFailed(str(error)) from None
    except (KeyError, TypeError, ValueError, AttributeError):
        raise VerificationFailed(f"{MANIFEST} or {REPORT} is not as this program writes it") from None
    smallest = min((cluster.size for cluster in form.clusters), default=0)
    records = None if table is None else len(table)
    is_strict, is_covered = settings["reassociate"] == "strict", bool(settings["suppress"])
    return SetAudit(form.people, len(form.clusters), smallest, form.k, form.m, records, is_strict, is_covered)


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
    except OSError as error:
        raise StorageFailed(f"'{folder / MANIFEST}' cannot be read: {reason(error)}") from None
    if manifest["kind"] != KIND or manifest["version"] != VERSION:
        raise VerificationFailed(f"{MANIFEST} is of another kind or version")
    return manifest


def _bytes(folder: Path, name: str, digests: Mapping[str, str]) -> bytes:
    try:
        content = (folder / name).read_bytes()
    except OSError as error:
        raise VerificationFailed(f"'{name}' cannot be read: {reason(error)}") from None
    if hashlib.sha256(content).hexdigest() != digests[name]:
        raise VerificationFailed(f"'{name}' is not as it was written")
    return content


def _table(folder: Path, manifest: Mapping[str, Any]) -> Transactions | None:
    """The re-associated table, read as any other file of its format."""
    names = [name for name in manifest["publish"] if name not in (FORM, REPORT, PAGE)]
    if len(names) != (manifest["settings"]["reassociate"] is not None) or any(Path(n).name != n for n in names):
        raise VerificationFailed(f"{MANIFEST} does not list the files that its settings ask for")
    if not names:
        return None
    _bytes(folder, names[0], manifest["publish"])
    columns = {name: text or None for name, text in manifest["columns"].items()}
    return read_with_layout(folder / names[0], **columns)[0]


def _require_drawn(table: Transactions, form: Disassociated, settings: Mapping[str, Any]) -> None:
    """The table must be the one that its seed draws from the form; a strict one must keep its own promise too."""
    drawn = reassociate(form, settings["seed"], settings["reassociate"])
    if _named(drawn) != _named(table):
        raise VerificationFailed("the re-associated table is not the one that its seed draws from the form")
    if settings["reassociate"] == "strict":
        require_strict(form, settings["seed"])


def _named(table: Transactions) -> list[frozenset[str]]:
    return [frozenset(table.names[item] for item in record) for record in table]


def _text(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
