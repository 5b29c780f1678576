"""Holders as Ray actors, local or on a cluster; the only file of this side that imports ray."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import ray
from ray.exceptions import ActorDiedError, RayActorError, RayError

from federated_anon.errors import HolderLate
from federated_anon.folders import temporary_folder

NAMESPACE = "federated-anon"
OBJECT_STORE = 512 * 2**20
LONGEST_BASE = 16  # Characters of a temporary folder under which the paths of Ray's sockets are short enough.
PATIENCE = 2.0  # Seconds for Ray's processes to end when asked to.
MARK = "federated_anon_cluster"  # In small letters, so that it stands late in a sorted environment.
ITEMS_PER_WORKER = 25
GLANCE = 0.2  # Seconds between looks, so that an interruption is noticed at once.


class RayHolders:
    """Holders behind actor handles of one Ray cluster, which is one trust domain."""

    def __init__(self, actors: Mapping[str, Any]) -> None:
        self._actors = dict(actors)

    def ask(self, requests: Mapping[str, bytes], timeout: float) -> dict[str, bytes | None]:
        """Send to all, then gather in whatever order they finish; one whose actor died is waited for, then lost."""
        pending = {self._actors[name].answer.remote(request): name for name, request in requests.items()}
        replies = self._gathered(pending, timeout)
        for name, reply in replies.items():
            if reply is None:
                self._gathered({self._actors[name].__ray_ready__.remote(): name}, timeout, again=True)
        return {name: replies[name] for name in requests}

    def _gathered(self, pending: dict[Any, str], timeout: float, again: bool = False) -> dict[str, bytes | None]:
        """Results by name; with ``again``, a call that met an absent actor is repeated until it is back."""
        replies: dict[str, bytes | None] = {}
        until = time.monotonic() + timeout
        while pending:
            ready, _ = ray.wait(list(pending), num_returns=len(pending), timeout=GLANCE)
            for reference in ready:
                name = pending.pop(reference)
                replies[name], is_away = _result(reference)
                if is_away and again:
                    time.sleep(GLANCE)
                    pending[self._actors[name].__ray_ready__.remote()] = name
            if pending and time.monotonic() > until:
                late = ", ".join(sorted(set(pending.values())))
                raise HolderLate(
                    f"no answer within {timeout:.0f} s from: {late}; is its node up and its actor running?"
                )
        return replies


def _result(reference: Any) -> tuple[bytes | None, bool]:
    """A call's result if it was bytes, and whether it met an actor that is away and may come back."""
    try:
        value = ray.get(reference)
    except RayActorError as error:
        return None, not isinstance(error, ActorDiedError)
    return (bytes(value) if isinstance(value, bytes) else None), False


@contextmanager
def joined_cluster(address: str) -> Iterator[None]:
    """A connection to a Ray cluster that somebody else started."""
    try:
        with own_signals():
            start_ray(address=address)
        yield
    finally:
        ray.shutdown()


def live_resources(address: str) -> dict[str, set[str]]:
    """The resources of every node that is up; raises ``HolderLate`` if the cluster does not let this process in."""
    try:
        with joined_cluster(address):
            return {
                f"{node['NodeManagerAddress']}:{node['NodeManagerPort']}": set(node["Resources"])
                for node in ray.nodes()
                if node["Alive"]
            }
    except (ConnectionError, RayError, RuntimeError):
        cure = "is it up, and are token and TLS here the same as there (see docs/ray-cluster.md)?"
        raise HolderLate(f"no way into the Ray cluster at {address}: {cure}") from None


@contextmanager
def own_cluster(holders: int) -> Iterator[None]:
    """A Ray cluster for one study, on loopback only, that leaves neither process nor file behind."""
    base = tempfile.gettempdir()
    with temporary_folder(base if len(base) <= LONGEST_BASE else "/tmp") as folder:
        try:
            with own_signals(), marked(folder):
                start_ray(
                    address="local",
                    num_cpus=max(holders, 2),
                    include_dashboard=False,
                    object_store_memory=OBJECT_STORE,
                    _node_ip_address="127.0.0.1",
                    _temp_dir=str(folder),
                )
            yield
        finally:
            known = processes_of(folder)
            ray.shutdown()
            end_all(folder, known)


def as_finished(work: Callable[[Any], Any], items: Sequence[Any], at_once: int) -> Iterator[tuple[Any, Any]]:
    """``(item, work(item))`` in whatever order they finish, on the cluster that is joined; one core each.

    No more than ``at_once`` are under way, which bounds memory; a worker process ends after some items, so that what
    libraries keep is given back. Temporary files of a worker lie in the cluster's folder, and go with it.
    """

    def in_own_room(item: Any) -> Any:
        tempfile.tempdir = os.environ.get(MARK, tempfile.tempdir)
        return work(item)

    task = ray.remote(num_cpus=1, max_calls=ITEMS_PER_WORKER, max_retries=1)(in_own_room)
    waiting, pending = list(reversed(items)), dict[Any, Any]()
    while waiting or pending:
        while waiting and len(pending) < at_once:
            item = waiting.pop()
            pending[task.remote(item)] = item
        ready, _ = ray.wait(list(pending), num_returns=1, timeout=GLANCE)
        for reference in ready:
            yield pending.pop(reference), ray.get(reference)


def start_ray(**options: Any) -> None:
    """Connect quietly; what actors log reaches the terminal only where faults are looked for."""
    is_loud = bool(os.environ.get("FEDERATED_ANON_DEBUG"))
    ray.init(namespace=NAMESPACE, log_to_driver=is_loud, logging_level="ERROR", **options)


@contextmanager
def own_signals() -> Iterator[None]:
    """Ray puts a SIGTERM handler of its own in place, which prints a stack; put back what was there."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def marked(folder: Path) -> Iterator[None]:
    """Processes that start meanwhile, and theirs, bear the folder's name in their environment."""
    os.environ[MARK] = str(folder)
    try:
        yield
    finally:
        del os.environ[MARK]


def end_all(folder: Path, known: list[Any]) -> None:
    """Wait until no process of the cluster in ``folder`` is left: ask those that linger to end, then insist.

    They are looked for by their mark until two looks in a row find none: a start that is interrupted leaves orphans,
    a node on its way out may still start one, and a process that is just starting shows no environment.
    """
    until, looks = time.monotonic() + PATIENCE, 2
    while looks and time.monotonic() < until + PATIENCE:
        processes = {*processes_of(folder), *(process for process in known if is_alive(process))}
        for process in processes:
            with suppress(psutil.Error):
                process.terminate() if time.monotonic() < until else process.kill()
        psutil.wait_procs(processes, timeout=GLANCE) if processes else time.sleep(GLANCE)
        looks = 2 if processes else looks - 1


def is_alive(process: Any) -> bool:
    """Whether a process is at work still: the dead whose parent has not asked after them are not."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def processes_of(folder: Path) -> list[Any]:
    """All processes that bear the folder's name, and their children."""
    mark, found = f"{MARK}={folder}".encode(), []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if mark in environment_of(process):
                found += [process, *process.children(recursive=True)]
    return found


def environment_of(process: Any) -> bytes:
    """A process's environment, as it stands: one that renames itself overwrites the beginning, where parsers stop."""
    place = Path(f"/proc/{process.pid}/environ")
    if place.exists():
        return place.read_bytes()
    return "\0".join(f"{name}={value}" for name, value in process.environ().items()).encode()
