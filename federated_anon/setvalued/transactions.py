"""Set-valued data: one set of items per person, kept as two flat arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from federated_anon.arrays import Counts
from federated_anon.errors import DataRefused


@dataclass(frozen=True, eq=False, slots=True)
class Transactions:
    """Record ``i`` holds ``items[offsets[i]:offsets[i + 1]]``: codes into ``names``, rising, each once.

    ``offsets`` is (n + 1,) int64, ``items`` is (occurrences,) int32. A record may be empty: a person of whom nothing
    is known still counts as one.
    """

    offsets: NDArray[np.int64]
    items: NDArray[np.int32]
    names: tuple[str, ...]

    @classmethod
    def of(cls, sets: Iterable[Iterable[object]], names: Sequence[object] | None = None) -> Transactions:
        """Transactions from sets of item names; an item named twice in a set counts once.

        Without ``names`` the items are put in order: by number if all are whole numbers, else by letter. With it,
        an item outside ``names`` raises ``DataRefused``.
        """
        told = [frozenset(map(str, one)) for one in sets]
        known = in_order(set().union(*told)) if names is None else tuple(map(str, names))
        code = {name: index for index, name in enumerate(known)}
        if len(code) < len(known):
            raise DataRefused("item names must differ from each other")
        strange = sorted(set().union(*told) - code.keys())
        if strange:
            raise DataRefused(f"{len(strange)} items are not among the known ones, such as '{strange[0]}'")
        return cls.of_codes(([code[name] for name in one] for one in told), known)

    @classmethod
    def of_codes(cls, records: Iterable[Iterable[int]], names: tuple[str, ...]) -> Transactions:
        """Transactions from sets of codes into ``names``; no code may occur twice in a set."""
        ordered = [sorted(record) for record in records]
        offsets = np.zeros(len(ordered) + 1, dtype=np.int64)
        np.cumsum([len(record) for record in ordered], out=offsets[1:])
        return cls(offsets, np.fromiter(chain.from_iterable(ordered), np.int32, offsets[-1]), names)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transactions):
            return NotImplemented
        same = np.array_equal(self.offsets, other.offsets) and np.array_equal(self.items, other.items)
        return same and self.names == other.names

    def __hash__(self) -> int:
        return hash((len(self), self.names))

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        """The records in order, as tuples of codes."""
        flat, bounds = self.items.tolist(), self.offsets.tolist()
        for start, end in pairwise(bounds):
            yield tuple(flat[start:end])

    def record(self, index: int) -> tuple[int, ...]:
        """The codes of one record."""
        return tuple(self.items[self.offsets[index] : self.offsets[index + 1]].tolist())

    @property
    def lengths(self) -> Counts:
        """(n,): items per record."""
        return np.diff(self.offsets)

    @property
    def supports(self) -> Counts:
        """(items,): records that hold each item."""
        return np.bincount(self.items, minlength=len(self.names))

    def select(self, rows: ArrayLike) -> Transactions:
        """The records at ``rows``, in that order, under the same names."""
        chosen = np.asarray(rows, dtype=np.int64)
        lengths = self.lengths[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        places = np.arange(offsets[-1]) + np.repeat(self.offsets[chosen] - offsets[:-1], lengths)
        return Transactions(offsets, self.items[places], self.names)


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Names by number if all are whole numbers as Python writes them, else by letter."""
    told = list(names)
    if all(is_whole(name) for name in told):
        return tuple(sorted(told, key=int))
    return tuple(sorted(told))


def is_whole(name: str) -> bool:
    """Whether a name is a whole number without needless signs or zeros, so that name and number are one."""
    digits = name.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(name)) == name
