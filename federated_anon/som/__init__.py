"""Self-organizing maps: train, assign, judge, and let the maps of several holders work together."""

from federated_anon.som.batch import BatchSOM
from federated_anon.som.collaboration import collaborative_update, lead_codebook, link_strength, match_units
from federated_anon.som.grid import Grid
from federated_anon.som.nearest import assign_units
from federated_anon.som.statistics import UnitStatistics, unit_statistics
from federated_anon.som.validity import davies_bouldin

__all__ = [
    "BatchSOM",
    "Grid",
    "UnitStatistics",
    "assign_units",
    "collaborative_update",
    "davies_bouldin",
    "lead_codebook",
    "link_strength",
    "match_units",
    "unit_statistics",
]
