"""Signed, hash-chained audit entries: what left a holder, on disk before it leaves.

One file per study, one JSON object per line. Each entry names the hash of the one before it and carries an Ed25519
signature over its own hash; the first one names the study. Entries hold sizes, kinds and hashes, never values.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from federated_anon.crypto.signing import Identity, require_signature
from federated_anon.errors import StorageFailed, VerificationFailed

Entry = dict[str, Any]
LONGEST = 1 << 16
"""Bytes in which the last entry is looked for."""


def genesis(study: str, holder: str) -> str:
    """What the first entry names as its predecessor."""
    return hashlib.sha256(f"federated-anon ledger 1\x1f{study}\x1f{holder}".encode()).hexdigest()


def entry_hash(entry: Entry) -> str:
    """SHA-256 of an entry's canonical JSON, without its own hash and signature."""
    body = {key: value for key, value in entry.items() if key not in ("hash", "signature")}
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Ledger:
    """The ledger of one holder for one study, in ``folder``."""

    folder: Path
    study: str
    holder: str
    identity: Identity

    @property
    def path(self) -> Path:
        """The file of this study."""
        return self.folder / f"{self.study}.jsonl"

    def lines(self) -> list[str]:
        """All entries as stored."""
        return list(_lines(self.path))

    def entries(self) -> Iterator[Entry]:
        """All entries, parsed, one after the other: they are never all in memory."""
        return (json.loads(line) for line in _lines(self.path))

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self.path.stat().st_size if self.path.exists() else 0

    def entry_at(self, end: int) -> Entry | None:
        """The entry that ends at byte ``end``, without a look at those before it; None at the beginning."""
        if end == 0:
            return None
        with self.path.open("rb") as file:
            file.seek(max(0, end - LONGEST))
            tail = file.read(min(end, LONGEST))
        return dict(json.loads(tail.removesuffix(b"\n").rsplit(b"\n", 1)[-1]))

    def append(self, content: Entry) -> Entry:
        """Chain, sign and fsync one entry; only then may the reply it speaks of leave."""
        last = self.entry_at(self.size)
        entry: Entry = {
            **content,
            "number": last["number"] + 1 if last else 0,
            "before": last["hash"] if last else genesis(self.study, self.holder),
            "study": self.study,
            "holder": self.holder,
        }
        entry["hash"] = entry_hash(entry)
        entry["signature"] = self.identity.sign(bytes.fromhex(entry["hash"])).hex()
        self._write(json.dumps(entry, sort_keys=True) + "\n")
        return entry

    def _write(self, line: str) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                _append_whole(handle, line.encode())
            finally:
                os.close(handle)
        except OSError as error:
            raise StorageFailed(f"ledger '{self.path}' cannot be written: {error.strerror}") from None


def _append_whole(handle: int, line: bytes) -> None:
    """Write and fsync all of ``line``, or leave the file as it was."""
    size = os.fstat(handle).st_size
    try:
        if os.write(handle, line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(handle)
    except OSError:
        os.ftruncate(handle, size)
        raise


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file that may be long; none if there is no file."""
    if path.exists():
        with path.open(encoding="utf-8", newline="\n") as file:
            for line in file:
                yield line.removesuffix("\n")


def released_partitions(folder: Path, data_version: str, kind: str) -> set[str]:
    """Digests of what any study of this holder has let out for ``data_version``: ``kind`` partition or cells."""
    found = set()
    for path in sorted(folder.glob("*.jsonl")):
        for line in _lines(path):
            entry = json.loads(line)
            if entry.get("data_version") == data_version and entry.get(kind):
                found.add(entry[kind])
    return found


def budget_spent(folder: Path, data_version: str, study: str) -> tuple[float, float]:
    """Epsilon and delta that other studies have spent on ``data_version``; a repeated answer counts once."""
    epsilon = delta = 0.0
    for path in sorted(folder.glob("*.jsonl")):
        entries = [json.loads(line) for line in path.read_text().splitlines()]
        pairs = [e["spent"] for e in entries if e.get("spent") and e["sent"] and e["data_version"] == data_version]
        if pairs and path.stem != study:
            epsilon += max(pair[0] for pair in pairs)
            delta += max(pair[1] for pair in pairs)
    return epsilon, delta


def studies_answered(folder: Path, data_version: str, steps: Collection[str]) -> set[str]:
    """Studies of this holder that had an answer to one of ``steps`` about ``data_version``."""
    found = set()
    for path in sorted(folder.glob("*.jsonl")):
        entries = (json.loads(line) for line in _lines(path))
        if any(e["step"] in steps and e["sent"] and e["data_version"] == data_version for e in entries):
            found.add(path.stem)
    return found


def verified_entries(lines: Iterable[str], study: str, holder: str, public: bytes) -> list[Entry]:
    """All entries, after checking numbers, chain and signatures; raises ``VerificationFailed`` naming the line."""
    before, entries = genesis(study, holder), []
    for number, line in enumerate(lines):
        entry = _parsed(line, holder, number)
        if entry.get("number") != number or entry.get("before") != before:
            raise VerificationFailed(f"ledger of '{holder}', line {number + 1}: a line was removed, added or moved")
        is_canonical = line == json.dumps(entry, sort_keys=True)
        is_own = entry.get("study") == study and entry.get("holder") == holder
        if not (is_canonical and is_own and entry["hash"] == entry_hash(entry)):
            raise VerificationFailed(f"ledger of '{holder}', line {number + 1}: the entry was changed")
        _require_entry_signature(entry, public, f"ledger of '{holder}', line {number + 1}")
        before = entry["hash"]
        entries.append(entry)
    return entries


def _parsed(line: str, holder: str, number: int) -> Entry:
    try:
        entry = json.loads(line)
        entry["hash"], entry["signature"]
    except (ValueError, TypeError, KeyError):
        raise VerificationFailed(f"ledger of '{holder}', line {number + 1}: is not an entry") from None
    return dict(entry)


def _require_entry_signature(entry: Entry, public: bytes, what: str) -> None:
    try:
        signature, content = bytes.fromhex(entry["signature"]), bytes.fromhex(entry["hash"])
    except (ValueError, TypeError):
        raise VerificationFailed(f"{what}: the signature does not fit") from None
    require_signature(public, signature, content, what)


def bytes_sent(entries: Sequence[Entry]) -> int:
    """Bytes of all replies that left, as the ledger recorded them."""
    return sum(int(entry.get("bytes", 0)) for entry in entries)
