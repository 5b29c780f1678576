"""A table that breaks its promise is refused, whoever made it: here the holders themselves lie."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

from coordinator.assembly import assembled, csv_bytes, endorsement, roster_of
from federated_anon.errors import DataRefused, GuaranteeBroken, MessageRefused
from federated_anon.messages.payloads import Block, Enrolled
from tests.simulator import SECRET, make_study


def enrolment(names, roles, kinds=None) -> Enrolled:
    kinds = kinds or ["category"] * len(names)
    return Enrolled(b"i", b"a", b"s", tuple(names), tuple(roles), tuple(kinds), ("[]",) * len(names), -1)


QUASI, SENSITIVE = "quasi-identifier", "sensitive"
STUDY = make_study(k=3, privacy={"k": 3, "l": 2})
ROSTER = roster_of(STUDY, {"north": enrolment(["a"], [QUASI]), "south": enrolment(["b", "s"], [QUASI, SENSITIVE])})
GROUPS = np.repeat([0, 1], 3)


def blocks(a=("u", "v"), b=("x", "y"), s=("p", "q", "p", "q", "q", "p")):
    empty = pa.table({})
    return {
        "north": Block(pa.table({"a": list(a)}), empty, 0),
        "south": Block(pa.table({"b": list(b)}), pa.table({"s": list(s)}), 0),
    }


def test_honest_blocks_make_a_release():
    release = assembled(STUDY, ROSTER, GROUPS, blocks(), SECRET)
    assert release.table.column_names == ["a", "b", "s"]
    assert release.reached.k == 3
    assert release.reached.diversity == {"s": 2.0}
    rows = sorted(zip(*(release.table[name].to_pylist() for name in "abs"), strict=True))
    assert rows == sorted([("u", "x", s) for s in "pqp"] + [("v", "y", s) for s in "qqp"])


def test_missing_counts_as_a_value():
    release = assembled(STUDY, ROSTER, GROUPS, blocks(a=(None, "v")), SECRET)
    assert release.reached.k == 3


def test_a_group_without_diversity_is_refused():
    with pytest.raises(GuaranteeBroken, match="l of 's' is 1, promised 2"):
        assembled(STUDY, ROSTER, GROUPS, blocks(s=("p", "p", "p", "q", "q", "p")), SECRET)


def test_groups_below_k_are_refused():
    with pytest.raises(GuaranteeBroken, match="k is 2, promised 3"):
        assembled(STUDY, ROSTER, np.array([0, 0, 1, 1, 1, 1]), blocks(), SECRET)


@pytest.mark.parametrize(
    "lie",
    [
        {"a": ("u", "v", "w")},
        {"a": ("u",)},
        {"s": ("p", "q")},
    ],
)
def test_a_block_that_does_not_fit_the_groups_is_refused(lie):
    with pytest.raises(MessageRefused, match="does not fit the groups"):
        assembled(STUDY, ROSTER, GROUPS, blocks(**lie), SECRET)


def test_a_column_that_was_not_enrolled_is_refused():
    lie = blocks() | {"north": Block(pa.table({"a": ["u", "v"], "z": ["u", "v"]}), pa.table({}), 0)}
    with pytest.raises(MessageRefused, match="enrolled"):
        assembled(STUDY, ROSTER, GROUPS, lie, SECRET)


def test_two_holders_cannot_bring_one_name():
    with pytest.raises(DataRefused, match=r"'a' \(north, south\)"):
        roster_of(STUDY, {"north": enrolment(["a"], [QUASI]), "south": enrolment(["a"], [QUASI])})


def test_a_study_without_quasi_identifiers_is_refused():
    with pytest.raises(DataRefused, match="nothing to anonymise"):
        roster_of(STUDY, {"north": enrolment(["a"], ["keep"]), "south": enrolment(["b"], [SENSITIVE])})


def test_a_promise_about_sensitive_columns_needs_one():
    with pytest.raises(DataRefused, match="declare one, or drop l and t"):
        roster_of(STUDY, {"north": enrolment(["a"], [QUASI]), "south": enrolment(["b"], [QUASI])})


@pytest.mark.parametrize("field", ["roles", "kinds", "levels"])
def test_an_enrolment_that_cannot_be_understood_is_refused(field):
    odd = dataclasses.replace(enrolment(["a"], [QUASI]), **{field: ("{",)})
    with pytest.raises(MessageRefused, match="north"):
        roster_of(STUDY, {"north": odd, "south": enrolment(["b"], [QUASI])})


def test_the_digest_tells_missing_from_empty_and_types_apart():
    tables = [
        pa.table({"a": ["", "b"]}),
        pa.table({"a": [None, "b"]}),
        pa.table({"a": pa.array([None, "b"], pa.large_string())}),
        pa.table({"a": pa.array([1, 2], pa.int32())}),
        pa.table({"a": pa.array([1, 2], pa.int64())}),
    ]
    assert len({endorsement("s", table, {}) for table in tables}) == len(tables)
    assert csv_bytes(tables[0]) != csv_bytes(tables[1])
    assert endorsement("s", tables[0], {"k": 1}) != endorsement("s", tables[0], {"k": 2})
