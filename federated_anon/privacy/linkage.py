"""Record linkage: how often somebody who knows a person's own values finds that person's record.

Measured as an attack on the release and stated against guessing, with intervals. Domingo-Ferrer & Torra
(2001), "A quantitative comparison of disclosure control methods for microdata", ch. 6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from federated_anon.arrays import Counts, Labels, Points
from federated_anon.errors import DataRefused
from federated_anon.privacy.kanonymity import joint_labels

CELLS = 4_000_000
"""Most distances held at once."""

TIE = 1e-12
"""Squared distances this close, relative to the squared lengths, are ties: rounding cannot tell them."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A share with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class LinkageRisk:
    """What an attack on the release achieves, what guessing achieves, and what k promises at most."""

    linked: Rate
    by_chance: Rate
    bound: float


@dataclass(frozen=True, slots=True)
class _Release:
    """The distinct published points: their group and how many records stand on each."""

    points: Points
    group: Labels
    records: Counts


def wilson(successes: float, trials: int, z: float = 1.959963984540054) -> Rate:
    r"""Share of successes with its score interval; ``successes`` may be expected, hence fractional.

    .. math:: \frac{\hat p + z^2/2n \pm z \sqrt{\hat p (1 - \hat p)/n + z^2/4n^2}}{1 + z^2/n}

    Wilson (1927), J. Am. Stat. Assoc. 22(158), 209-212.
    """
    if trials < 1:
        raise DataRefused("a rate needs at least one trial")
    share, square = successes / trials, z * z / trials
    half = z * math.sqrt(max(share * (1 - share), 0.0) / trials + square / (4 * trials))
    middle = share + square / 2
    low, high = (middle - half) / (1 + square), (middle + half) / (1 + square)
    return Rate(share, min(max(low, 0.0), share), max(min(high, 1.0), share))


def linkage_risk(
    original: Points,
    released: Points,
    labels_of_original: Labels,
    released_group: Labels,
    rng: Generator,
    sample: int = 2000,
) -> LinkageRisk:
    """Attack ``sample`` people drawn without replacement: each is linked to the nearest published record.

    ``original`` (n, d) and ``released`` (m, d) are encoded alike; a person's own record stands somewhere in
    the group of the same number. The attacker picks evenly among the nearest records, and inside the right
    group cannot tell its records apart: a person counts as the share of nearest records in their own group,
    divided by the size of that group. ``bound`` is one over the smallest published group.
    """
    if len(original) == 0 or len(released) == 0:
        raise DataRefused(f"linkage needs records, got {len(original)} people and {len(released)} published")
    return _attacked(original, labels_of_original, _collapse(released, released_group), rng, sample)


def representative_linkage(
    original: Points, representatives: Points, groups: Labels, rng: Generator, sample: int = 2000
) -> LinkageRisk:
    """The same attack where all records of group g are published as row g of ``representatives``."""
    sizes = np.bincount(groups, minlength=len(representatives))
    if len(original) == 0 or len(sizes) != len(representatives) or sizes.min() == 0:
        raise DataRefused(f"linkage needs people in each of {len(representatives)} groups")
    return _attacked(original, groups, _Release(representatives, np.arange(len(sizes)), sizes), rng, sample)


def _attacked(original: Points, own: Labels, release: _Release, rng: Generator, sample: int) -> LinkageRisk:
    people = np.sort(rng.choice(len(original), size=min(sample, len(original)), replace=False))
    success = _expected_success(original[people], own[people], release)
    sizes = np.bincount(np.unique(release.group, return_inverse=True)[1], release.records)
    guess = 1.0 / float(sizes.sum())
    return LinkageRisk(
        linked=wilson(float(success.sum()), len(people)),
        by_chance=Rate(guess, guess, guess),
        bound=1.0 / float(sizes.min()),
    )


def indices_linkage(indices: Sequence[Labels]) -> float:
    """Expected share of people found by somebody who knows each one's exact combination of indices.

    ``indices`` holds one (n,) array per holder, the coordinator's view of each record. A combination shared
    by c records is guessed right once in c, so that the mean over people is (distinct combinations) / n.
    """
    if not indices or len(indices[0]) == 0:
        raise DataRefused("linkage of indices needs at least one holder and one record")
    combined = joint_labels(indices, len(indices[0]))
    return (int(combined.max()) + 1) / len(combined)


def _collapse(released: Points, group: Labels) -> _Release:
    """One point per group where all its records are published alike; otherwise every record is a point."""
    _, first, place, sizes = np.unique(group, return_index=True, return_inverse=True, return_counts=True)
    if all(np.array_equal(released[:, j], released[first, j][place]) for j in range(released.shape[1])):
        return _Release(released[first], group[first], sizes)
    return _Release(released, group, np.ones(len(group), dtype=np.int64))


def _expected_success(people: Points, own: Labels, release: _Release) -> NDArray[np.float64]:
    """(s,): each person's chance of being linked, some rows of the distance table at a time."""
    step = max(1, CELLS // len(release.points))
    lengths = np.einsum("ij,ij->i", release.points, release.points)
    parts = [
        _chance(_nearest(people[i : i + step], release.points, lengths), own[i : i + step], release)
        for i in range(0, len(people), step)
    ]
    return np.concatenate(parts) / _size_of(own, release)


def _nearest(people: Points, published: Points, lengths: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(s, m): whether a published point is among a person's nearest; the person's own length cancels out."""
    distance = lengths - 2.0 * (people @ published.T)
    scale = np.einsum("ij,ij->i", people, people) + 1.0
    return distance <= (distance.min(axis=1) + TIE * scale)[:, None]


def _chance(nearest: NDArray[np.bool_], own: Labels, release: _Release) -> NDArray[np.float64]:
    """(s,): share of the nearest records that stand in the person's own group."""
    person, point = np.nonzero(nearest)
    is_own = release.group[point] == own[person]
    tied = np.bincount(person, release.records[point], len(own))
    return np.bincount(person, release.records[point] * is_own, len(own)) / tied


def _size_of(own: Labels, release: _Release) -> Counts:
    """(s,): published records of each person's group; any size will do for an unpublished one, never linked."""
    groups, place = np.unique(release.group, return_inverse=True)
    sizes = np.bincount(place, release.records)
    at = np.minimum(np.searchsorted(groups, own), len(groups) - 1)
    return sizes[at]
