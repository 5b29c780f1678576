r"""Differentially private representatives: sums over groups on a grid, exact integer noise, then means.

A column's declared bounds are cut into ``REACH`` steps; a value outside is moved to the bound, a missing one to the
middle. Replacing one person moves the sum of one group by at most ``REACH`` steps, so it moves the mean by the
range over the group's size: what is added is noise of that measure. Nothing about bounds or steps is taken from data.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from federated_anon.arrays import Labels
from federated_anon.columns import Column
from federated_anon.crypto.agreement import derive
from federated_anon.errors import Code, PolicyRefused
from federated_anon.privacy.noise import Coins, discrete_gaussian, discrete_laplace, gaussian_sigma, laplace_scale
from federated_anon.quantities import quantities, restored
from federated_anon.study import ReleaseSettings

REACH = 4096
"""Steps between the bounds of a column: fine beside any noise, whose scale is at least as many."""


def noised(
    table: pa.Table, columns: Sequence[Column], groups: Labels, release: ReleaseSettings, secret: bytes
) -> pa.Table:
    """Representatives of all groups with noise; all columns together spend the study's epsilon (and delta).

    ``secret`` must be of this holder alone and of these data, study and groups: noise that is used twice cancels out.
    """
    arrays = [_column(table[one.name], one, groups, len(columns), release, secret) for one in columns]
    return pa.table(arrays, schema=pa.schema([pa.field(one.name, table[one.name].type) for one in columns]))


def _column(
    values: pa.ChunkedArray, column: Column, groups: Labels, sharing: int, release: ReleaseSettings, secret: bytes
) -> pa.Array:
    if column.bounds is None:
        raise PolicyRefused(f"column '{column.name}' has no bounds", Code.POLICY_NOISE)
    unit = 10**values.type.scale if pa.types.is_decimal(values.type) else 1  # Decimals are counted in last places.
    low, high = column.bounds[0] * unit, column.bounds[1] * unit
    found = quantities(values, column.name)
    share = (np.clip(found.values.astype(float), low, high) - low) / (high - low)
    steps = np.where(found.present, np.rint(share * REACH), REACH // 2).astype(np.int64)
    sizes = np.bincount(groups)
    sums = np.zeros(len(sizes), dtype=np.int64)
    np.add.at(sums, groups, steps)
    noisy = sums + _noise(len(sizes), sharing, release, Coins(derive(secret, column.name)))
    means = low + (high - low) * np.clip(noisy / (sizes * REACH), 0.0, 1.0)
    whole = np.clip(np.rint(means), np.ceil(low), np.floor(high)) if found.is_exact else means
    return restored(whole, np.ones(len(sizes), dtype=bool), values.type)


def _noise(count: int, sharing: int, release: ReleaseSettings, coins: Coins) -> np.ndarray:
    if release.noise == "laplace":
        return discrete_laplace(laplace_scale(REACH, sharing, release.epsilon), count, coins)
    return discrete_gaussian(gaussian_sigma(REACH, sharing, release.epsilon, release.delta), count, coins)
