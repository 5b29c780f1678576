"""The holders of other organisations, each behind its own service: all are asked at once, over mutual TLS."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait

from coordinator.credentials import Credentials
from coordinator.link import Link
from federated_anon.errors import HolderLate

GLANCE = 0.2  # Seconds between looks, so that an interruption is noticed at once.
Reply = bytes | None


class FlightHolders:
    """Holders behind Arrow Flight; ``addresses`` are host:port by holder."""

    def __init__(self, addresses: Mapping[str, str], credentials: Credentials) -> None:
        self._links = {name: Link(name, address, credentials) for name, address in addresses.items()}

    def ask(self, requests: Mapping[str, bytes], timeout: float) -> dict[str, Reply]:
        """Send to all, then gather; raises ``HolderLate`` naming all that were late, once every call has ended."""
        with ThreadPoolExecutor(max_workers=len(requests)) as pool:
            calls = {name: pool.submit(self._links[name].ask, request, timeout) for name, request in requests.items()}
            try:
                while wait(calls.values(), timeout=GLANCE).not_done:
                    pass
            except BaseException:
                for name in requests:
                    self._links[name].stop()
                raise
        return _gathered(calls, timeout)

    def close(self) -> None:
        """Hang up."""
        for link in self._links.values():
            link.drop()


def _gathered(calls: Mapping[str, Future[Reply]], timeout: float) -> dict[str, Reply]:
    """All replies; late holders are named together, any other fault goes first."""
    faults = [fault for call in calls.values() if (fault := call.exception()) is not None]
    late = [str(fault) for fault in faults if isinstance(fault, HolderLate)]
    for fault in faults:
        if not isinstance(fault, HolderLate):
            raise fault
    if late:
        raise HolderLate(f"no answer within {timeout:.0f} s from {'; '.join(late)}; is its service up?")
    return {name: call.result() for name, call in calls.items()}
