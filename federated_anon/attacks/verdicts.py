"""What the coordinator learns of sensitive values from being told which groups to join.

It knows the values inside every released group, not whose they are. Of all ways to give them to the members, those
that would have led to other verdicts are ruled out; the ways that are left say how likely each member has each value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from federated_anon.arrays import Labels
from federated_anon.attacks.attempt import Attempt, exactly
from federated_anon.attacks.scene import Scene
from federated_anon.columns import Role
from federated_anon.ladder import party, top_rung
from federated_anon.messages import payloads as p
from federated_anon.privacy.kanonymity import equivalence_classes
from federated_anon.seeds import stream

WAYS = 2000
"""Ways to give values to members that are tried per released group."""
MOST_GROUPS = 300
CERTAIN = 0.999

Ways = NDArray[np.integer]
"""(ways, members): a value for each member, as a code."""


@dataclass(frozen=True, slots=True)
class Sharpened:
    """Expected share of right guesses with the verdicts and without, and the share of people known for certain."""

    success: float
    without: float
    certain: float


def sharpened(
    codes: Labels,
    proposed: Labels,
    final: Labels,
    seen: Callable[[Ways, Labels], NDArray[np.integer]],
    rng: Generator,
) -> Sharpened:
    """Best guesses of everybody's value; ``seen(ways, proposed groups of the members)`` is what would be told.

    Groups that were not joined tell nothing but what their values show; of the joined ones at most 300 are looked at.
    """
    parts = np.array([len(np.unique(proposed[final == group])) for group in range(int(final.max()) + 1)])
    sizes = np.bincount(final)
    best = np.zeros(len(sizes))
    np.maximum.at(best, final, np.bincount(final * (codes.max() + 1) + codes)[final * (codes.max() + 1) + codes])
    gained, certain = best.copy(), np.zeros(len(sizes))
    whole = np.flatnonzero(parts > 1)
    drawn = rng.permutation(whole)[:MOST_GROUPS]
    for group in drawn:
        members = np.flatnonzero(final == group)
        likely = posterior(codes[members], proposed[members], seen, rng)
        gained[group], certain[group] = likely.sum(), (likely > CERTAIN).sum()
    scale = len(whole) / max(len(drawn), 1)
    extra = scale * float((gained[drawn] - best[drawn]).sum())
    total = float(len(final))
    return Sharpened((best.sum() + extra) / total, best.sum() / total, scale * float(certain[drawn].sum()) / total)


def posterior(
    codes: Labels, proposed: Labels, seen: Callable[[Ways, Labels], NDArray[np.integer]], rng: Generator
) -> NDArray[np.float64]:
    """(members,): how likely the likeliest value of each member is, given what was seen."""
    ways = np.concatenate([codes[None], rng.permuted(np.tile(codes, (WAYS, 1)), axis=1)])
    told = seen(ways, proposed)
    left = ways[(told == told[0]).all(axis=1)]
    shares = np.stack([(left == code).mean(axis=0) for code in np.unique(codes)])
    return np.asarray(shares.max(axis=0))


def flags_seen(l: int) -> Callable[[Ways, Labels], NDArray[np.integer]]:  # noqa: E741  (the literature's own name)
    """The plain way: a flag per proposed group that shows fewer than l values."""

    def seen(ways: Ways, proposed: Labels) -> NDArray[np.integer]:
        return (values_shown(ways, proposed) < l).astype(np.int64)

    return seen


def heights_seen(l: int, count: int) -> Callable[[Ways, Labels], NDArray[np.integer]]:  # noqa: E741
    """The ladder: how high each proposed group climbs, of ``count`` in all."""

    def seen(ways: Ways, proposed: Labels) -> NDArray[np.integer]:
        numbers = np.unique(proposed)
        heights = np.zeros((len(ways), len(numbers)), dtype=np.int64)
        for rung in range(top_rung(count)):
            own, above = party(numbers, rung, count), party(numbers, rung + 1, count)
            short = values_shown(ways, party(proposed, rung, count)) < l
            fails = short[:, np.searchsorted(np.unique(own), own)] & (heights == rung)
            for place in np.unique(above):
                members = above == place
                heights[np.ix_(fails[:, members].any(axis=1), members)] = rung + 1
        return heights

    return seen


def values_shown(ways: Ways, parts: Labels) -> NDArray[np.integer]:
    """(ways, parts): how many different values each part shows."""
    present = [
        np.stack([(ways[:, parts == part] == code).any(axis=1) for part in np.unique(parts)], axis=1)
        for code in np.unique(ways)
    ]
    return np.sum(present, axis=0)


def by_heights(scene: Scene) -> list[Attempt]:
    """The coordinator's best guesses of sensitive values, with the heights that holders told."""
    l = scene.study.privacy.l  # noqa: E741
    if l is None or scene.study.privacy.diversity == "entropy" or scene.study.privacy.t is not None:
        return []
    proposed, found = scene.asked(p.CheckGroups, scene.first)[-1].groups.astype(np.int64), []
    for column in scene.named(Role.SENSITIVE):
        codes = equivalence_classes(scene.people, [column.name])
        seen = heights_seen(l, int(proposed.max()) + 1)
        guess = sharpened(codes, proposed, scene.groups, seen, stream(scene.study.seed, "attack heights"))
        found.append(
            Attempt(
                f"heights-{column.name}",
                "coordinator",
                "which groups were joined for l, and the values of the groups they ended in",
                f"'{column.name}' of a person",
                exactly(guess.success),
                guess.without,
                guess.without,
            )
        )
    return found
