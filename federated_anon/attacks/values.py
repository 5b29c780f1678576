"""Attribute inference: sensitive values of known people, and a partner's values read off what a holder was shown."""

from __future__ import annotations

import numpy as np

from federated_anon.arrays import Labels, Points
from federated_anon.attacks.attempt import Attempt, exactly
from federated_anon.attacks.scene import Scene
from federated_anon.columns import Role
from federated_anon.messages import payloads as p
from federated_anon.privacy.kanonymity import equivalence_classes


def inference(scene: Scene) -> list[Attempt]:
    """Whoever knows a person's group takes its commonest sensitive value; the baseline takes everybody's."""
    found = []
    for column in scene.named(Role.SENSITIVE):
        codes = equivalence_classes(scene.people, [column.name])
        success = float(commonest(codes, scene.groups)[1].mean())
        baseline = float(np.bincount(codes).max() / scene.records)
        found.append(
            Attempt(
                f"inference-{column.name}",
                "recipient",
                "every person's group, and the release",
                f"'{column.name}' of a person",
                exactly(success),
                baseline,
                diversity_bound(scene),
            )
        )
    return found


def commonest(codes: Labels, groups: Labels) -> tuple[Labels, np.ndarray]:
    """(n,): the commonest code of each record's group, and its share in the group."""
    table = np.zeros((int(groups.max()) + 1, int(codes.max()) + 1))
    np.add.at(table, (groups, codes), 1)
    best = table.argmax(axis=1)
    share = table.max(axis=1) / table.sum(axis=1)
    return best[groups], share[groups]


def diversity_bound(scene: Scene) -> float | None:
    """With l values in every group, at most |G| - l + 1 of its members share one; nothing is promised without l."""
    if scene.study.privacy.l is None or scene.study.privacy.diversity == "entropy":
        return None
    sizes = np.bincount(scene.groups)[scene.groups]
    return float(((sizes - scene.study.privacy.l + 1) / sizes).mean())


def partners_values(scene: Scene, holder: str) -> Attempt | None:
    """Share of the partners' variance that a holder reads off what it was shown of its own people.

    In open exposure that is the partners' cells; the baseline, and all of it in sealed exposure, is the release.
    """
    others = [name for name in scene.study.holders if name != holder]
    truth = np.concatenate([scene.encodings[name].encode(scene.people) for name in others], axis=1) if others else None
    if truth is None or not truth.size:
        return None
    rows = scene.release.take(scene.row_of)
    released = np.concatenate([scene.encodings[name].encode(rows) for name in others], axis=1)
    shown, is_open = released, bool(scene.asked(p.Correct, holder) or scene.asked(p.MakeCode, holder))
    if is_open:
        shown = np.concatenate(
            [
                points[:, : scene.encodings[name].width]
                for name, points in zip(scene.study.holders, scene.rebuilt, strict=True)
                if name != holder
            ],
            axis=1,
        )
    success, baseline = max(explained(truth, shown), explained(truth, released)), explained(truth, released)
    return Attempt(
        f"{holder}-partners",
        holder,
        "partners' cells of its own people" if is_open else "the groups of its own people, and the release",
        "variance of the partners' columns",
        exactly(success),
        baseline,
        None if is_open else max(baseline, 0.0),
    )


def explained(truth: Points, shown: Points) -> float:
    """1 - SSE / SST, at least 0."""
    total = float(((truth - truth.mean(axis=0)) ** 2).sum())
    return max(0.0, 1.0 - float(((truth - shown) ** 2).sum()) / total) if total else 0.0
