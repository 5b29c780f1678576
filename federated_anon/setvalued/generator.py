"""Set-valued data like click streams: few popular items, many short sets, some very long ones, items that go together.

Defaults resemble BMS-WebView-1 (59,602 records, 497 items, 2.5 items per record, the longest 267, the most frequent
item in 6 % of the records) in those figures; no record of it is used.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from federated_anon.arrays import Weights
from federated_anon.seeds import stream
from federated_anon.setvalued.transactions import Transactions

LONGEST = 267
LENGTH_EXPONENT = 2.06
POPULARITY_SHIFT = 8.0
NEIGHBOURS = 0.7
"""Share of a record's items that lie near its first one, as pages of one shop department do."""
REACH = 0.25
"""Parameter of the geometric distance between such items."""


def power_law(records: int, items: int = 497, seed: int = 0) -> Transactions:
    """Records whose lengths and item frequencies follow power laws.

    Length ``l`` has probability proportional to ``l ** -2.06`` up to 267, the item of rank ``r`` to ``1 / (r + 8)``; an
    item drawn twice for a record counts once.
    """
    rng = stream(seed, "setvalued", "generator")
    lengths = drawn(rng, records, np.arange(1, LONGEST + 1) ** -LENGTH_EXPONENT) + 1
    rows = np.repeat(np.arange(records), lengths)
    starts = np.cumsum(lengths) - lengths
    popular = 1.0 / (np.arange(items) + POPULARITY_SHIFT)
    codes = drawn(rng, len(rows), popular)
    near = codes[starts][rows] + rng.geometric(REACH, len(rows)) * rng.choice([-1, 1], len(rows))
    is_near = rng.random(len(rows)) < NEIGHBOURS
    is_near[starts] = False
    codes = np.where(is_near, np.clip(near, 0, items - 1), codes)
    pairs = np.unique(rows * items + codes)
    offsets = np.zeros(records + 1, dtype=np.int64)
    np.cumsum(np.bincount(pairs // items, minlength=records), out=offsets[1:])
    return Transactions(offsets, (pairs % items).astype(np.int32), tuple(map(str, range(items))))


def drawn(rng: np.random.Generator, count: int, weights: Weights) -> NDArray[np.int64]:
    """Indices drawn with the given weights."""
    return np.searchsorted(np.cumsum(weights / weights.sum())[:-1], rng.random(count), side="right")
