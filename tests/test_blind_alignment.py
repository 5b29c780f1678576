"""ECDH alignment through the whole product: exact, signed at every hand-over, and closed to a coordinator that lies."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.alignment import Overlap
from coordinator.protocol import aligned, enrolled
from federated_anon.columns import Column, Kind, Role
from federated_anon.crypto.points import PRIME
from federated_anon.errors import Code, DataRefused, HolderRefused, SettingsRefused
from federated_anon.messages import Step, decode
from federated_anon.messages.payloads import REPLIES, REQUESTS, Refused
from federated_anon.messages.relayed import Blind, Trace
from nodes.alignment import People
from nodes.holder import DataHolder
from tests.simulator import Driver, LyingCoordinator, Tape, drive, make_holders, make_settings, make_study

NAMES = ("north", "south", "west")
ECDH = {"method": "ecdh"}
SEALED = {"exposures": ["sealed"]}


def holder_of(folder, name, ids, names) -> DataHolder:
    table = pa.table({"id": ids, f"{name}_x": np.arange(len(ids), dtype=float)})
    columns = (Column("id", Role.KEY, Kind.TEXT), Column(f"{name}_x", Role.QUASI, Kind.NUMBER))
    return DataHolder(make_settings(folder, name, table, columns, names))


def align(study, holders) -> tuple[Overlap, Tape]:
    """The steps up to alignment, as the driver carries them out."""
    tape = Tape(holders)
    driver = Driver(study, tape)
    course = aligned(study, _finish(driver, enrolled(study)))
    return _finish(driver, course), tape


def _finish(driver, course):
    try:
        ask = next(course)
        while True:
            ask = course.send(driver._carry_out(ask))
    except StopIteration as end:
        return end.value


@settings(max_examples=20, deadline=None)
@given(data=st.data(), count=st.integers(2, 5))
def test_the_intersection_is_exact_and_in_one_order(data, count, tmp_path_factory):
    names = (*NAMES, "east", "centre")[:count]
    common = data.draw(st.sets(st.integers(0, 50), min_size=3, max_size=12))
    own = {name: data.draw(st.sets(st.integers(51, 75), max_size=12)) | common for name in names}
    expected = set.intersection(*own.values())
    lists = {name: data.draw(st.permutations(sorted(people))) for name, people in own.items()}
    folder = tmp_path_factory.mktemp("ring")
    holders = {
        name: holder_of(folder, name, [f" Person {i:02d}" if n % 2 else f"PERSON {i:02d} " for i in lists[name]], names)
        for n, name in enumerate(names)
    }
    overlap, _ = align(make_study(names, k=3, alignment=ECDH), holders)
    rows = {name: holders[name]._recall(People).rows[overlap.positions[name]] for name in names}
    found = [[lists[name][row] for row in rows[name]] for name in names]
    assert set(found[0]) == expected
    assert all(one == found[0] for one in found)
    assert overlap.records == len(expected)
    assert overlap.sizes == {name: len(own[name]) for name in names}


@pytest.mark.parametrize("ids", [["a", "b", "c", " A"], ["a", "b", "c", ""], ["a", "b", "c", None]])
def test_ids_that_are_double_or_blank_are_refused_as_ever(tmp_path, ids):
    codes = set()
    for method in ("hmac", "ecdh"):
        holders = {name: holder_of(tmp_path / method, name, ids, NAMES[:2]) for name in NAMES[:2]}
        with pytest.raises(HolderRefused) as refused:
            align(make_study(NAMES[:2], alignment={"method": method}), holders)
        codes.add(refused.value.code)
    assert len(codes) == 1


@pytest.mark.parametrize("exposure", ["open", "sealed"])
def test_a_whole_study_over_blinded_points(tmp_path, exposure):
    policy = {"exposures": [exposure]}
    study = make_study(NAMES, exposure=exposure, alignment=ECDH)
    outcome = drive(study, make_holders(tmp_path / "a", NAMES, **policy))
    again = drive(study, make_holders(tmp_path / "b", NAMES, **policy))
    assert outcome.release.reached.k >= 3
    assert outcome.release.table.num_rows == 60
    assert outcome.release.csv() == again.release.csv()


class Forgetful:
    """Holders of which one is started anew before its n-th request."""

    def __init__(self, make, lost: str, at: int) -> None:
        self.make, self.lost, self.at, self.count = make, lost, at, 0
        self.holders = make()

    def ask(self, requests, timeout):
        if self.lost in requests:
            self.count += 1
            if self.count == self.at:
                self.holders[self.lost] = self.make()[self.lost]
        return {name: self.holders[name].answer(request) for name, request in requests.items()}


@pytest.mark.parametrize("at", [4, 5, 6, 7, 8, 9])
def test_a_holder_that_starts_anew_in_the_ring_gives_the_same_bytes(tmp_path, at):
    study = make_study(NAMES, exposure="sealed", alignment=ECDH)
    expected = drive(study, make_holders(tmp_path / "whole", NAMES, **SEALED))
    holders = Forgetful(lambda: make_holders(tmp_path / "lost", NAMES, **SEALED), "south", at)
    assert Driver(study, holders).run().release.csv() == expected.release.csv()


def led_to(step: Step, number: int, tmp_path):
    """A holder led honestly up to a round of the ring, the liar at its door, and the honest request."""
    study = make_study(NAMES, exposure="sealed", alignment=ECDH)
    holders = make_holders(tmp_path / "honest", NAMES, **SEALED)
    tape = Tape(holders)
    Driver(study, tape).run()
    fresh = make_holders(tmp_path / "victim", NAMES, **SEALED)["south"]
    liar = LyingCoordinator(fresh, study)
    for name, kind, content in tape.requests:
        payload = decode(content, REQUESTS).payload
        if name == "south":
            if kind is step and getattr(payload, "round", 0) == number:
                return liar, payload
            assert not isinstance(liar.ask(kind, payload), Refused)
    raise AssertionError("no such step")


def forged_points(request: Blind) -> list[Blind]:
    points = [request.points[i : i + 32] for i in range(0, len(request.points), 32)]
    extra = sorted([*points, (9).to_bytes(32, "little")])
    counts = request.counts.copy()
    counts[0] += 1
    return [
        dataclasses.replace(request, points=b"".join(extra), counts=counts),
        dataclasses.replace(request, points=b"".join(points[:-1])),
        dataclasses.replace(request, points=b"".join(sorted([*points[1:], (PRIME - 1).to_bytes(32, "little")]))),
        dataclasses.replace(request, points=b"".join(reversed(points))),
        dataclasses.replace(request, signature=bytes(64)),
        dataclasses.replace(request, counts=counts[:2]),
        dataclasses.replace(request, counts=request.counts + 1),
        dataclasses.replace(request, points=b"", signature=b""),
    ]


@pytest.mark.parametrize("number", [1, 2])
def test_points_that_the_neighbour_did_not_hand_over_are_refused(tmp_path, number):
    liar, request = led_to(Step.BLIND, number, tmp_path)
    for forged in forged_points(request):
        assert liar.ask(Step.BLIND, forged).code == Code.POINTS
    assert not isinstance(liar.ask(Step.BLIND, request), Refused)


def test_every_round_of_the_ring_is_answered_once(tmp_path):
    liar, request = led_to(Step.TRACE, 0, tmp_path)
    assert liar.ask(Step.BLIND, Blind(1, request.positions, b"", b"")).code == Code.CHANGED_REQUEST
    assert liar.ask(Step.BLIND, Blind(3, request.positions, b"", b"")).code == Code.OUT_OF_ORDER
    assert liar.ask(Step.BLIND, Blind(-1, request.positions, b"", b"")).code == Code.OUT_OF_ORDER


def test_positions_of_the_coordinators_choice_are_not_traced(tmp_path):
    liar, request = led_to(Step.TRACE, 1, tmp_path)
    everyone = np.arange(60, dtype=np.int32)
    for positions in (everyone, request.positions[:-1], request.positions[::-1].copy()):
        forged = Trace(1, (), (), positions, request.signature)
        assert liar.ask(Step.TRACE, forged).code == Code.POINTS
    assert liar.ask(Step.TRACE, Trace(7, (), (), everyone, b"")).code == Code.OUT_OF_ORDER


def test_tags_that_were_swapped_or_cut_are_refused(tmp_path):
    liar, request = led_to(Step.TRACE, 0, tmp_path)
    swapped = dataclasses.replace(request, tags=request.tags[::-1], signatures=request.signatures[::-1])
    for forged in (swapped, dataclasses.replace(request, tags=request.tags[:2])):
        assert liar.ask(Step.TRACE, forged).code == Code.POINTS


def test_seats_are_those_that_partners_traced(tmp_path):
    liar, request = led_to(Step.SEAT, 0, tmp_path)
    fewer = dataclasses.replace(request, positions=request.positions[:-1])
    assert liar.ask(Step.SEAT, fewer).code == Code.MALFORMED
    assert not isinstance(liar.ask(Step.SEAT, request), Refused)


def test_a_second_study_up_to_alignment_is_refused(tmp_path):
    """Otherwise a partner could try other ids in every study that ends after the alignment."""
    holders = make_holders(tmp_path, NAMES, **SEALED)
    align(make_study(NAMES, exposure="sealed", alignment=ECDH), holders)
    with pytest.raises(HolderRefused) as refused:
        align(make_study(NAMES, exposure="sealed", alignment=ECDH, name="other"), holders)
    assert refused.value.code is Code.SECOND_PARTITION


def test_steps_of_the_ring_are_refused_in_a_study_with_pseudonyms(tmp_path):
    study = make_study()
    liar = LyingCoordinator(make_holders(tmp_path)["north"], study)
    from federated_anon.messages.payloads import Enrol

    liar.ask(Step.ENROL, Enrol(study.text))
    assert liar.ask(Step.BLIND, Blind(0, np.zeros(0, dtype=np.int32), b"", b"")).code == Code.POLICY_METHOD


def test_too_small_an_overlap_ends_the_study_before_anyone_is_traced(tmp_path):
    holders = {n: holder_of(tmp_path, n, [f"{n} {i}" for i in range(9)] + ["x", "y"], NAMES[:2]) for n in NAMES[:2]}
    with pytest.raises(DataRefused, match="2 people in common"):
        align(make_study(NAMES[:2], alignment=ECDH), holders)


def test_one_holder_has_nobody_to_meet():
    with pytest.raises(SettingsRefused, match="at least 2 holders"):
        make_study(("north",), alignment=ECDH)


def test_no_reply_of_the_ring_holds_a_pseudonym(tmp_path):
    _, tape = align(make_study(NAMES, alignment=ECDH), make_holders(tmp_path, NAMES))
    replies = [decode(content, REPLIES) for _, content in tape.replies]
    assert {r.payload.pseudonyms for r in replies if r.envelope.step is Step.ALIGN} == {b""}
