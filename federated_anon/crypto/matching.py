"""What several sorted sets have in common."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]
Positions: TypeAlias = NDArray[np.int32]


def common_positions(sets: Mapping[str, Words]) -> dict[str, Positions]:
    """For each set the positions of the numbers that all have, in rising order; every set must rise strictly."""
    common = reduce(_intersection, sets.values())
    return {name: np.searchsorted(own, common).astype(np.int32) for name, own in sets.items()}


def _intersection(left: Words, right: Words) -> Words:
    place = np.minimum(np.searchsorted(right, left), max(len(right) - 1, 0))
    return left[right[place] == left] if len(right) else right
