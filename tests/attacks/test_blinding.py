"""A holder and the coordinator together try every id: they win against pseudonyms, not against blinded points."""

from __future__ import annotations

import numpy as np

import nodes.intersection
from federated_anon.attacks.keys import recognised
from federated_anon.crypto.agreement import derive, study_key
from federated_anon.crypto.compact import unpacked
from federated_anon.crypto.ladder import raised
from federated_anon.crypto.points import hashed_points
from federated_anon.crypto.pseudonyms import PSEUDONYM_BITS, pseudonyms
from federated_anon.crypto.signing import Identity
from federated_anon.messages import Step, decode
from federated_anon.messages.payloads import REPLIES
from nodes.alignment import People
from tests.attacks.doors import make_holder, number_table
from tests.simulator import Driver, Tape, make_study

NAMES = ("north", "south", "west")
PEOPLE = 60
DICTIONARY = [f"person {i:05d}" for i in range(500)]
SPY = Identity.for_simulation(0, "north")


def played(folder, method: str, parts=None):
    """A study on these parts of one table, and everything the coordinator saw."""
    parts = parts or dict.fromkeys(NAMES, slice(None))
    made = {n: number_table(np.random.default_rng(len(n)).normal(size=PEOPLE), f"{n}_income") for n in NAMES}
    holders = {
        n: make_holder(folder, n, (table.take(np.arange(PEOPLE)[parts[n]]), columns), NAMES)
        for n, (table, columns) in made.items()
    }
    study, tape = make_study(NAMES, 3, alignment={"method": method}), Tape(holders)
    Driver(study, tape).run()
    return study, tape, holders


def told(tape: Tape, step: Step, holder: str):
    replies = [decode(content, REPLIES) for name, content in tape.replies if name == holder]
    return [reply.payload for reply in replies if reply.envelope.step is step]


def points_of(tape: Tape, holder: str) -> set[bytes]:
    """All points that a holder ever handed over; its last reply holds tags."""
    lists = [reply.points for reply in told(tape, Step.BLIND, holder)[:-1]]
    return {points[i : i + 32] for points in lists for i in range(0, len(points), 32)}


def dictionary_of(study, secrets) -> set[bytes]:
    """Every id of the dictionary as the colluding holder can blind it."""
    bare = hashed_points(DICTIONARY, study_key(SPY, study.digest)).tobytes()
    tried = [bare, *(raised(bare, one, 1) for one in secrets)]
    tried += [raised(raised(bare, one, 1), two, 1) for one in secrets for two in secrets]
    return {points[i : i + 32] for points in tried for i in range(0, len(points), 32)}


def spied_secrets(study) -> list[bytes]:
    """All secrets that can be derived from what the colluding holder knows."""
    known = (SPY.secret, study_key(SPY, study.digest), bytes(32))
    return [derive(one, "ring", study.digest) for one in known]


def test_with_the_key_of_a_holder_pseudonyms_fall_to_a_dictionary(tmp_path):
    study, tape, _ = played(tmp_path, "hmac")
    sent = told(tape, Step.ALIGN, "south")[0].pseudonyms
    assert recognised(sent, DICTIONARY, study_key(SPY, study.digest)) == PEOPLE


def test_with_the_key_and_secret_of_a_holder_blinded_points_do_not(tmp_path):
    study, tape, _ = played(tmp_path, "ecdh")
    tried = dictionary_of(study, spied_secrets(study))
    assert len(points_of(tape, "north") & tried) == PEOPLE, "its own list it recognises, so the attack is a real one"
    for victim in ("south", "west"):
        assert not points_of(tape, victim) & tried


def test_secrets_that_holders_share_unguarded_fall_to_the_dictionary(tmp_path, monkeypatch):
    monkeypatch.setattr(nodes.intersection, "derive", lambda secret, *info: derive(bytes(32), *info))
    study, tape, _ = played(tmp_path, "ecdh")
    tried = dictionary_of(study, spied_secrets(study))
    assert len(points_of(tape, "south") & tried) >= PEOPLE


PARTS = {"north": slice(0, 50), "south": slice(10, 60), "west": slice(30, 60)}
"""North and south share 40 people, all three share 20: the other 20 are nobody's business."""


def test_pseudonyms_tell_the_colluding_holder_what_two_have_in_common(tmp_path):
    study, tape, _ = played(tmp_path, "hmac", PARTS)
    sent = unpacked(told(tape, Step.ALIGN, "south")[0].pseudonyms, PSEUDONYM_BITS)
    own = pseudonyms([f"person {i:05d}" for i in range(50)], study_key(SPY, study.digest))
    assert np.isin(own, sent).sum() == 40


def test_blinded_points_tell_it_the_common_people_and_how_many_two_share(tmp_path):
    """Tags of two lists meet in 40 places, but where they stand in the colluding holder's own list nobody can tell."""
    _, tape, holders = played(tmp_path, "ecdh", PARTS)
    final = {owner: unpacked(told(tape, Step.BLIND, NAMES[place - 1])[-1].points) for place, owner in enumerate(NAMES)}
    shared = np.isin(final["north"], final["south"])
    assert shared.sum() == 40
    rows = holders["north"]._recall(People).rows
    truly = np.isin(rows, np.arange(10, 50))
    by_place = (shared == truly).mean()
    chance = 0.8**2 + 0.2**2
    assert abs(by_place - chance) < 0.2
    assert not (shared == truly).all()


def test_no_point_is_seen_twice_and_every_list_is_sorted_by_what_it_became(tmp_path):
    """So neither a value nor a place leads from a list to the next one."""
    _, tape, _ = played(tmp_path, "ecdh")
    lists = [reply.points for name in NAMES for reply in told(tape, Step.BLIND, name)[:-1]]
    parts = [[points[i : i + 32] for i in range(0, len(points), 32)] for points in lists]
    assert parts == [sorted(one) for one in parts]
    assert len(set().union(*parts)) == sum(map(len, parts))
