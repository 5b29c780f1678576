"""How well a partition, or the classes of a table, separate: three indices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from federated_anon.arrays import Labels, Points
from federated_anon.errors import DataRefused
from federated_anon.som.validity import davies_bouldin

MOST = 4000
"""Records of which a silhouette is taken, as it looks at all pairs; more are sampled."""


@dataclass(frozen=True, slots=True)
class Validity:
    """Silhouette from -1 to 1 and Calinski-Harabasz: higher is better; Davies-Bouldin: lower is better."""

    silhouette: float
    davies_bouldin: float
    calinski_harabasz: float


def validity(points: Points, labels: Labels, seed: int = 0) -> Validity:
    """The three indices; ``DataRefused`` without at least two groups and one of two records.

    Rousseeuw (1987), J. Comput. Appl. Math. 20, 53-65; Davies & Bouldin (1979), IEEE PAMI-1(2), 224-227;
    Caliński & Harabasz (1974), Commun. Stat. 3(1), 1-27.
    """
    from sklearn.metrics import calinski_harabasz_score, silhouette_score

    groups = len(np.unique(labels))
    if not 2 <= groups < len(points):
        raise DataRefused(f"indices need 2 groups at least and fewer than records, got {groups} of {len(points)}")
    sample = MOST if len(points) > MOST and len(np.unique(labels)) < MOST // 2 else None
    return Validity(
        float(silhouette_score(points, labels, sample_size=sample, random_state=seed)),
        davies_bouldin(points, labels),
        float(calinski_harabasz_score(points, labels)),
    )
