"""Folders that are whole or not there: written beside their place under another name, renamed when complete."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from federated_anon.errors import StorageFailed


def require_free(place: Path) -> None:
    """Raise ``StorageFailed`` unless a folder can be made at ``place``; asked before any work is done.

    The answer comes from making a folder beside it, since permissions alone do not tell (read-only disks, quotas).
    """
    parent = place.absolute().parent
    try:
        if os.path.lexists(place):
            raise StorageFailed(f"'{place}' exists already; choose another --out, or remove it")
        if not parent.is_dir():
            raise StorageFailed(f"'{parent}' is not a folder; make it first, or choose another --out")
        Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=parent)).rmdir()
    except OSError as error:
        raise StorageFailed(f"'{place}' cannot be made: {error.strerror or error}; choose another --out") from None


@contextmanager
def partial_folder(place: Path) -> Iterator[Path]:
    """A temporary folder beside ``place`` that becomes ``place`` at the end, or vanishes with all that is in it."""
    require_free(place)
    partial = None
    try:
        partial = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.absolute().parent))
        yield partial
        partial.chmod(0o755)
        partial.rename(place)
    except OSError as error:
        raise StorageFailed(f"'{place}' cannot be written: {reason(error)}; nothing of it is left") from None
    finally:
        if partial is not None:
            shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def temporary_folder(base: str | None = None) -> Iterator[Path]:
    """A private folder that is gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="federated-anon-", dir=base))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_whole(place: Path, content: bytes) -> None:
    """Write a file that is whole or as it was before; ``StorageFailed`` if that cannot be."""
    partial = place.with_name(f".{place.name}-{os.getpid()}")
    try:
        partial.write_bytes(content)
        partial.replace(place)
    except OSError as error:
        raise StorageFailed(f"'{place}' cannot be written: {reason(error)}") from None
    finally:
        partial.unlink(missing_ok=True)


def reason(error: OSError) -> str:
    """Why the system refused, in its own words; libraries bury them in messages of several lines."""
    return os.strerror(error.errno) if error.errno else str(error).splitlines()[0]
