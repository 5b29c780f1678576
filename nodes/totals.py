"""Numbers of this holder that leave only as part of a total over all holders."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from federated_anon.crypto.agreement import agreement_key
from federated_anon.crypto.sums import Circle, mask, to_fixed
from federated_anon.encoding import ColumnLoss
from federated_anon.messages import Step
from federated_anon.messages.payloads import Evaluated
from federated_anon.study import Study
from nodes.alignment import Roster
from nodes.guard import Answer
from nodes.settings import HolderSettings

NOTHING = np.zeros(0)


def circle_of(roster: Roster, study: Study, settings: HolderSettings) -> Circle:
    """The holders of the study as this one adds up with them, under the keys it checked."""
    own = agreement_key(settings.identity, study.digest)
    return Circle(study.digest, roster.holders, roster.agreements, own, settings.name)


def masked_loss(losses: Sequence[ColumnLoss], circle: Circle) -> Answer:
    """Squared error and total squares of all own columns together, masked; it has one answer per study, for good."""
    sums = np.array([sum(loss.sse for loss in losses), sum(loss.sst for loss in losses)])
    masked = mask(to_fixed(sums, len(circle.holders)), circle, Step.EVALUATE, "0")
    return Answer(Evaluated((), NOTHING, NOTHING, masked, ""), once=True)
