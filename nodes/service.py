"""A holder's door to other organisations: Arrow Flight over mutual TLS, one process around one ``DataHolder``.

A request comes through ``do_exchange``, announced by its length and cut into pieces: an action would arrive as one
gRPC message, held in memory whole before anybody could refuse it, and gRPC counts such a message in 32 bits. Pieces
are opaque metadata; the transport never reads Arrow out of them.

Who may come in is decided by the front: TLS trusts one certificate, the pinned one, or else the authority's; then the
first subject alternative name of the peer must be the coordinator's. Flight itself listens behind it, in a folder of
its own that only this user can enter.
"""

from __future__ import annotations

import datetime
import logging
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from federated_anon.addresses import host_and_port
from federated_anon.errors import Code, MessageRefused, SettingsRefused
from federated_anon.messages import VERSION
from federated_anon.messages.framing import HELLO, announced_length, pieces
from federated_anon.messages.hello import Hello
from nodes.front import Front, Rooms
from nodes.holder import DataHolder
from nodes.limits import RateLimit
from nodes.service_settings import ServiceSettings, require_service
from nodes.settings import HolderSettings

log = logging.getLogger(__name__)

MOST_CALLS = 16
"""Calls under way at once; one of them is answered, the others wait for their turn."""

MOST_DISCARDED = 2**30
"""Bytes of a refused request that are let go by, so that its sender hears why; then it is cut short."""

GRACE = 10.0
"""Seconds that a request under way has when the service is told to end."""


class HolderService(flight.FlightServerBase):
    """Serves one holder from the moment it is made.

    The holder does everything on one thread, one request after the other: BLAS lets a single thread of a process set
    how many it uses itself, and on two it rounds differently than on one.
    """

    def __init__(self, name: str, holder: DataHolder, settings: ServiceSettings, largest: int) -> None:
        self._name, self._holder, self._largest = name, holder, largest
        self._rate = RateLimit(settings.requests_per_minute)
        self._calls = threading.BoundedSemaphore(MOST_CALLS)
        self._desk = ThreadPoolExecutor(max_workers=1)
        self._is_closing = threading.Event()
        self._folder = tempfile.mkdtemp(prefix="federated-anon-")
        rooms = Rooms(Path(self._folder) / "inside", Path(self._folder) / "porch")
        try:
            self._front = Front(settings, rooms, self._turned_away)
        except OSError:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        super().__init__(f"grpc+unix://{rooms.inside}")
        self._porch = Porch(rooms.porch, self._turned_away)

    @property
    def port(self) -> int:
        """Where the front listens."""
        return self._front.port

    def _turned_away(self, code: Code) -> None:
        """A peer that never came in: a code in the ledger of what belongs to no study."""
        self._desk.submit(self._holder.turn_away, code)

    def do_action(self, context: Any, action: Any) -> list[bytes]:
        """Say hello, to the coordinator alone."""
        with self._admitted():
            if action.type != HELLO:
                raise flight.FlightServerError(Code.WRONG_STEP)
            return [Hello(self._name, VERSION, version("federated-anon"), time.time()).encoded()]

    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """One request in, one reply out."""
        with self._admitted():
            for piece in pieces(self._reply(descriptor.command or b"", reader)):
                writer.write_metadata(pa.py_buffer(piece))

    def close(self, grace: float = GRACE) -> bool:
        """Take no more calls, wait for the one under way; whether it ended in time."""
        self._is_closing.set()
        ending = threading.Thread(target=self.shutdown, daemon=True)
        ending.start()
        ending.join(grace)
        if ending.is_alive():
            return False
        self._front.close()
        self._porch.shutdown()
        shutil.rmtree(self._folder, ignore_errors=True)
        return True

    @contextmanager
    def _admitted(self) -> Iterator[None]:
        """Let a call of the coordinator in; whatever goes wrong inside crosses as a code."""
        if self._is_closing.is_set() or not self._calls.acquire(blocking=False):
            log.warning("put off: too many calls at once, or the service is ending")
            raise flight.FlightUnavailableError("busy")
        try:
            if self._is_closing.wait(self._rate.delay()):
                raise flight.FlightUnavailableError("ending")
            yield
        except flight.FlightError:
            raise
        except Exception as error:
            log.warning("a call ended early: %s", type(error).__name__)
            raise flight.FlightServerError(Code.FAULT) from None
        finally:
            self._calls.release()

    def _reply(self, command: bytes, reader: Any) -> bytes:
        """The holder's reply, or its refusal of something that never became a request."""
        started = time.monotonic()
        try:
            request = self._request(command, reader)
        except MessageRefused as error:
            log.warning("refused: %s", error)
            _discard(reader)
            return self._desk.submit(self._holder.refuse, error).result()
        reply = self._desk.submit(self._holder.answer, request).result()
        log.info("answered: %d bytes in, %d out, %.2f s", len(request), len(reply), time.monotonic() - started)
        return reply

    def _request(self, command: bytes, reader: Any) -> bytes:
        length = announced_length(command)
        if length is None:
            raise MessageRefused("a call that announces no request")
        if length > self._largest:
            raise MessageRefused(f"{length} bytes, at most {self._largest} are accepted", Code.OVERSIZED)
        return _received(reader, length)


class Porch(flight.FlightServerBase):
    """Where parties end up that have a certificate but are not the coordinator: every call is refused with a code."""

    def __init__(self, place: Path, refused: Callable[[Code], None]) -> None:
        self._refused = refused
        super().__init__(f"grpc+unix://{place}")

    def do_action(self, context: Any, action: Any) -> list[bytes]:
        """Refuse."""
        raise self._refusal()

    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Refuse."""
        raise self._refusal()

    def _refusal(self) -> Exception:
        log.warning("refused: a peer that is not the coordinator")
        self._refused(Code.WRONG_SENDER)
        return flight.FlightUnauthorizedError(Code.WRONG_SENDER)


def _discard(reader: Any) -> None:
    """Let the rest of a refused request go by: a sender that is cut short never reads the refusal."""
    left = MOST_DISCARDED
    with suppress(MessageRefused):
        for piece in _metadata(reader):
            left -= len(piece)
            if left < 0:
                return


def _received(reader: Any, length: int) -> bytes:
    """All pieces, if they are as long together as was announced; reading stops where they are longer."""
    parts, came = [], 0
    for piece in _metadata(reader):
        came += len(piece)
        if came > length:
            raise MessageRefused(f"{length} bytes were announced, more came", Code.OVERSIZED)
        parts.append(piece)
    if came < length:
        raise MessageRefused(f"{length} bytes were announced, {came} came")
    return b"".join(parts)


def _metadata(reader: Any) -> Iterator[bytes]:
    while True:
        try:
            chunk = reader.read_chunk()
        except StopIteration:
            return
        except pa.ArrowException as error:
            raise MessageRefused(f"a stream that cannot be read: {type(error).__name__}") from None
        if chunk.data is not None or chunk.app_metadata is None:
            raise MessageRefused("a piece that is not opaque bytes")
        yield chunk.app_metadata.to_pybytes()


def opened(settings: HolderSettings) -> HolderService:
    """The service of a holder, listening; raises ``SettingsRefused`` with everything that is wrong."""
    service = require_service(settings.name, settings.service)
    holder = DataHolder(settings)
    try:
        return HolderService(settings.name, holder, service, settings.policy.largest_message)
    except (pa.ArrowException, OSError):
        fault = f"[service] cannot listen on {service.address}: is the port in use, or the address of another machine?"
        raise SettingsRefused(f"holder '{settings.name}'", [fault]) from None


def serve(settings: HolderSettings, ready: Callable[[str], None]) -> None:
    """Serve until told to end by SIGTERM or SIGINT; ``ready`` hears where the service listens."""
    told = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told.set())
    service = opened(settings)
    host, _ = host_and_port(require_service(settings.name, settings.service).address)
    ready(f"holder '{settings.name}' serves on {host}:{service.port}")
    told.wait()
    log.info("ending: %s", datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"))
    if not service.close():
        log.warning("a request under way was cut off; its study can go on when the service is back")
        os._exit(0)  # The thread that answers cannot be stopped; the ledger is on disk before any reply.
