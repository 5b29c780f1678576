"""Ten thousand fuzzed requests to a live holder, and garbage at its port: it stays up, and its memory stays flat.

    python -m benchmarks.fuzz_service [requests]

Half of them go to a holder without a study, half to one with a study under way: there every refusal is an entry of
the ledger, tallied when they come without end, and verified at the end. A
fresh process with the same ledger tells its size from a leak.
"""

from __future__ import annotations

import random
import socket
import sys
import tempfile
from collections import Counter
from pathlib import Path
from time import perf_counter

from federated_anon.ledger import verified_entries
from federated_anon.messages.payloads import Refused
from federated_anon.study import load_study
from nodes.settings import load_settings
from tests.services import Region, caller, enrolled, fuzzed, hello, prepared, sent, serving

IDLE, BUSY = "insurer", "hospital"
WARM = 500
"""Requests after which memory is first looked at."""


def main(requests: int) -> None:
    """Start three organisations, fuzz two of them, tell what came of it."""
    fast = {"requests_per_minute": 1_000_000}
    with tempfile.TemporaryDirectory() as folder, serving(prepared(Path(folder), **fast)) as region:
        enrolled(region, BUSY)
        for name in (IDLE, BUSY):
            begun = perf_counter()
            codes, sizes = fuzz(region, name, requests // 2)
            print(f"{name}: {requests // 2} fuzzed requests in {perf_counter() - begun:.0f} s, replies {dict(codes)}")
            print("  resident megabytes on the way:", ", ".join(f"{size / 2**20:.1f}" for size in sizes))
            print(f"  still there: {hello(caller(region, name)).decode()}")
        print(f"ledger: {ledger(region)}, chain and signatures verified")
        region.sites[BUSY].kill()
        region.sites[BUSY].restart()
        enrolled(region, BUSY)
        _, sizes = fuzz(region, BUSY, WARM + 1)
        print(f"a fresh process with that ledger, after {WARM} requests: {sizes[0] / 2**20:.1f} megabytes")


def fuzz(region: Region, name: str, requests: int) -> tuple[Counter[str], list[int]]:
    """Send them all; codes of the replies, and resident bytes now and then."""
    site, client = region.sites[name], caller(region, name)
    rng, codes, sizes = random.Random(0), Counter[str](), []
    for number in range(requests):
        payload = sent(client, *fuzzed(region, rng, may_enrol=name == BUSY))
        codes[str(payload.code) if isinstance(payload, Refused) else type(payload).__name__] += 1
        if number % 100 == 0:
            scribble(site.port, rng)
        if number >= WARM and (number - WARM) % max(1, (requests - WARM) // 8) == 0:
            sizes.append(site.memory())
    return codes, sizes


def scribble(port: int, rng: random.Random) -> None:
    """Bytes that are no TLS at all."""
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(rng.randbytes(rng.randrange(1, 4096)))


def ledger(region: Region) -> str:
    """How large the ledger is, if it holds."""
    settings, study = load_settings(region.sites[BUSY].settings), load_study(region.study).study
    text = (settings.ledger / f"{study.digest}.jsonl").read_text()
    entries = verified_entries(text.splitlines(), study.digest, BUSY, settings.identity.public)
    return f"{len(entries)} entries, {len(text) / 2**20:.1f} MB"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
