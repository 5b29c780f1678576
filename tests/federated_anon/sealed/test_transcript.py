from dataclasses import replace

import numpy as np
import pytest

from federated_anon.errors import GuaranteeBroken, MessageRefused
from federated_anon.privacy.kanonymity import smallest_class
from federated_anon.sealed import SealedGroups, SplitRules, joint_classes, require_sealed, sealed_groups


@pytest.fixture(scope="module")
def found() -> SealedGroups:
    rng = np.random.default_rng(8)
    return sealed_groups([rng.standard_normal((400, 3)) for _ in range(3)], 4, [0, 1, 2])


def test_all_messages_together_tell_the_final_groups_and_no_more(found: SealedGroups) -> None:
    classes = joint_classes(found.transcript)
    pairs = np.unique(np.stack([classes, found.labels]), axis=1)
    assert pairs.shape[1] == classes.max() + 1 == found.labels.max() + 1
    assert smallest_class(classes) >= 4
    require_sealed(found.transcript, 4)


def test_classes_below_k_are_found(found: SealedGroups) -> None:
    with pytest.raises(GuaranteeBroken):
        require_sealed(found.transcript, 5)


def test_a_changed_message_is_found(found: SealedGroups) -> None:
    *rest, last = found.transcript.levels
    short = replace(last, bits=tuple(bits[:-1] for bits in last.bits))
    with pytest.raises(MessageRefused):
        joint_classes(replace(found.transcript, levels=(*rest, short)))


def test_a_transcript_is_replayed_level_by_level(found: SealedGroups) -> None:
    partitions = list(found.transcript.partitions())
    assert partitions[-1].labels.tolist() == found.partition.labels.tolist()
    assert partitions[0].sizes[1:].min() >= 4
    assert found.transcript.rules == SplitRules(4)
    assert found.transcript.size == sum(level.size for level in found.transcript.levels) > 0
