"""Replies kept per step, so that a study whose coordinator ended goes on where it stood.

They hold what holders sent, so they are as private as the study: local, readable by their owner only, and removed
when the study ends.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from federated_anon.errors import StorageFailed
from federated_anon.messages import Step


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """A folder with one file per reply, for one study."""

    folder: Path
    study: str

    @property
    def place(self) -> Path:
        """The folder of this study."""
        return self.folder / self.study[:16]

    def load(self, number: int, step: Step, holders: Iterable[str]) -> dict[str, bytes] | None:
        """All replies of a step, or None unless every one was stored."""
        paths = {name: self._path(number, step, name) for name in holders}
        if not all(path.exists() for path in paths.values()):
            return None
        return {name: path.read_bytes() for name, path in paths.items()}

    def save(self, number: int, step: Step, replies: Mapping[str, bytes]) -> None:
        """Store the replies of a step; a reply is there whole or not at all."""
        try:
            self.place.mkdir(parents=True, exist_ok=True, mode=0o700)
            for name, reply in replies.items():
                self._store(self._path(number, step, name), reply)
        except OSError as error:
            raise StorageFailed(f"checkpoint in '{self.folder}' cannot be written: {error.strerror}") from None

    def remove(self) -> None:
        """Forget the study."""
        shutil.rmtree(self.place, ignore_errors=True)

    def _path(self, number: int, step: Step, holder: str) -> Path:
        return self.place / f"{number:03d}-{step.value}-{holder}.arrow"

    @staticmethod
    def _store(path: Path, content: bytes) -> None:
        partial = path.with_suffix(".partial")
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        partial.replace(path)
