"""What can be checked before a study runs: settings, keys, data, ledger, pins, and policies against the study."""

from __future__ import annotations

import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from federated_anon.errors import FederatedAnonError, SettingsRefused, StorageFailed
from federated_anon.findings import Finding
from federated_anon.folders import reason
from federated_anon.ledger import released_partitions
from federated_anon.policy import require_permitted
from federated_anon.study import Study, StudyFile
from nodes.block import PUBLISHED, read_records
from nodes.guard import keyed_version
from nodes.service_doctor import examine_service
from nodes.settings import HolderSettings, load_settings

PROBE = bytes(64 * 2**10)
"""What a ledger needs room for, at least."""


def examine_study(file: StudyFile, base: Path) -> list[Finding]:
    """Everything that can be said of a study and of those of its holders whose settings lie on this machine."""
    study = file.study
    findings = [Finding(True, "study", "file", f"{len(study.holders)} holders, k = {study.privacy.k}")]
    findings.append(Finding(True, "study", "digest", study.digest))
    named = {name: base / place.settings for name, place in file.deployment.items() if place.settings}
    here = {name: path for name, path in named.items() if path.exists()}
    settings, _ = load_all({name: str(path) for name, path in here.items()})
    for name in study.holders:
        if name in here:
            findings += examine_holder(here[name], study, settings, name)
        else:
            findings.append(_absent(name, file))
    return [*findings, *_shared_names(settings)]


def examine_holder(
    path: Path, study: Study | None = None, neighbours: Mapping[str, HolderSettings] | None = None, name: str = ""
) -> list[Finding]:
    """Everything that can be said of one holder from its own files, and from its neighbours on this machine."""
    try:
        settings = load_settings(path)
    except SettingsRefused as error:
        return [Finding(False, name or str(path), "settings", fault) for fault in error.faults]
    except FederatedAnonError as error:
        return [Finding(False, name or str(path), "settings", str(error))]
    if name and settings.name != name:
        return [Finding(False, name, "settings", f"[holder] name is '{settings.name}', the study says '{name}'")]
    findings = list(_own_findings(settings))
    return findings if study is None else [*findings, *agreement(settings, study, neighbours or {})]


def agreement(settings: HolderSettings, study: Study, neighbours: Mapping[str, HolderSettings]) -> list[Finding]:
    """Does the holder's policy allow the study, and are its partners pinned, as far as this machine can tell?"""
    return [_permitted(settings, study), _pins(settings, study, neighbours)]


def load_all(paths: Mapping[str, str]) -> tuple[dict[str, HolderSettings], list[str]]:
    """The settings of several holders, and every fault of those that cannot be used."""
    loaded, faults = {}, []
    for name, path in paths.items():
        try:
            found = load_settings(path)
        except SettingsRefused as error:
            faults += [f"{name}: {fault}" for fault in error.faults]
        except FederatedAnonError as error:
            faults.append(f"{name}: {error}")
        else:
            loaded[name] = found
            if found.name != name:
                faults.append(f"[deployment.{name}] the settings are of holder '{found.name}'")
    return loaded, faults


def _absent(name: str, file: StudyFile) -> Finding:
    if name not in file.deployment:
        return Finding(False, name, "place", f"the study's [deployment.{name}] does not say where this holder runs")
    place = file.deployment[name]
    told = f"a service at {place.address}" if place.address else f"'{place.settings}' is not on this machine"
    return Finding(True, name, "place", f"{told}: run doctor there")


def _shared_names(settings: Mapping[str, HolderSettings]) -> Iterator[Finding]:
    """Columns that two holders bring under one name cannot stand in one table."""
    owners: dict[str, list[str]] = {}
    for name, own in settings.items():
        sent = [column.name for column in own.columns if column.role in PUBLISHED]
        for column_name in sent:
            if column_name not in own.policy.never_send:
                owners.setdefault(column_name, []).append(name)
    for column, who in owners.items():
        if len(who) > 1:
            text = f"{' and '.join(who)} both bring '{column}': rename or drop one"
            yield Finding(False, "study", "columns", text)


def _own_findings(settings: HolderSettings) -> Iterator[Finding]:
    name = settings.name
    yield Finding(True, name, "settings", f"{len(settings.columns)} columns declared")
    yield Finding(True, name, "identity", f"public key {settings.identity.public.hex()}")
    yield key_is_private(name, settings.identity_file)
    yield _data(settings)
    yield _tried(name, "ledger", lambda: _writable(settings.ledger))
    yield from examine_service(name, settings.service)


def _data(settings: HolderSettings) -> Finding:
    def look() -> str:
        records = read_records(settings)
        before = released_partitions(settings.ledger, keyed_version(settings, records.version), "partition")
        told = "; this version was released before: only the same groups can leave again" if before else ""
        return f"{len(records.ids)} rows, ids unique, all columns as declared{told}"

    return _tried(settings.name, "data", look)


def _writable(folder: Path) -> str:
    """Raise unless entries could be appended in ``folder``: the only sure way to know is to write."""
    place = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    try:
        with tempfile.TemporaryFile(dir=place) as probe:
            probe.write(PROBE)
            probe.flush()
    except OSError as error:
        raise StorageFailed(f"'{folder}' cannot be written: {reason(error)}") from None
    return "can be written"


def _permitted(settings: HolderSettings, study: Study) -> Finding:
    def look() -> str:
        columns = [column for column in settings.columns if column.name not in settings.policy.never_send]
        require_permitted(settings.policy, study, columns)
        return "allows this study"

    return _tried(settings.name, "policy", look)


def _pins(settings: HolderSettings, study: Study, neighbours: Mapping[str, HolderSettings]) -> Finding:
    name, subject = settings.name, "partners"
    if name not in study.holders:
        return Finding(False, name, subject, f"'{name}' is not a holder of the study: {', '.join(study.holders)}")
    partners = [partner for partner in study.holders if partner != name]
    absent = [partner for partner in partners if partner not in settings.partners]
    wrong = [
        partner
        for partner in partners
        if partner in neighbours and settings.partners.get(partner, b"") != neighbours[partner].identity.public
    ]
    if absent:
        return Finding(False, name, subject, f"pin the public key of: {', '.join(absent)} (under [partners])")
    if wrong:
        told = ", ".join(f'{partner} = "{neighbours[partner].identity.public.hex()}"' for partner in wrong)
        return Finding(False, name, subject, f"another key is pinned than its owner has here: {told}")
    return Finding(True, name, subject, "every partner's key is pinned")


def _tried(holder: str, subject: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(True, holder, subject, look())
    except FederatedAnonError as error:
        return Finding(False, holder, subject, str(error))


def key_is_private(holder: str, path: Path) -> Finding:
    """Only its owner may read an identity key."""
    mode = stat.S_IMODE(path.stat().st_mode)
    fine = not mode & 0o077
    text = "readable by its owner alone" if fine else f"mode {mode:o} lets others read it: chmod 600 {path}"
    return Finding(fine, holder, "key file", text)
