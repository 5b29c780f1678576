"""Names for the array shapes that travel through the project."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Points: TypeAlias = NDArray[np.floating[Any]]
"""(n, d): one encoded record per row."""

Labels: TypeAlias = NDArray[np.integer[Any]]
"""(n,): the group, cell or unit of each record, counted from 0."""

Counts: TypeAlias = NDArray[np.integer[Any]]
"""(g,): records per group."""

Weights: TypeAlias = NDArray[np.floating[Any]]
"""(n,) or (d,): non-negative factors."""

Codebook: TypeAlias = NDArray[np.floating[Any]]
"""(units, d): one prototype per unit."""
