import math

import pytest

from coordinator.gate import Verdict, decide, judge
from federated_anon.messages.payloads import Candidate


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (2.0, 1.9, Verdict.KEEP),
        (2.0, 2.0, Verdict.REVERT),
        (2.0, 2.1, Verdict.REVERT),
        (2.0, math.inf, Verdict.REVERT),
        (math.inf, 2.0, Verdict.KEEP),
        (math.inf, math.inf, Verdict.REVERT),
        (2.0, math.nan, Verdict.REVERT),
    ],
)
def test_a_map_is_kept_only_if_its_davies_bouldin_index_falls(before, after, verdict):
    assert decide(before, after) is verdict


def test_the_margin_must_be_passed():
    assert decide(2.0, 1.95, margin=0.1) is Verdict.REVERT


def test_a_holders_own_word_counts_where_loss_counts():
    worse_for_the_holder = Candidate(2.0, 1.0, harmless=False)
    assert judge(worse_for_the_holder, needs_harmless=True) is Verdict.REVERT
    assert judge(worse_for_the_holder, needs_harmless=False) is Verdict.KEEP
