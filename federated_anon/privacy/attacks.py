"""Singling out and attribute inference, as attacks on a release, each beside what a blind guess achieves.

After Giomi, Boenisch, Wehmeyer & Tasnádi (2023), "A unified framework for quantifying privacy risk in synthetic data",
PoPETs 2023(2), 312-328. Neither needs to know which released row stands for whom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from numpy.typing import NDArray

from federated_anon.arrays import Labels, Points
from federated_anon.columns import NUMERIC, Column
from federated_anon.encoding import Encoding, column_of
from federated_anon.errors import DataRefused
from federated_anon.privacy.linkage import CELLS, TIE, Rate, wilson
from federated_anon.quantities import quantities
from federated_anon.tally import ranked

TOLERANCE = 0.05
"""A number counts as inferred when it is guessed within this share of the column's range."""


@dataclass(frozen=True, slots=True)
class AttackRisk:
    """How often the attack succeeds, and the same attack without the release's joint information."""

    success: Rate
    baseline: Rate

    @property
    def advantage(self) -> float:
        """What the release adds, as a share of what the baseline leaves; 0 where it adds nothing."""
        left = 1.0 - self.baseline.value
        return max((self.success.value - self.baseline.value) / left, 0.0) if left > 0 else 0.0


def singling_out(
    original: pa.Table,
    release: pa.Table,
    columns: Sequence[Column],
    rng: Generator,
    guesses: int = 2000,
    width: int = 3,
) -> AttackRisk:
    """Predicates read off the release that hold for exactly one original.

    A guess takes ``width`` columns of one released row: for each number "at least" or "at most" its value, whichever
    side of the median it is on, for each category "equals". The baseline draws each value from another row.
    """
    if original.num_rows == 0 or release.num_rows == 0 or not columns:
        raise DataRefused("singling out needs records, a release and at least one column")
    pairs = [_comparable(original, release, column) for column in columns]
    wide = min(width, len(columns))
    success = sum(_isolates(pairs, rng, wide, joint=True) for _ in range(guesses))
    blind = sum(_isolates(pairs, rng, wide, joint=False) for _ in range(guesses))
    return AttackRisk(wilson(float(success), guesses), wilson(float(blind), guesses))


def attribute_inference(
    original: pa.Table,
    release: pa.Table,
    known: Sequence[Column],
    secret: Column,
    rng: Generator,
    sample: int = 2000,
) -> AttackRisk:
    """Guess a person's ``secret`` from the released rows nearest to what is known of them.

    The guess is the commonest value among the nearest rows (the median of a number, right within 5 % of the range).
    The baseline guesses the same value for everybody, the commonest of the release. A person counts as the chance of
    a right guess where values tie.
    """
    if original.num_rows == 0 or release.num_rows == 0:
        raise DataRefused("attribute inference needs records and a release")
    people = np.sort(rng.choice(original.num_rows, size=min(sample, original.num_rows), replace=False))
    encoding = Encoding.fit(original, known)
    targets = original.take(pa.array(people))
    truth, published, tolerance = _secrets(targets, original, release, secret)
    near = _nearest_rows(encoding.encode(targets), encoding.encode(release))
    guess = _medians if secret.kind in NUMERIC else _modes
    right = sum(_chance(guess(published[rows]), truth[i], tolerance) for i, rows in enumerate(near))
    everybody = guess(published)
    blind = sum(_chance(everybody, one, tolerance) for one in truth)
    return AttackRisk(wilson(right, len(people)), wilson(blind, len(people)))


@dataclass(frozen=True, slots=True)
class _Pair:
    """One column of both tables in one code; numbers are compared by size."""

    original: NDArray[np.float64]
    release: NDArray[np.float64]
    middle: float
    is_number: bool


def _comparable(original: pa.Table, release: pa.Table, column: Column) -> _Pair:
    before, after = column_of(original, column.name), column_of(release, column.name)
    if column.kind in NUMERIC:
        parts = [quantities(one, column.name) for one in (before, after)]
        first, second = (np.where(p.present, p.values.astype(np.float64), np.nan) for p in parts)
        return _Pair(first, second, float(np.nanmedian(first)) if parts[0].present.any() else 0.0, True)
    both = ranked(pa.chunked_array([_spelled(before), _spelled(after)]), column.levels).positions.astype(np.float64)
    return _Pair(both[: len(before)], both[len(before) :], 0.0, False)


def _spelled(values: pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks().cast(pa.string())


def _isolates(pairs: Sequence[_Pair], rng: Generator, width: int, joint: bool) -> bool:
    chosen = rng.choice(len(pairs), size=width, replace=False)
    row = int(rng.integers(len(pairs[0].release)))
    holds = np.ones(len(pairs[0].original), dtype=bool)
    for number in chosen:
        pair = pairs[number]
        value = pair.release[row if joint else int(rng.integers(len(pair.release)))]
        holds &= _predicate(pair, value)
    return int(holds.sum()) == 1


def _predicate(pair: _Pair, value: float) -> NDArray[np.bool_]:
    """Whose originals satisfy the guess; a missing number is guessed to be missing."""
    if not pair.is_number:
        return np.asarray(pair.original == value)
    if np.isnan(value):
        return np.isnan(pair.original)
    return np.asarray(pair.original >= value if value > pair.middle else pair.original <= value)


def _secrets(
    targets: pa.Table, original: pa.Table, release: pa.Table, secret: Column
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """True values of the people, values of the release in the same code, and how near a guess must be."""
    if secret.kind in NUMERIC:
        found = _comparable(original, release, secret)
        own = _comparable(targets, release, secret).original
        spread = float(np.ptp(found.original[~np.isnan(found.original)])) if (~np.isnan(found.original)).any() else 0.0
        return own, found.release, TOLERANCE * spread
    pair = _comparable(targets, release, secret)
    return pair.original, pair.release, 0.0


def _nearest_rows(people: Points, published: Points) -> list[Labels]:
    """Per person, all released rows that are equally near."""
    lengths = np.einsum("ij,ij->i", published, published)
    step = max(1, CELLS // len(published))
    found: list[Labels] = []
    for start in range(0, len(people), step):
        part = people[start : start + step]
        distance = lengths - 2.0 * (part @ published.T)
        limit = distance.min(axis=1) + TIE * (np.einsum("ij,ij->i", part, part) + 1.0)
        found += [np.flatnonzero(row <= most) for row, most in zip(distance, limit, strict=True)]
    return found


def _modes(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The commonest values, all that tie."""
    distinct, counts = np.unique(values, return_counts=True)
    return np.asarray(distinct[counts == counts.max()])


def _medians(values: NDArray[np.float64]) -> NDArray[np.float64]:
    present = values[~np.isnan(values)]
    return np.array([np.median(present) if len(present) else np.nan])


def _chance(guesses: NDArray[np.float64], truth: float, tolerance: float) -> float:
    """Chance that one of equally good guesses is right."""
    if np.isnan(truth):
        return float(np.isnan(guesses).mean())
    return float((np.abs(guesses - truth) <= tolerance).mean())
