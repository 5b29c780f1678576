"""Groupings of at least k records, one method per file; each is fitted as ``MDAV(k=5).fit(X).labels_``."""

from federated_anon.microaggregation.best import Grouping, Route, best_groups
from federated_anon.microaggregation.blocks import Blocked
from federated_anon.microaggregation.estimator import Microaggregation
from federated_anon.microaggregation.hac import HAC
from federated_anon.microaggregation.joint import JointCells
from federated_anon.microaggregation.kmeans import KMeansMicroaggregation
from federated_anon.microaggregation.loss import group_means, information_loss
from federated_anon.microaggregation.maximum_distance import MaximumDistance
from federated_anon.microaggregation.mdav import MDAV
from federated_anon.microaggregation.refine import Refine
from federated_anon.microaggregation.search import LocalSearch
from federated_anon.microaggregation.split import split_large_groups
from federated_anon.microaggregation.tfrp import TFRP
from federated_anon.microaggregation.units import UnitGroups, merge_small_units
from federated_anon.microaggregation.vmdav import VariableMDAV

__all__ = [
    "HAC",
    "MDAV",
    "TFRP",
    "Blocked",
    "Grouping",
    "JointCells",
    "KMeansMicroaggregation",
    "LocalSearch",
    "MaximumDistance",
    "Microaggregation",
    "Refine",
    "Route",
    "UnitGroups",
    "VariableMDAV",
    "best_groups",
    "group_means",
    "information_loss",
    "merge_small_units",
    "split_large_groups",
]
