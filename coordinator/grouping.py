"""Coded records -> groups of at least k, as the study's method says; and merging of groups that fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from federated_anon.arrays import Labels, Points
from federated_anon.errors import MessageRefused
from federated_anon.lvq import refined_units
from federated_anon.messages.payloads import Coded, Corrected
from federated_anon.methods import Grouping
from federated_anon.microaggregation import (
    HAC,
    MDAV,
    TFRP,
    Blocked,
    JointCells,
    KMeansMicroaggregation,
    MaximumDistance,
    Microaggregation,
    VariableMDAV,
    best_groups,
    merge_small_units,
    split_large_groups,
)
from federated_anon.microaggregation.best import LARGE, Route
from federated_anon.privacy import smallest_class
from federated_anon.privacy.kanonymity import joint_labels
from federated_anon.seeds import stream, stream_seed
from federated_anon.side import Code, Correction, rebuild
from federated_anon.som import BatchSOM, Grid
from federated_anon.study import Study

ROUTES = {
    Route.SEARCH: "search over the whole table",
    Route.BLOCKS: "search in blocks of neighbouring records, because the table is large",
}

NO_LABELS = np.zeros(0, dtype=np.int32)

TEXTBOOK: Mapping[Grouping, type[Microaggregation]] = {
    Grouping.MDAV: MDAV,
    Grouping.VARIABLE_MDAV: VariableMDAV,
    Grouping.MAXIMUM_DISTANCE: MaximumDistance,
    Grouping.TFRP: TFRP,
    Grouping.HAC: HAC,
    Grouping.KMEANS: KMeansMicroaggregation,
}
"""Groupings from the literature, run on the joined codes as they stand there."""

LARGE_HAC = 4_000
"""Records from which hierarchical clustering takes long."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """The proposed groups, the coded records they were formed from, and how."""

    labels: Labels
    points: Points
    route: str
    published_k: int


def grouped(
    study: Study, codes: Mapping[str, Coded], corrections: Mapping[str, Corrected], labels: Labels = NO_LABELS
) -> Grouped:
    """Groups of the joined codes of all holders; ``labels`` refine a global map, where the method has both."""
    points = joined_points(study, codes, corrections)
    if study.preset.grouping is Grouping.SEARCH:
        found = best_groups(points, study.privacy.k, stream_seed(study.seed, "groups"))
        return Grouped(found.labels, points, ROUTES[found.route], smallest_class(found.labels))
    if study.preset.grouping in TEXTBOOK:
        return textbook_groups(study.preset.grouping, points, study.privacy.k, stream_seed(study.seed, "groups"))
    if study.preset.grouping is Grouping.JOINT_CELLS:
        return joint_groups(study, points, codes)
    return global_map_groups(study, points, labels)


def joined_points(study: Study, codes: Mapping[str, Coded], corrections: Mapping[str, Corrected]) -> Points:
    """(records, all encoded columns): what the coordinator knows of the records, rebuilt from the codes."""
    k = study.privacy.k
    made = [as_code(name, codes[name], k) for name in study.holders]
    later = [as_correction(corrections[name]) for name in study.holders] if corrections else ()
    return np.concatenate(rebuild(made, later), axis=1)


def as_code(holder: str, coded: Coded, k: int) -> Code:
    """A code as received, after a look at its shape and at the size of its cells."""
    sizes = np.bincount(coded.cells) if len(coded.cells) and coded.cells.min() >= 0 else np.zeros(1, dtype=int)
    if len(sizes) != len(coded.prototypes) or sizes.min() < k:
        raise MessageRefused(f"the code of '{holder}' does not hold cells of at least {k} records with one mean each")
    return Code(k, coded.cells, coded.prototypes, coded.coefficients, coded.strength)


def as_correction(corrected: Corrected) -> Correction | None:
    """A correction as received; an empty one is none."""
    if not len(corrected.coefficients):
        return None
    return Correction(corrected.coefficients, corrected.strength)


def textbook_groups(grouping: Grouping, points: Points, k: int, seed: int) -> Grouped:
    """Groups by a method of the literature; its time is quadratic, so a large table is cut into blocks first."""
    method = TEXTBOOK[grouping](k)
    if len(points) < (LARGE_HAC if grouping is Grouping.HAC else LARGE):
        labels, route = method.fit(points).labels_, f"{grouping} over the whole table"
    else:
        labels = Blocked(k, method=method, cell=max(1024, 2 * k), sweeps=0, seed=seed).fit(points).labels_
        route = f"{grouping} in blocks of neighbouring records, because the table is large"
    return Grouped(labels, points, route, smallest_class(labels))


def joint_groups(study: Study, points: Points, codes: Mapping[str, Coded]) -> Grouped:
    """The combinations of all holders' cells, those below k merged with the nearest."""
    labels = JointCells(study.privacy.k, seed=stream_seed(study.seed, "groups")).fit(points).labels_
    joint = joint_labels([codes[name].cells for name in study.holders], len(points))
    return Grouped(labels, points, "combinations of cells of all holders", smallest_class(joint))


def global_map_groups(study: Study, points: Points, labels: Labels = NO_LABELS) -> Grouped:
    """Groups as units of a global map; those below k dissolve, smallest first; C-TCA also splits the large ones."""
    k, grid = study.privacy.k, Grid.for_records(len(points), study.map.scale)
    som = BatchSOM(grid.rows, grid.cols, passes=study.map.passes).fit(points, stream(study.seed, "global map"))
    units, codebook = som.assign(points), som.codebook_
    published_k = smallest_class(units)
    if len(labels):
        after = refined_units(points, units, codebook, labels, k, stream(study.seed, "global labels"))
        units, codebook = after.units, after.codebook
    groups = merge_small_units(points, units, codebook, k)
    if study.preset.grouping is Grouping.CONSTRAINED_MAP:
        groups = split_large_groups(points, groups, k)
    groups = np.unique(groups, return_inverse=True)[1]
    return Grouped(groups, points, f"global map of {grid.rows} x {grid.cols} units", published_k)
