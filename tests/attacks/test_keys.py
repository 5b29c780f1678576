"""Attacks on pseudonyms, on the key exchange and on the shuffle."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

import nodes.alignment
import nodes.guard
from federated_anon.attacks.keys import guessable_keys, recognised
from federated_anon.columns import Kind, Role
from federated_anon.crypto.agreement import agreement_key, derive, statement, study_key, unwrap, wrap
from federated_anon.crypto.compact import unpacked
from federated_anon.crypto.pseudonyms import PSEUDONYM_BITS, shuffle_within
from federated_anon.crypto.signing import Identity
from federated_anon.errors import Code, PolicyRefused
from federated_anon.messages import Step, decode
from federated_anon.messages import payloads as p
from nodes.alignment import People
from nodes.holder import Released
from tests.attacks.doors import aligned_liars, make_holder, number_table
from tests.simulator import SECRET, Driver, LyingCoordinator, Tape, make_holders, make_study

NAMES = ("north", "south")
STUDY = make_study(NAMES, 3)
PEOPLE = 60
DICTIONARY = [f"person {i:05d}" for i in range(2000)]


def two_holders(folder, **policy):
    rng = np.random.default_rng(1)
    ill = {name: rng.permutation(np.array(["flu", "cold", "gout", "none"] * 15)) for name in NAMES}
    return ill, {
        name: make_holder(
            folder,
            name,
            number_table(
                rng.normal(size=PEOPLE), f"{name}_income", **{f"{name}_ill": (Role.SENSITIVE, Kind.CATEGORY, ill[name])}
            ),
            NAMES,
            **policy,
        )
        for name in NAMES
    }


def test_a_dictionary_of_ids_without_the_key_and_with_it(tmp_path):
    """The coordinator has every id but not the key; a holder that colludes has both: that is stated, not prevented."""
    _, holders = two_holders(tmp_path)
    sent = aligned_liars(STUDY, holders)["south"].pseudonyms
    for key in guessable_keys(STUDY.digest):
        assert recognised(sent, DICTIONARY, key) == 0
    colluding = study_key(Identity.for_simulation(0, "north"), STUDY.digest)
    assert recognised(sent, DICTIONARY, colluding) == PEOPLE


def unkeyed(ids, key):
    """Pseudonyms as anybody could make them."""
    joined = b"".join(hashlib.sha256(one.encode()).digest()[:8] for one in ids)
    return np.frombuffer(joined, dtype=">u8").astype(np.uint64) >> np.uint64(64 - PSEUDONYM_BITS)


def test_unkeyed_hashes_unguarded_fall_to_a_dictionary(tmp_path, monkeypatch):
    monkeypatch.setattr(nodes.alignment, "pseudonyms", unkeyed)
    _, holders = two_holders(tmp_path)
    sent = aligned_liars(STUDY, holders)["south"].pseudonyms
    assert np.isin(unpacked(sent, PSEUDONYM_BITS), unkeyed(DICTIONARY, b"")).sum() == PEOPLE


def seen_in_both(folder):
    """How many pseudonyms of one study the coordinator meets again in another."""
    _, holders = two_holders(folder, most_studies=2)
    first = aligned_liars(STUDY, holders)["south"].pseudonyms
    second = aligned_liars(make_study(NAMES, 3, name="other"), holders)["south"].pseudonyms
    return np.isin(unpacked(first, PSEUDONYM_BITS), unpacked(second, PSEUDONYM_BITS)).sum()


def test_pseudonyms_of_two_studies_have_nothing_in_common(tmp_path):
    assert seen_in_both(tmp_path) == 0


def test_pseudonyms_of_two_studies_unguarded_are_joined(tmp_path, monkeypatch):
    monkeypatch.setattr(nodes.alignment, "pseudonyms", unkeyed)
    assert seen_in_both(tmp_path) == PEOPLE


def middle_in(folder):
    """A relay puts its own agreement key in the place of the second holder's; what it can read of the study's key."""
    _, holders = two_holders(folder)
    liars = {name: LyingCoordinator(one, STUDY) for name, one in holders.items()}
    joined = [liars[name].ask(Step.ENROL, p.Enrol(STUDY.text)) for name in NAMES]
    middle = Identity.create()
    own = agreement_key(middle, STUDY.digest)
    public = own.public_key().public_bytes_raw()
    share = p.Share(
        NAMES,
        (joined[0].identity, middle.public),
        (joined[0].agreement, public),
        (joined[0].signature, middle.sign(statement(STUDY.digest, "south", public))),
    )
    reply = liars["north"].ask(Step.SHARE, share)
    if isinstance(reply, p.Refused):
        return reply.code
    return unwrap(reply.wrapped[1], own, joined[0].agreement, STUDY.digest, "south")


def test_a_man_in_the_middle_reads_no_key(tmp_path):
    assert middle_in(tmp_path) == Code.ROSTER


def test_a_man_in_the_middle_unpinned_reads_the_key(tmp_path, monkeypatch):
    monkeypatch.setattr(nodes.alignment, "_require_partner", lambda *_: None)
    assert middle_in(tmp_path) == study_key(Identity.for_simulation(0, "north"), STUDY.digest)


def test_every_wrapping_key_wraps_one_key_only(tmp_path):
    """The nonce is fixed, so a second plaintext under one key would give both away: there is none to be had."""
    seen: dict[bytes, set[bytes]] = {}
    for name in ("trial", "other"):
        study = make_study(NAMES, 3, name=name)
        for first in (1, 1000):
            _, holders = two_holders(tmp_path / name)
            tape = Tape(holders)
            Driver(study, tape, first_sequence=first).run()
            for _, reply in tape.replies:
                message = decode(reply, p.REPLIES)
                if isinstance(message.payload, p.Shared) and message.payload.wrapped:
                    seen.setdefault(study.digest.encode(), set()).add(message.payload.wrapped[1])
    assert [len(found) for found in seen.values()] == [1, 1]
    assert len(set.union(*seen.values())) == 2


def test_a_wrapped_key_of_another_study_holder_or_leader_does_not_open():
    leader, follower, other = (Identity.create() for _ in range(3))
    ours, theirs = agreement_key(leader, "a" * 64), agreement_key(follower, "a" * 64)
    sent = wrap(b"k" * 32, ours, theirs.public_key().public_bytes_raw(), "a" * 64, "south")
    leads = ours.public_key().public_bytes_raw()
    assert unwrap(sent, theirs, leads, "a" * 64, "south") == b"k" * 32
    for wrong in [
        (sent, theirs, leads, "b" * 64, "south"),
        (sent, theirs, leads, "a" * 64, "east"),
        (sent, agreement_key(other, "a" * 64), leads, "a" * 64, "south"),
        (sent, theirs, bytes(32), "a" * 64, "south"),
        (sent[:-1] + bytes([sent[-1] ^ 1]), theirs, leads, "a" * 64, "south"),
    ]:
        with pytest.raises(PolicyRefused):
            unwrap(*wrong)


def played_in_another(folder, apart_from=()):
    """What becomes of one study's requests, ``apart_from`` some, in another led up to alignment; by step."""
    holders = make_holders(folder, most_studies=2)
    tape = Tape(holders)
    Driver(STUDY, tape).run()
    liar = aligned_liars(make_study(NAMES, 3, name="other"), holders)["north"]
    return {
        step: liar.send(content) for who, step, content in tape.requests if who == "north" and step not in apart_from
    }


def test_a_request_of_one_study_is_refused_in_another(tmp_path):
    codes = {step: reply.code for step, reply in played_in_another(tmp_path).items()}
    assert codes.pop(Step.ENROL) == Code.REPLAYED
    assert set(codes.values()) == {Code.OTHER_STUDY}


def test_requests_of_one_study_unguarded_are_answered_in_another(tmp_path, monkeypatch):
    """A guard that looks neither at study nor at sequence: recorded groups are judged for l again, on other people."""
    monkeypatch.setattr(nodes.guard.Guard, "open", lambda self, content: decode(content, p.REQUESTS))
    replies = played_in_another(tmp_path, apart_from=(Step.ENROL, Step.SHARE, Step.ALIGN))
    answered = {step for step, reply in replies.items() if not isinstance(reply, p.Refused)}
    assert answered == {Step.CONSTRAIN}, "the rest is refused by what the holder remembers of its data and its steps"


def linked_by_a_holder(folder, secret=None, **policy):
    """Share of a partner's sensitive values that the first holder puts to their owners, and what guessing gives.

    It knows the groups and the order inside them. With the coordinator's secret it knows the place of every row;
    without, it takes the rows of a group as they come.
    """
    ill, holders = two_holders(folder, **policy)
    tape = Tape(holders)
    outcome = Driver(STUDY, tape).run()
    groups = next(
        decode(content, p.REQUESTS).payload.groups
        for who, step, content in tape.requests
        if who == "north" and step is Step.RELEASE
    )
    people = holders["north"]._recall(People).rows
    order = shuffle_within(groups, study_key(Identity.for_simulation(0, "north"), STUDY.digest))
    own = holders["north"]._recall(Released).representatives.column(0).to_pylist()
    rows = np.array([own.index(value) for value in outcome.release.table["north_income"].to_pylist()])
    place = np.argsort(rows, kind="stable")
    if secret is not None:
        shuffled = shuffle_within(np.zeros(PEOPLE, dtype=np.int64), derive(secret, "rows", STUDY.digest))
        place = np.argsort(shuffled)
    released = np.array(outcome.release.table["south_ill"].to_pylist())
    truth = ill["south"][people[order]]
    rng = np.random.default_rng(0)
    drawn = [released[np.lexsort((rng.random(PEOPLE), rows))] == truth for _ in range(200)]
    return float((released[place] == truth).mean()), float(np.mean(drawn))


def test_a_holder_that_has_the_coordinators_secret_undoes_the_shuffle(tmp_path):
    """Unguarded: whoever knows both shuffles puts every sensitive value of a partner to its owner."""
    found, guessing = linked_by_a_holder(tmp_path, secret=SECRET)
    assert found == 1.0
    assert guessing < 0.7


@pytest.mark.parametrize("policy", [{}, {"own_shuffle": True}])
def test_a_curious_holder_links_no_better_than_by_guessing(tmp_path, policy):
    found, guessing = linked_by_a_holder(tmp_path, **policy)
    assert abs(found - guessing) < 0.15


def test_an_own_shuffle_holds_against_a_holder_that_has_the_secret(tmp_path):
    found, guessing = linked_by_a_holder(tmp_path, secret=SECRET, own_shuffle=True)
    assert abs(found - guessing) < 0.15
