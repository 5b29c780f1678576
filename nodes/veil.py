"""Representatives, with noise on the few groups whose exact means would give a record away.

The coordinator knows the means of cells and of groups; a record that is a bridge between the two partitions
would follow from them exactly (``federated_anon.bridges``). For the fewest groups that break every such chain,
each mean gets normal noise of the group's own standard deviation divided by its size: on the sum, which is what
the chain uses, as much as the group's own spread.

Coefficients on partners' codes are sums of records too, weighted as the partners' codes say; and whoever relays those
codes may have invented them. So a holder looks at the span of all it has sent: a record whose indicator lies in it is
known. Coefficients that would come near stay at home; groups that would complete it are veiled.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse.linalg import LinearOperator, lsqr

from federated_anon.arrays import Labels
from federated_anon.bridges import groups_to_veil
from federated_anon.columns import NUMERIC, Column
from federated_anon.crypto.agreement import derive
from federated_anon.crypto.signing import Identity
from federated_anon.representatives import representatives, rounded
from federated_anon.side.features import CHUNK_ROWS, SideFeatures
from federated_anon.som.parallel import slices

MOST_ENTRIES = 20_000_000
"""Largest records x features that are looked at together with the groups; beyond it features say little of a record."""
KNOWN = 1e-5


@dataclass(frozen=True, slots=True)
class Known:
    """What has left before the release: sums over cells, and sums weighted by features of partners' codes."""

    cells: Labels
    features: tuple[SideFeatures, ...] = ()


def gives_away(cells: Labels, features: Sequence[SideFeatures], k: int) -> bool:
    """Whether sums over cells and features come near to a single record: more than 1 - 1/k of it would be known.

    What is known of a record is its leverage, the squared length of its indicator inside the span of all sums.
    """
    if not features:
        return False
    most = 0.0
    for rows, part in _orthonormal(cells, features):
        leverage = 1 / np.bincount(cells)[cells[rows]] + np.einsum("ij,ij->i", part, part)
        most = max(most, float(leverage.max()))
    return most > 1 - 1 / k


def known_records(known: Known, groups: Labels, veiled: np.ndarray) -> np.ndarray:
    """(n,): whether a record follows from all sums, those of the groups that are not veiled among them.

    A random vector loses its projection on the span of the sums; what is left is 0 exactly at those records.
    """
    cells, n = known.cells, len(known.cells)
    spanned = np.concatenate([part for _, part in _orthonormal(cells, known.features)])
    in_cell, in_group = np.sqrt(np.bincount(cells))[cells], np.sqrt(np.bincount(groups))[groups]
    is_open = ~veiled[groups] / in_group
    parts = np.cumsum([int(cells.max()) + 1, len(veiled)])

    def spread(weights: np.ndarray) -> np.ndarray:
        own, other, rest = np.split(weights.ravel(), parts)
        return np.asarray(own[cells] / in_cell + other[groups] * is_open + spanned @ rest)

    def gather(values: np.ndarray) -> np.ndarray:
        flat = values.ravel()
        sums = np.bincount(cells, flat / in_cell), np.bincount(groups, flat * is_open)
        return np.concatenate([*sums, spanned.T @ flat])

    operator = LinearOperator((n, int(parts[1]) + spanned.shape[1]), matvec=spread, rmatvec=gather, dtype=float)
    drawn = np.random.default_rng(n).standard_normal(n)
    left = drawn - spread(lsqr(operator, drawn, atol=1e-12, btol=1e-12, iter_lim=2000)[0])
    found: np.ndarray = np.abs(left) < KNOWN
    return found


def _orthonormal(cells: Labels, features: Sequence[SideFeatures]) -> Iterator[tuple[slice, np.ndarray]]:
    """Rows of an orthonormal basis of all features, centred inside the cells, chunk by chunk."""
    chunks = slices(len(cells), CHUNK_ROWS)
    counts = np.bincount(cells)
    sums = np.zeros((len(counts), sum(one.width for one in features)))
    for rows in chunks:
        np.add.at(sums, cells[rows], _raw(features, rows))
    means = sums / counts[:, None]
    gram = np.zeros((sums.shape[1], sums.shape[1]))
    for rows in chunks:
        part = _raw(features, rows) - means[cells[rows]]
        gram += part.T @ part
    basis = _whitening(gram)
    for rows in chunks:
        yield rows, (_raw(features, rows) - means[cells[rows]]) @ basis


def _raw(features: Sequence[SideFeatures], rows: slice) -> np.ndarray:
    return np.concatenate([one.rows(rows) for one in features], axis=1)


def _whitening(gram: np.ndarray) -> np.ndarray:
    """(width, rank): what makes columns with these products orthonormal; those without length of their own drop out."""
    length = np.sqrt(np.maximum(np.diag(gram), 0.0))
    scale = np.where(length > 1e-9 * max(length.max(initial=0.0), 1.0), 1 / np.maximum(length, 1e-300), 0.0)
    values, vectors = np.linalg.eigh(gram * np.outer(scale, scale))
    kept = values > 1e-10 * max(values.max(initial=0.0), 1.0)
    basis: np.ndarray = scale[:, None] * vectors[:, kept] / np.sqrt(values[kept])
    return basis


@dataclass(frozen=True, slots=True)
class Veiled:
    """Representatives, one row per group, and how many groups got noise."""

    table: pa.Table
    groups: int


def veiled_representatives(
    table: pa.Table, columns: Sequence[Column], groups: Labels, known: Known, identity: Identity
) -> Veiled:
    """Representatives of all groups; the noise is drawn from the holder's own key and the groups, so runs repeat."""
    plain = representatives(table, columns, groups)
    chosen = _to_veil(known, groups)
    numeric = [column for column in columns if column.kind in NUMERIC]
    if not chosen.any() or not numeric:
        return Veiled(rounded(plain), 0)
    seed = derive(identity.secret, "veil", _digest(groups))
    rng = np.random.default_rng(np.frombuffer(seed, dtype=np.uint64))
    for column in numeric:
        noisy = _with_noise(plain[column.name], table[column.name], groups, chosen, rng)
        plain = plain.set_column(plain.column_names.index(column.name), column.name, noisy)
    return Veiled(rounded(plain), int(chosen.sum()))


def _to_veil(known: Known, groups: Labels) -> np.ndarray:
    """The groups that need noise so that no record follows from all that has left."""
    chosen = groups_to_veil(known.cells, groups)
    width = sum(one.width for one in known.features)
    while 0 < width * len(groups) <= MOST_ENTRIES:
        found = known_records(known, groups, chosen)
        more = np.bincount(groups[found], minlength=len(chosen)).astype(bool) & ~chosen
        if not more.any():
            break
        chosen |= more
    return chosen


def _digest(groups: Labels) -> str:
    return hashlib.sha256(np.ascontiguousarray(groups, dtype="<i8").tobytes()).hexdigest()


def _with_noise(
    means: pa.ChunkedArray,
    values: pa.ChunkedArray,
    groups: Labels,
    chosen: np.ndarray,
    rng: np.random.Generator,
) -> pa.Array:
    """``means`` with noise on the chosen groups, in the column's own type; missing stays missing."""
    noise = rng.standard_normal(len(chosen)) * _spread(values, groups) * chosen
    integral = _integral(means.type)
    flat = means.combine_chunks()
    if integral is None:
        moved = pc.add(flat.cast(pa.float64()), pa.array(noise))
        return moved.cast(means.type)
    whole = np.floor(noise + rng.random(len(noise)))  # To the nearest, small noise would mostly be none.
    shifted = pc.add(flat.cast(integral).cast(pa.int64()), pa.array(whole.astype(np.int64)))
    return shifted.cast(integral).cast(means.type)


def _integral(kind: pa.DataType) -> pa.DataType | None:
    """The integer type behind integers, dates and timestamps; None for floating point."""
    if pa.types.is_integer(kind):
        return kind
    if pa.types.is_date32(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_date64(kind) or pa.types.is_timestamp(kind) else None


def _spread(values: pa.ChunkedArray, groups: Labels) -> np.ndarray:
    """Standard deviation divided by size, per group, over the present values."""
    integral = _integral(values.type)
    numbers = (values.cast(integral) if integral else values).cast(pa.float64(), safe=False)
    present = pc.is_valid(values).to_numpy()
    x = np.where(present, pc.fill_null(numbers, 0.0).to_numpy(), 0.0)
    count = np.maximum(np.bincount(groups, present), 1)
    mean = np.bincount(groups, x) / count
    variance = np.bincount(groups, np.where(present, (x - mean[groups]) ** 2, 0.0)) / count
    spread: np.ndarray = np.sqrt(variance) / count
    return spread
