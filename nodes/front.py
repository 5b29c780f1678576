"""The front of a holder's service: TLS ends here, so that whoever is turned away is known, counted and recorded.

Arrow Flight does TLS itself, but tells nobody of a handshake that failed, and reads a whole message before it looks at
a name. So it listens behind this front, on a socket in a private folder; only connections whose certificate was
verified reach it, and those of other parties than the coordinator reach a porch that refuses every call.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from federated_anon.addresses import host_and_port
from federated_anon.errors import Code
from nodes.service_settings import ServiceSettings

log = logging.getLogger(__name__)

HANDSHAKE = 10.0
"""Seconds that a handshake may take."""
MOST_CONNECTIONS = 64
PIECE = 2**16


@dataclass(frozen=True, slots=True)
class Rooms:
    """Sockets behind the front: for the coordinator, and for every other party with a certificate."""

    inside: Path
    porch: Path


class Front:
    """Listens from the moment it is made; ``refused`` hears the code of everybody who is turned away."""

    def __init__(self, settings: ServiceSettings, rooms: Rooms, refused: Callable[[Code], None]) -> None:
        self._rooms, self._refused, self._coordinator = rooms, refused, settings.coordinator
        self._context = tls_context(settings)
        self._door = _listening(settings.address)
        self.port: int = self._door.getsockname()[1]
        self._connections = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no more connections; those under way end with the process or with their peer."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        accepting = self._loop.create_task(self._accept())
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        with suppress(asyncio.CancelledError):
            self._loop.run_until_complete(asyncio.gather(accepting, *asyncio.all_tasks(self._loop)))
        self._door.close()
        self._loop.close()

    async def _accept(self) -> None:
        under_way: set[asyncio.Task[None]] = set()
        while True:
            line, _ = await self._loop.sock_accept(self._door)
            if self._connections >= MOST_CONNECTIONS:
                log.warning("put off: %d connections at once", self._connections)
                line.close()
                continue
            task = self._loop.create_task(self._received(line))
            under_way.add(task)
            task.add_done_callback(under_way.discard)

    async def _received(self, line: socket.socket) -> None:
        """One connection, from its handshake to its end."""
        self._connections += 1
        try:
            reader = asyncio.StreamReader(PIECE)
            protocol = asyncio.StreamReaderProtocol(reader)
            transport, _ = await self._loop.connect_accepted_socket(
                lambda: protocol, line, ssl=self._context, ssl_handshake_timeout=HANDSHAKE
            )
            writer = asyncio.StreamWriter(transport, protocol, reader, self._loop)
            await self._passed_on(reader, writer)
        except (OSError, TimeoutError) as error:
            code = code_of(error)
            log.warning("refused: a handshake that failed (%s)", code)
            await self._loop.run_in_executor(None, self._refused, code)
        finally:
            self._connections -= 1
            line.close()

    async def _passed_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_known = first_name(writer.get_extra_info("peercert")) == self._coordinator
        place = self._rooms.inside if is_known else self._rooms.porch
        try:
            far_reader, far_writer = await asyncio.open_unix_connection(str(place))
        except OSError:  # The service is ending.
            writer.close()
            return
        flows = [_flow(reader, far_writer), _flow(far_reader, writer)]
        await asyncio.gather(*flows)


async def _flow(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Pass bytes on until one side ends; then both do."""
    with suppress(OSError):
        while content := await source.read(PIECE):
            sink.write(content)
            await sink.drain()
    with suppress(OSError, RuntimeError):
        sink.close()


def tls_context(settings: ServiceSettings) -> ssl.SSLContext:
    """TLS 1.2 or later, a certificate of the peer required, and one trust anchor: the pinned one, or the authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(settings.files.certificate, settings.files.key)
    context.load_verify_locations(settings.pin or settings.files.authority)
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # A pinned certificate is its own anchor.
    context.set_alpn_protocols(["h2"])
    return context


def code_of(error: Exception) -> Code:
    """Why a handshake failed: its certificate, or no TLS at all."""
    reason = getattr(error, "reason", "") or ""
    if isinstance(error, ssl.SSLCertVerificationError) or "CERTIFICATE" in reason:
        return Code.CERTIFICATE
    return Code.HANDSHAKE


def first_name(certificate: dict[str, object] | None) -> str:
    """The first subject alternative name of a verified certificate, as Python shows it; empty if there is none."""
    names = (certificate or {}).get("subjectAltName", ())
    return str(names[0][1]) if isinstance(names, tuple) and names else ""


def _listening(address: str) -> socket.socket:
    host, port = host_and_port(address)
    door = socket.create_server((host, port), backlog=MOST_CONNECTIONS)
    door.setblocking(False)
    return door
