"""Studies from Python: ``run`` with real holders, ``simulate`` with one table dealt to several.

The two sides are imported inside the functions: they import this package, and loading Ray takes its time.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import pyarrow as pa

from federated_anon.deal import Roles, dealt, declared, with_key
from federated_anon.drafts import write_holder
from federated_anon.sections import checked
from federated_anon.study import Study, StudyFile, load_study

if TYPE_CHECKING:
    from coordinator.driver import Progress
    from coordinator.holders import Holders
    from coordinator.protocol import Outcome

Runtime = Literal["ray", "in-process"]
NAMESPACE = "federated-anon"
OBJECT_STORE = 512 * 2**20


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
    listen: Callable[[Progress], None] | None = None,
) -> Result:
    """Run a study with the holders that its ``[deployment]`` names; paths there are relative to ``base``.

    ``address`` joins an existing Ray cluster; without it Ray is started on this machine, for this study alone.
    """
    from coordinator.folder import require_free

    started = time.perf_counter()
    file = study if isinstance(study, StudyFile) else load_study(study)
    home = Path(base) if base else Path() if isinstance(study, StudyFile) else Path(study).parent
    if out is not None:
        require_free(Path(out))
    with holders_of(file, home, runtime, address) as holders:
        outcome, received = conducted(file.study, holders, timeout, checkpoints, listen)
    return finished(outcome, received, time.perf_counter() - started, None if out is None else Path(out))


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
    from nodes.source import conform, read_table

    given = table if isinstance(table, pa.Table) else read_table(table)
    columns = declared(given, Roles(tuple(quasi), tuple(sensitive), tuple(keep), tuple(drop), key))
    people = with_key(conform(given, columns), columns)
    shares = dealt(people.columns, holders, views, seed)
    content = {
        "name": "simulation",
        "holders": list(shares),
        "method": method,
        "exposure": exposure,
        "seed": seed,
        "privacy": {"k": k, "l": l, "t": t},
        "deployment": {name: {"settings": f"{name}/settings.toml"} for name in shares},
        **settings,
    }
    study = checked(StudyFile, content, "study")
    with workshop() as folder:
        for name, own in shares.items():
            write_holder(folder / name, name, people.table, own, study, seed)
        return run(study, out, base=folder, runtime=runtime, listen=listen)


@contextmanager
def workshop() -> Iterator[Path]:
    """A private temporary folder that is gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="federated-anon-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def conducted(
    study: Study,
    holders: Holders,
    timeout: float,
    checkpoints: Path | str | None,
    listen: Callable[[Progress], None] | None,
) -> tuple[Outcome, int]:
    """Drive the study; returns its outcome and the bytes that holders sent."""
    from coordinator.checkpoints import Checkpoints
    from coordinator.driver import Driver, silent

    kept = Checkpoints(Path(checkpoints), study.digest) if checkpoints else None
    driver = Driver(
        study,
        holders,
        listen=listen or silent,
        timeout=timeout,
        checkpoints=kept,
        first_sequence=int(time.time() * 1000),
    )
    outcome = driver.run()
    if kept:
        kept.remove()
    return outcome, sum(driver.bytes_received.values())


def finished(outcome: Outcome, received: int, seconds: float, out: Path | None) -> Result:
    """Write the run folder, if one is wanted, and sum the study up."""
    from coordinator.folder import write_run

    if out is not None:
        write_run(out, outcome)
    report = outcome.report
    told = ("records", "k", "k_reached", "groups", "method", "exposure", "information_loss_percent")
    summary = {
        **{name: report[name] for name in told},
        "columns": outcome.release.table.num_columns,
        "holders": len(outcome.release.study.holders),
        "diversity_reached": report["diversity_reached"],
        "closeness_reached": report["closeness_reached"],
        "seconds": round(seconds, 2),
        "bytes_sent": received,
        "run": str(out) if out else None,
    }
    return Result(outcome.release.table, report, summary, out)


@contextmanager
def holders_of(file: StudyFile, base: Path, runtime: Runtime, address: str | None) -> Iterator[Holders]:
    """The study's holders, started where the study says, and ended with it."""
    from coordinator.holders import InProcess
    from federated_anon.errors import SettingsRefused

    homeless = [name for name in file.holders if name not in file.deployment]
    if homeless:
        raise SettingsRefused("study", [f"[deployment] has no place for holder '{name}'" for name in homeless])
    paths = {name: str((base / place.settings).absolute()) for name, place in file.deployment.items()}
    if address is None:
        require_ready(file, paths)
    if runtime == "ray":
        with ray_holders(file, paths, address) as holders:
            yield holders
    else:
        from nodes.holder import DataHolder
        from nodes.settings import load_settings

        yield InProcess({name: DataHolder(load_settings(path)).answer for name, path in paths.items()})


def require_ready(file: StudyFile, paths: Mapping[str, str]) -> None:
    """Settings of holders on this machine must be readable and theirs, before anything is started."""
    from federated_anon.errors import SettingsRefused
    from nodes.settings import load_settings

    strangers = {name: found for name, path in paths.items() if (found := load_settings(path).name) != name}
    if strangers:
        raise SettingsRefused(
            "study",
            [f"[deployment.{name}] the settings are of holder '{found}'" for name, found in strangers.items()],
        )


@contextmanager
def ray_holders(file: StudyFile, paths: Mapping[str, str], address: str | None) -> Iterator[Holders]:
    """Holders as Ray actors: on a cluster that exists, or on one that lives as long as the study."""
    import ray

    from coordinator.runtime import RayHolders
    from nodes.actor import HolderActor

    start_ray(address, len(paths))
    try:
        actors = []
        names = {name: f"{file.name}-{file.study.digest[:8]}-{name}" for name in paths}
        for name, path in paths.items():
            resource = file.deployment[name].resource
            pinned = {"resources": {resource: 0.001}} if resource else {}
            actors.append(cast(Any, HolderActor).options(name=names[name], **pinned).remote(path))
        yield RayHolders.found(names, NAMESPACE)
    finally:
        ray.shutdown()


def start_ray(address: str | None, holders: int) -> None:
    """Join the cluster at ``address``, or start one here that listens on loopback only."""
    import os

    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    common: dict[str, Any] = {"namespace": NAMESPACE, "log_to_driver": False, "logging_level": "ERROR"}
    if address:
        ray.init(address=address, **common)
        return
    ray.init(
        address="local",
        num_cpus=max(holders, 2),
        include_dashboard=False,
        object_store_memory=OBJECT_STORE,
        _node_ip_address="127.0.0.1",
        **common,
    )
