"""Personal k: each record in a group at least as large as its own wish."""

from __future__ import annotations

from collections import Counter

import numpy as np

from federated_anon.arrays import Labels
from federated_anon.errors import GuaranteeBroken


def unmet_groups(groups: Labels, wishes: Labels) -> np.ndarray:
    """(g,): whether a group 0..g-1 is smaller than the largest wish of its records."""
    sizes = np.bincount(groups)
    largest = np.zeros(len(sizes), dtype=np.int64)
    np.maximum.at(largest, groups, wishes)
    unmet: np.ndarray = sizes < largest
    return unmet


def require_wishes(groups: Labels, wishes: Labels) -> None:
    """Raise ``GuaranteeBroken`` unless every record is among as many as it wished; counted record by record."""
    owners = groups.tolist()
    sizes = Counter(owners)
    unmet = sum(sizes[owner] < wish for owner, wish in zip(owners, wishes.tolist(), strict=True))
    if unmet:
        raise GuaranteeBroken(f"personal k: {unmet} records stand in groups smaller than they wished")
