"""What to do about a refusal, by its code: the code is all that crosses between parties, so it must be enough."""

from __future__ import annotations

from collections.abc import Mapping

from federated_anon.errors import Code

HINTS: Mapping[Code, str] = {
    Code.FAULT: "something unexpected happened there; its own log says where",
    Code.SETTINGS: "it cannot make sense of the study; do both sides run the same version?",
    Code.DATA: "its data is not as its settings declare; its doctor lists every fault",
    Code.DUPLICATE_IDS: "some ids occur more than once there; every person needs one row (its doctor counts them)",
    Code.OVERLAP: "too few people are common to all holders; are the ids of the same kind everywhere?",
    Code.MALFORMED: "it could not read the request, or the request does not fit its data",
    Code.OVERSIZED: "the request is larger than its [policy] largest_message",
    Code.VERSION: "it speaks another version of the protocol; install the same version on both sides",
    Code.OTHER_STUDY: "it is at work on another study",
    Code.WRONG_STEP: "it does not know this step; install the same version on both sides",
    Code.WRONG_SENDER: "it expects requests from the coordinator",
    Code.REPLAYED: "it has seen a later request of this study; is the clock behind, or another coordinator at work?",
    Code.OUT_OF_ORDER: "it has not gone through the steps before; start the study again",
    Code.CHANGED_REQUEST: (
        "it has answered this step for a different request and answers only once; "
        "did a partner's data or settings change? Then give the study another name"
    ),
    Code.POLICY_K: "its [policy] smallest_k is larger than the study's k; raise k",
    Code.POLICY_EXPOSURE: "its [policy] exposures does not list the study's exposure",
    Code.POLICY_METHOD: "its [policy] methods does not list the study's method",
    Code.POLICY_COLUMN: "its [policy] never_send names a column that was asked for",
    Code.POLICY_ROUNDS: "its [policy] most_rounds allows fewer rounds",
    Code.POLICY_ROLE: "set-valued columns need a set-valued study, one each; or it has wishes that the study ignores",
    Code.POLICY_TREE: "its [policy] set_trees does not list the study's [sets] tree",
    Code.POLICY_LABELS: "its [policy] share_labels does not let the labels go as far as the study's [labels] share",
    Code.POLICY_NOISE: (
        "the study's [release] noise and its [policy] most_epsilon, most_delta do not agree, or a quasi-identifier is "
        "no number with declared bounds"
    ),
    Code.BUDGET: "its budget (most_epsilon, most_delta) for this version of the data is spent",
    Code.ROSTER: (
        "the holders of the study, or a partner's key, are not those it has pinned under [partners]; "
        "compare the keys with their owners"
    ),
    Code.CERTIFICATE: "a certificate was refused: expired, of another authority or party; its doctor says which",
    Code.HANDSHAKE: "somebody came to its port without TLS, or broke the handshake off",
    Code.POINTS: "blinded ids of a partner are not as they should be; do all holders run the same version?",
    Code.SMALL_GROUP: "a group has fewer than k people",
    Code.SECOND_PARTITION: (
        "this version of its data was already released in other groups, and two groupings together give people "
        "away; repeat the study unchanged, use new data, or let the data owner decide (its [policy] "
        "one_release_per_data_version)"
    ),
    Code.GUARANTEE: "a group breaks l or t of one of its sensitive columns, or a personal wish",
    Code.VERIFICATION: "a signature does not fit",
    Code.LATE: "it ended or did not answer; is its process running, and can its settings be loaded there?",
    Code.STORAGE: "it could not write its ledger, and nothing leaves unrecorded; is its disk full or read-only?",
}
"""One sentence for every code."""
