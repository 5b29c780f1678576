"""All attackers, one after the other, on one simulated study."""

from __future__ import annotations

from federated_anon.attacks.attempt import Attempt
from federated_anon.attacks.keys import dictionary
from federated_anon.attacks.links import by_coalition, by_coordinator, by_holder, by_release
from federated_anon.attacks.scene import Scene
from federated_anon.attacks.sums import bridging, differencing
from federated_anon.attacks.values import inference, partners_values
from federated_anon.attacks.verdicts import by_heights


def attempts(scene: Scene) -> list[Attempt]:
    """Every attack that the messages of this study allow, in a fixed order."""
    partners = (partners_values(scene, name) for name in scene.study.holders)
    return [
        *by_coordinator(scene),
        by_release(scene),
        *(by_holder(scene, name) for name in scene.study.holders),
        *(one for one in partners if one is not None),
        differencing(scene),
        bridging(scene),
        *dictionary(scene),
        *by_coalition(scene),
        *inference(scene),
        *by_heights(scene),
    ]
