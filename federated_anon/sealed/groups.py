"""Sealed splitting of a whole table in memory: the rounds that the protocol carries between holders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from federated_anon.arrays import Labels, Points
from federated_anon.errors import DataRefused
from federated_anon.microaggregation.estimator import require_k
from federated_anon.sealed.partition import NestedPartition, apply, open_groups, winners
from federated_anon.sealed.proposer import Proposer
from federated_anon.sealed.rules import SplitRules
from federated_anon.sealed.transcript import Level, Transcript, packed_gains


@dataclass(frozen=True, slots=True)
class SealedGroups:
    """The final partition and every message that led to it."""

    partition: NestedPartition
    transcript: Transcript

    @property
    def labels(self) -> Labels:
        """(n,): groups 0..g-1."""
        return self.partition.compact


def sealed_groups(
    blocks: Sequence[Points],
    k: int,
    seeds: Sequence[int],
    rules: SplitRules | None = None,
    proposer: type[Proposer] = Proposer,
) -> SealedGroups:
    """Groups of k to 2k-1 records from the columns of several holders, one block and one private seed each."""
    if len(blocks) == 0 or len({len(block) for block in blocks}) != 1 or len(blocks) != len(seeds):
        raise DataRefused("expected one block and one seed per holder, blocks of equally many records")
    records = len(blocks[0])
    rules = SplitRules(require_k(k, records)) if rules is None else rules
    draws = [np.random.default_rng(seed).permutation(records) for seed in seeds]
    proposers = [proposer(block, draw, rules) for block, draw in zip(blocks, draws, strict=True)]
    return split_down(proposers, records, rules)


def split_down(proposers: Sequence[Proposer], records: int, rules: SplitRules) -> SealedGroups:
    """Round after round until no group can be split."""
    partition, levels = NestedPartition.whole(records), []
    while len(open_groups(partition, rules.k)):
        level = one_level(proposers, partition)
        partition = apply(partition, level.winners, level.bits, rules)
        levels.append(level)
    return SealedGroups(partition, Transcript(records, rules, tuple(levels)))


def one_level(proposers: Sequence[Proposer], partition: NestedPartition) -> Level:
    """Gains of all holders, the winners, and their bits."""
    told = [proposer.gains(partition) for proposer in proposers]
    won = winners([one.values for one in told])
    bits = [one.bits(told[0].groups[won == holder]) for holder, one in enumerate(proposers)]
    return Level(tuple(packed_gains(one.values) for one in told), tuple(bits))
