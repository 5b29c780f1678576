"""Studies from Python: ``run`` with real holders, ``simulate`` with one table dealt to several.

Everything heavy is imported inside the functions: the two sides import this package, and Arrow, Ray and the
compiled parts take their time to load.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

if TYPE_CHECKING:
    import pyarrow as pa

    from coordinator.driver import Progress
    from coordinator.holders import Holders
    from coordinator.protocol import Outcome
    from coordinator.sets import SetOutcome
    from federated_anon.columns import Column
    from federated_anon.deal import People, Roles
    from federated_anon.study import Study, StudyFile

Runtime = Literal["ray", "in-process"]
Measure = Callable[["pa.Table", Mapping[str, Any]], dict[str, Any]]
RAY_MANNERS = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DISABLE_FAILURE_SIGNAL_HANDLER": "1"}
"""Read when Ray is first imported: it reports to nobody, and leaves signals to the program."""

TOLD = {
    "table": (
        *("records", "k", "k_reached", "groups", "method", "exposure", "information_loss_percent"),
        *("diversity_reached", "closeness_reached"),
    ),
    "set-valued": (
        *("kind", "people", "k", "m", "delta", "min_size", "split", "tree", "clusters", "smallest_cluster"),
        *("items_kept_percent", "reassociated_records"),
    ),
}
"""What a summary takes from the report, by the kind of study."""

COORDINATOR_KEY = "coordinator.secret"

RAY_ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""A cluster of this machine alone: with this switch Ray listens on loopback, on every system, and nowhere else."""


@dataclass(frozen=True, slots=True)
class Result:
    """A finished study: the release, the report's data, a one-line summary, and where it was written."""

    table: pa.Table
    report: Mapping[str, Any]
    summary: Mapping[str, Any]
    folder: Path | None


def run(
    study: StudyFile | Path | str,
    out: Path | str | None = None,
    *,
    base: Path | str | None = None,
    runtime: Runtime = "ray",
    address: str | None = None,
    timeout: float = 3600.0,
    checkpoints: Path | str | None = None,
    certificates: Path | str | None = None,
    listen: Callable[[Progress], None] | None = None,
    measure: Measure | None = None,
) -> Result:
    """Run a study with the holders that its ``[deployment]`` names; paths there are relative to ``base``.

    ``address`` joins an existing Ray cluster; without it Ray is started on this machine, for this study alone.
    Holders that serve at addresses of their own are reached with the coordinator's folder of ``certificates``.
    The rows are shuffled under the coordinator's own key, ``coordinator.secret`` beside ``base``, made if absent.
    ``measure`` adds what a simulation can tell of release and report, having the originals.
    """
    from federated_anon.errors import HolderRefused
    from federated_anon.folders import require_free
    from federated_anon.study import StudyFile, load_study

    started = time.perf_counter()
    file = study if isinstance(study, StudyFile) else load_study(study)
    home = Path(base) if base else Path() if isinstance(study, StudyFile) else Path(study).parent
    if out is not None:
        require_free(Path(out))
    if file.addresses:
        with remote_holders(file, certificates) as holders:
            outcome, received = conducted(file.study, holders, own_secret(home), timeout, checkpoints, listen)
        return finished(outcome, received, time.perf_counter() - started, out, file.alias, measure)
    paths = settings_paths(file, home)
    if address is None:
        require_ready(file, paths)
    try:
        with holders_of(file, paths, runtime, address) as holders:
            outcome, received = conducted(file.study, holders, own_secret(home), timeout, checkpoints, listen)
    except HolderRefused as error:
        if address is None:
            explain(error, paths, file.study)
        raise
    return finished(outcome, received, time.perf_counter() - started, out, file.alias, measure)


def simulate(
    table: pa.Table | Path | str,
    *,
    k: int = 5,
    holders: int = 3,
    quasi: Sequence[str] = ("*",),
    sensitive: Sequence[str] = (),
    keep: Sequence[str] = (),
    drop: Sequence[str] = (),
    key: str | None = None,
    wish: str | None = None,
    views: Sequence[Sequence[str]] = (),
    method: str = "best",
    exposure: str = "open",
    l: int | None = None,  # noqa: E741  (the literature's own name)
    t: float | None = None,
    seed: int = 0,
    out: Path | str | None = None,
    runtime: Runtime = "ray",
    listen: Callable[[Progress], None] | None = None,
    **settings: Any,
) -> Result:
    """Play a whole study on one table: its columns are dealt to ``holders`` by the seed, or as ``views`` says.

    ``'*'`` in one of the roles stands for every column not named otherwise. Identities are derived from the seed,
    so the same call gives the same bytes. Further ``settings`` are sections of the study file (``map``, ...).
    """
    from federated_anon.crypto.signing import Identity
    from federated_anon.deal import Roles
    from federated_anon.drafts import write_holder
    from federated_anon.folders import require_free, temporary_folder
    from federated_anon.report.measured import measured, sampled
    from nodes.source import read_table

    if out is not None:
        require_free(Path(out))
    given = read_table(table) if isinstance(table, Path | str) else table
    roles = Roles(tuple(quasi), tuple(sensitive), tuple(keep), tuple(drop), key, wish)
    content = {
        "name": "simulation",
        "method": method,
        "exposure": exposure,
        "seed": seed,
        "privacy": {"k": k, "l": l, "t": t, "personal": wish},
        **settings,
    }
    shares, study = planned(given, roles, holders, views, content)
    people = usable(given, roles, study, "the table" if given is table else f"'{table}'")
    with temporary_folder() as folder:
        for name, own in shares.items():
            write_holder(folder / name, name, people.table, own, study, study.seed)
        Identity.for_simulation(study.seed, "coordinator").save(folder / COORDINATOR_KEY)
        sample = sampled(people.table, study.seed)
        del given, people  # From here on the holders read their own files; a large table need not stay in memory.
        return run(study, out, base=folder, runtime=runtime, listen=listen, measure=partial(measured, sample))


def planned(
    table: pa.Table, roles: Roles, holders: int, views: Sequence[Sequence[str]], content: dict[str, Any]
) -> tuple[dict[str, tuple[Column, ...]], StudyFile]:
    """Who holds which columns, and the study; faults of columns and of settings come in one ``SettingsRefused``."""
    from federated_anon.deal import HOLDER, dealt, declared, keyed
    from federated_anon.study import study_file

    names = [HOLDER.format(number + 1) for number in range(len(views) or min(max(holders, 1), 65))]
    places = {name: {"settings": f"{name}/settings.toml"} for name in names}

    def deal() -> dict[str, tuple[Column, ...]]:
        return dealt(keyed(declared(table, roles)), holders, views, max(content["seed"], 0))

    def check() -> StudyFile:
        study = study_file({**content, "holders": names, "deployment": places}, "simulation")
        require_subject(study, roles)
        return study

    return all_or_faults(deal, check)


def all_or_faults(deal: Callable[[], Any], check: Callable[[], Any]) -> tuple[Any, Any]:
    """Both results, or the faults of both in one ``SettingsRefused``."""
    from federated_anon.errors import SettingsRefused

    results: list[Any] = []
    faults: list[str] = []
    for make in (deal, check):
        try:
            results.append(make())
        except SettingsRefused as error:
            faults += error.faults
    if faults:
        raise SettingsRefused("simulation", faults)
    return results[0], results[1]


def require_subject(study: StudyFile, roles: Roles) -> None:
    """Raise if l or t is promised and no column is sensitive: the promise would be empty."""
    from federated_anon.errors import SettingsRefused

    if (study.privacy.l or study.privacy.t) and not roles.sensitive:
        raise SettingsRefused("simulation", ["l and t are about sensitive columns: name at least one (--sensitive)"])


def usable(table: pa.Table, roles: Roles, study: StudyFile, what: str) -> People:
    """The people of the table, keyed, of the declared kinds, unique, and at least k."""
    from federated_anon.columns import Role
    from federated_anon.deal import declared, with_key
    from federated_anon.errors import DataRefused
    from nodes.conformity import conform
    from nodes.identity import normalise_ids, require_unique

    try:
        columns = declared(table, roles)
        people = with_key(conform(table, columns), columns)
        key = next(column.name for column in people.columns if column.role is Role.KEY)
        require_unique(normalise_ids(people.table[key]))
        if table.num_rows < study.privacy.k:
            raise DataRefused(f"k is {study.privacy.k}, the number of rows {table.num_rows}; lower k, or add rows")
    except DataRefused as error:
        raise DataRefused(f"{what}: {error}", error.code) from None
    return people


def conducted(
    study: Study,
    holders: Holders,
    secret: bytes,
    timeout: float,
    checkpoints: Path | str | None,
    listen: Callable[[Progress], None] | None,
) -> tuple[Outcome | SetOutcome, int]:
    """Drive the study; returns its outcome and the bytes that holders sent."""
    from coordinator.checkpoints import Checkpoints
    from coordinator.driver import Driver, silent

    kept = Checkpoints(Path(checkpoints), study.digest) if checkpoints else None
    driver = Driver(
        study,
        holders,
        secret=secret,
        listen=listen or silent,
        timeout=timeout,
        checkpoints=kept,
        first_sequence=int(time.time() * 1000),
    )
    outcome = driver.run()
    if kept:
        kept.remove()
    return outcome, sum(driver.bytes_received.values())


def own_secret(home: Path) -> bytes:
    """The coordinator's key in ``home``, made on first use: a study that runs again must give the same bytes."""
    from federated_anon.crypto.signing import Identity

    place = home / COORDINATOR_KEY
    if not place.exists():
        Identity.create().save(place)
    return Identity.load(place).secret


def finished(
    outcome: Outcome | SetOutcome,
    received: int,
    seconds: float,
    out: Path | str | None = None,
    alias: str = "",
    measure: Measure | None = None,
) -> Result:
    """Write the run folder, if one is wanted, and sum the study up; ``alias`` is the method's name as asked."""
    from coordinator.folder import write_run

    folder = None if out is None else Path(out)
    if folder is not None:
        write_run(folder, outcome, measure(outcome.release.table, outcome.report) if measure else None)
    report = outcome.report
    told = TOLD[report.get("kind", "table")]
    summary = {
        **{name: report[name] for name in told},
        **({} if "kind" in report else {"columns": outcome.release.table.num_columns}),
        "holders": len(outcome.release.study.holders),
        "seconds": round(seconds, 2),
        "bytes_sent": received,
        "run": str(folder) if folder else None,
        **({"method_asked": alias} if alias else {}),
    }
    return Result(outcome.release.table, report, summary, folder)


def settings_paths(file: StudyFile, base: Path) -> dict[str, str]:
    """Where each holder's settings lie; a holder without a place is refused."""
    from federated_anon.errors import SettingsRefused

    homeless = [name for name in file.holders if name not in file.deployment]
    if homeless:
        raise SettingsRefused("study", [f"[deployment] has no place for holder '{name}'" for name in homeless])
    return {name: str((base / file.deployment[name].settings).absolute()) for name in file.holders}


def require_ready(file: StudyFile, paths: Mapping[str, str]) -> None:
    """Raise before anything is started: settings with faults, then policies or pins that forbid the study."""
    from federated_anon.errors import PolicyRefused, SettingsRefused
    from nodes.doctor import agreement, load_all

    settings, faults = load_all(paths)
    if faults:
        raise SettingsRefused("holder settings", faults)
    findings = [f for own in settings.values() for f in agreement(own, file.study, settings)]
    if breaches := [finding for finding in findings if not finding.ok]:
        lines = "\n".join(f"  {breach.holder}, {breach.subject}: {breach.text}" for breach in breaches)
        raise PolicyRefused(f"holders refuse this study:\n{lines}")


def explain(error: Exception, paths: Mapping[str, str], study: Study) -> None:
    """Note beside a refusal what the holder's own files say, which is only right where they lie on this machine."""
    from federated_anon.errors import HolderRefused
    from nodes.doctor import examine_holder

    if isinstance(error, HolderRefused):
        for finding in examine_holder(Path(paths[error.holder]), study):
            if not finding.ok:
                error.add_note(f"{finding.holder}, {finding.subject}: {finding.text}")


@contextmanager
def remote_holders(file: StudyFile, certificates: Path | str | None) -> Iterator[Holders]:
    """Holders that serve in organisations of their own; the connections end with the study."""
    from coordinator.credentials import load_credentials
    from coordinator.remote import FlightHolders
    from federated_anon.errors import SettingsRefused

    faults = [f"[deployment] has no address of holder '{name}'" for name in file.holders if name not in file.addresses]
    if certificates is None:
        faults.append("holders have addresses: name the coordinator's certificate folder (--certificates)")
    if faults or certificates is None:
        raise SettingsRefused("study", faults)
    holders = FlightHolders(file.addresses, load_credentials(Path(certificates), file.addresses))
    try:
        yield holders
    finally:
        holders.close()


@contextmanager
def holders_of(file: StudyFile, paths: Mapping[str, str], runtime: Runtime, address: str | None) -> Iterator[Holders]:
    """The study's holders, started where the study says, and ended with it."""
    if runtime == "in-process":
        from coordinator.holders import InProcess
        from nodes.holder import DataHolder
        from nodes.settings import load_settings

        yield InProcess({name: DataHolder(load_settings(path)).answer for name, path in paths.items()})
        return
    for name, value in (RAY_MANNERS if address else RAY_MANNERS | RAY_ALONE).items():
        os.environ.setdefault(name, value)
    from coordinator.runtime import joined_cluster, own_cluster
    from federated_anon.som.parallel import allowed_threads

    with joined_cluster(address) if address else own_cluster(len(paths)):
        yield ray_holders(file, paths, None if address else allowed_threads())


def ray_holders(file: StudyFile, paths: Mapping[str, str], threads: int | None) -> Holders:
    """Holders as Ray actors, each on the node that its place names; ``threads`` of one study's own machine."""
    from coordinator.runtime import RayHolders
    from nodes.actor import HolderActor

    actors = {}
    for name, path in paths.items():
        resource = file.deployment[name].resource
        pinned = {"resources": {resource: 0.001}} if resource else {}
        known_as = f"{file.name}-{file.study.digest[:8]}-{name}"
        actors[name] = cast(Any, HolderActor).options(name=known_as, **pinned).remote(path, threads)
    return RayHolders(actors)
