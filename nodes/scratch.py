"""Where a holder keeps arrays: in memory, or in files that the system pages in and out as they are used.

A scratch file never has a name, so that records do not outlive the process, however it ends. Results do not depend on
where arrays are kept.
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
from numpy.typing import DTypeLike, NDArray

from federated_anon.errors import StorageFailed
from federated_anon.folders import reason


@dataclass(frozen=True, slots=True)
class Scratch:
    """A place for arrays: ``folder`` on a local disk, or memory if there is none."""

    folder: Path | None = None

    def keep(self, array: pa.Array) -> pa.Array:
        """The same array; in a scratch file if there is a folder for it."""
        if self.folder is None:
            return array
        batch = pa.record_batch([array], names=[""])
        return self.keep_batches(batch.schema, iter([batch])).column(0).chunk(0)  # To combine would be to copy.

    def keep_batches(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> pa.Table:
        """All batches as one table, of which one at a time is in memory if there is a folder."""
        if self.folder is None:
            return pa.Table.from_batches(list(batches), schema)
        with self._file() as file:
            with ipc.new_stream(file, schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)
            file.flush()
            with pa.memory_map(f"/proc/self/fd/{file.fileno()}") as source:
                return ipc.open_stream(source).read_all()

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """An array to be filled."""
        if self.folder is None or 0 in shape:
            return np.empty(shape, dtype=dtype)
        with self._file() as file:
            return np.memmap(file, dtype=dtype, mode="w+", shape=shape)

    def tidy(self) -> None:
        """Give memory that is free back to the system, which needs it for pages of the files.

        Allocators keep what was freed, for each thread that ever worked: beside a small limit that adds up.
        """
        if self.folder is not None:
            pa.default_memory_pool().release_unused()
            if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):  # Of glibc; others keep little.
                trim(0)

    @contextmanager
    def _file(self) -> Iterator[IO[bytes]]:
        """A file without a name: what is mapped of it stays until it is unmapped, or until the process ends."""
        assert self.folder is not None
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.TemporaryFile(dir=self.folder) as file:
                yield file
        except OSError as error:
            raise StorageFailed(f"scratch folder '{self.folder}': {reason(error)}") from None
