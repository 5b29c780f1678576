"""All that crosses while groups are formed, and what it tells about single records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Labels
from federated_anon.privacy.kanonymity import joint_labels, require_k
from federated_anon.sealed.partition import NestedPartition, apply, winners
from federated_anon.sealed.rules import SplitRules


@dataclass(frozen=True, slots=True)
class Level:
    """What one round shows: every holder's gains, float32, and its bits for the groups it won, in roster order."""

    gains: tuple[bytes, ...]
    bits: tuple[bytes, ...]

    @property
    def winners(self) -> Labels:
        """The winner of each group that was open."""
        return winners([np.frombuffer(one, dtype="<f4") for one in self.gains])

    @property
    def size(self) -> int:
        """Bytes that left the holders."""
        return sum(map(len, self.gains + self.bits))


@dataclass(frozen=True, slots=True)
class Transcript:
    """Every message of the holders from the whole table to the final groups."""

    records: int
    rules: SplitRules
    levels: tuple[Level, ...]

    @property
    def size(self) -> int:
        """Bytes that left the holders."""
        return sum(level.size for level in self.levels)

    def partitions(self) -> Iterator[NestedPartition]:
        """The partition after each level, from the messages alone."""
        partition = NestedPartition.whole(self.records)
        for level in self.levels:
            partition = apply(partition, level.winners, level.bits, self.rules)
            yield partition


def joint_classes(transcript: Transcript) -> Labels:
    """(n,): the classes of records that no reader of all messages together can tell apart.

    Every partition shown counts, whether it refines the one before or not, so that a transcript that is not nested
    shows itself by classes below k.
    """
    classes: Labels = np.zeros(transcript.records, dtype=np.int64)
    for partition in transcript.partitions():
        classes = joint_labels([classes, partition.labels], transcript.records)
    return classes


def require_sealed(transcript: Transcript, k: int) -> None:
    """Raise ``GuaranteeBroken`` unless all per-record messages together leave at least ``k`` records alike."""
    require_k(joint_classes(transcript), k)


def packed_gains(values: NDArray[np.floating]) -> bytes:
    """Gains as they travel: float32, little end first."""
    return np.asarray(values, dtype="<f4").tobytes()
