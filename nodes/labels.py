"""Labels that one holder has and all may learn from: how they leave, and how a holder's map learns."""

from __future__ import annotations

import numpy as np

from federated_anon.arrays import Labels
from federated_anon.errors import Code, MessageRefused, PolicyRefused
from federated_anon.lvq import majority, refined_units
from federated_anon.models import Prototypes
from federated_anon.privacy import equivalence_classes
from federated_anon.seeds import stream
from federated_anon.study import Study
from nodes.block import Block
from nodes.training import LocalMap, measured

NONE = np.zeros(0, dtype=np.int32)


def shared_labels(block: Block, units: Labels, study: Study) -> Labels:
    """The class of each record, or the most frequent one of its unit; empty if the labels are another holder's.

    Classes are numbered by first appearance; their names stay here. Missing is a class like any other.
    """
    if study.labels is None:
        raise PolicyRefused("this study uses no labels", Code.POLICY_LABELS)
    column = study.labels.column
    if column not in block.table.column_names:
        return NONE
    classes = equivalence_classes(block.table, [column])
    if study.labels.share == "cells":
        members = np.unique(units, return_inverse=True)[1]
        classes = majority(members, classes)[members]
    return classes.astype(np.int32)


def refined(points: np.ndarray, current: LocalMap, labels: Labels, study: Study, holder: str) -> LocalMap:
    """The map after wLVQ2 with the labels as shared; no unit below k."""
    if study.labels is None:
        raise PolicyRefused("this study uses no labels", Code.POLICY_LABELS)
    if len(labels) != len(points) or labels.min() < 0 or labels.max() >= len(points):
        raise MessageRefused("the labels do not fit the common records")
    rng = stream(study.seed, "labels", holder)
    found = refined_units(points, current.units, current.codebook, labels.astype(np.int64), study.privacy.k, rng)
    return measured(points, current.grid, Prototypes(found.codebook), found.units)
