"""One holder in another organisation: a connection over Arrow Flight and mutual TLS that comes back by itself.

A request that may have reached the holder is never sent again as it is: the holder would take it for a replay. The
caller learns that it was lost, and leads the holder through the study with new sequence numbers.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from coordinator.credentials import Credentials
from federated_anon.errors import Code, HolderLate, HolderRefused, MessageRefused
from federated_anon.messages import VERSION
from federated_anon.messages.codec import LARGEST
from federated_anon.messages.framing import HELLO, announcement, pieces
from federated_anon.messages.hello import Hello

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds between attempts to connect; each pause is twice the one before."""

HELLO_TIME = 10.0
"""Seconds that a hello may take."""

UNWELCOME = (flight.FlightUnauthorizedError, flight.FlightUnauthenticatedError)
CHANNEL = [
    ("grpc.use_local_subchannel_pool", 1),  # A new client is a new attempt, not a place in gRPC's own backoff.
    ("grpc.keepalive_time_ms", 310_000),  # A server takes pings more often than every 5 minutes for an attack.
    ("grpc.keepalive_timeout_ms", 20_000),
]


class Stopped(Exception):
    """The study was interrupted while a holder was waited for."""


class Link:
    """The way to one holder; used by one thread at a time."""

    def __init__(self, holder: str, address: str, credentials: Credentials) -> None:
        self._holder, self._address, self._credentials = holder, address, credentials
        self._client: Any = None
        self._call: Any = None
        self._stopped = threading.Event()

    def ask(self, request: bytes, timeout: float) -> bytes | None:
        """The reply; None if the connection was lost on the way and the holder is there again."""
        until = time.monotonic() + timeout
        self.reach(until)
        try:
            return self._exchange(request, until)
        except flight.FlightTimedOutError:
            self.drop()
            raise self._late("it did not answer") from None
        except UNWELCOME:
            raise HolderRefused(self._holder, "connect", Code.WRONG_SENDER) from None
        except pa.ArrowException as error:
            log.warning("lost '%s' on the way (%s); connecting again", self._holder, reason(error))
            self.drop()
        self.reach(time.monotonic() + timeout)
        return None

    def reach(self, until: float) -> None:
        """Connect, again and again with growing pauses, until the holder says hello; ``HolderLate`` after that."""
        pause, last = FIRST_PAUSE, ""
        while self._client is None:
            try:
                self.hello(min(HELLO_TIME, max(until - time.monotonic(), 0.1)))
                return
            except UNWELCOME:
                self.drop()
                raise HolderRefused(self._holder, "connect", Code.WRONG_SENDER) from None
            except MessageRefused:
                self.drop()
                raise
            except pa.ArrowException as error:
                self.drop()
                last = self._told(reason(error), last)
            if time.monotonic() + pause > until:
                raise self._late(last)
            if self._stopped.wait(pause):
                raise Stopped
            pause = min(2 * pause, LONGEST_PAUSE)

    def hello(self, seconds: float) -> Hello:
        """Connect if need be, and hear who serves there."""
        if self._client is None:
            self._client = self._connected()
        options = flight.FlightCallOptions(timeout=seconds)
        results = [result.body.to_pybytes() for result in self._client.do_action(flight.Action(HELLO, b""), options)]
        said = Hello.decoded(results[0] if len(results) == 1 else b"")
        if said.holder != self._holder:
            raise MessageRefused(f"'{said.holder}' serves at the address of '{self._holder}'", Code.WRONG_SENDER)
        if said.protocol != VERSION:
            raise MessageRefused(
                f"'{self._holder}' speaks version {said.protocol} of the messages, this is {VERSION}", Code.VERSION
            )
        return said

    def drop(self) -> None:
        """Give the connection up; the next use makes a new one."""
        client, self._client, self._call = self._client, None, None
        if client is not None:
            client.close()

    def stop(self) -> None:
        """End what is under way, from another thread."""
        self._stopped.set()
        if (call := self._call) is not None:
            call.cancel()

    def _connected(self) -> Any:
        return flight.FlightClient(
            f"grpc+tls://{self._address}",
            tls_root_certs=self._credentials.trusted(self._holder),
            cert_chain=self._credentials.certificate,
            private_key=self._credentials.key,
            override_hostname=self._holder,  # The certificate must name the party, wherever its machine is.
            generic_options=CHANNEL,
        )

    def _exchange(self, request: bytes, until: float) -> bytes:
        options = flight.FlightCallOptions(timeout=max(until - time.monotonic(), 0.1))
        descriptor = flight.FlightDescriptor.for_command(announcement(request))
        writer, self._call = self._client.do_exchange(descriptor, options)
        _send(writer, request)
        try:
            reply = b"".join(_received(self._call, self._holder))
        finally:
            self._call = None
            with suppress(pa.ArrowException):  # What went wrong was told by the reader; the writer would log it again.
                writer.close()
        if not reply:
            raise MessageRefused(f"'{self._holder}' hung up on {len(request)} bytes without a reply", Code.OVERSIZED)
        return reply

    def _late(self, why: str) -> HolderLate:
        return HolderLate(f"'{self._holder}' at {self._address}: {why}")

    def _told(self, why: str, before: str) -> str:
        if why != before:
            log.warning("cannot reach '%s' at %s (%s); trying again", self._holder, self._address, why)
        return why


def _send(writer: Any, request: bytes) -> None:
    """Send all pieces; a holder that has heard enough hangs up early, and its reply says why."""
    try:
        for piece in pieces(request):
            writer.write_metadata(pa.py_buffer(piece))
        writer.done_writing()
    except pa.ArrowException as error:
        log.debug("a holder stopped listening: %s", reason(error))


def _received(reader: Any, holder: str) -> Iterator[bytes]:
    came = 0
    while True:
        try:
            chunk = reader.read_chunk()
        except StopIteration:
            return
        came += chunk.app_metadata.size if chunk.app_metadata else 0
        if chunk.app_metadata is None or came > LARGEST:
            reader.cancel()
            raise MessageRefused(f"a reply of '{holder}' is longer than {LARGEST} bytes, or not bytes", Code.OVERSIZED)
        yield chunk.app_metadata.to_pybytes()


def reason(error: Exception) -> str:
    """What went wrong, in the transport's words but without its prefaces."""
    text = str(error).partition("\n")[0].rpartition("last error: ")[2]
    text = text.removeprefix("Flight returned unavailable error, with message: ")
    return text.partition(". gRPC client debug context")[0].strip() or type(error).__name__
