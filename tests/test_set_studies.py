"""Set-valued studies of several holders, whole: release, files, what is refused, and what a liar learns."""

import json
import shutil
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import nodes.sets
from federated_anon.columns import Column, Kind, Role
from federated_anon.crypto.signing import Identity
from federated_anon.errors import DataRefused, GuaranteeBroken, HolderRefused, PolicyRefused, SettingsRefused
from federated_anon.messages import Message, Step, decode, encode
from federated_anon.messages import payloads as p
from federated_anon.messages import set_payloads as sp
from federated_anon.setvalued import Chunk, Cluster, Disassociated, Transactions
from federated_anon.setvalued.formats import to_lists
from federated_anon.setvalued.parties import branch_statement
from federated_anon.setvalued.schema import from_json, to_json
from federated_anon.simulate_sets import simulate_sets
from nodes.holder import DataHolder
from tests.command_line import command
from tests.simulator import LyingCoordinator, Tape, drive, make_settings, make_study

NAMES = ("north", "south", "west")
COLUMNS = (Column("person", Role.KEY, Kind.INTEGER), Column("items", Role.SET, Kind.SET))


def visits(people=240, items=14, seed=0):
    """Skewed sets of one to five items."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, items + 1)
    draw = [rng.choice(items, rng.integers(1, 6), replace=False, p=weights / weights.sum()) for _ in range(people)]
    return Transactions.of([[f"i{item:02d}" for item in one] for one in draw])


def set_study(holders=NAMES, k=3, **sets):
    return make_study(holders, k, kind="set-valued", exposure="sealed", sets={"delta": 12, **sets})


def set_holder(folder, name, transactions, holders=NAMES, people=None, **policy):
    ids = np.arange(len(transactions)) if people is None else people
    table = pa.table({"person": ids, "items": to_lists(transactions)})
    settings = make_settings(folder, name, table, COLUMNS, holders, **({"exposures": ["sealed"]} | policy))
    return DataHolder(settings)


def other_items(folder, transactions, holders=NAMES, **policy):
    """Holders of the same people, each with every third item."""
    made = {}
    for place, name in enumerate(holders):
        own = [[i for i in record if i % len(holders) == place] for record in transactions]
        part = Transactions.of_codes(own, transactions.names)
        made[name] = set_holder(folder, name, part, holders, **({"set_trees": ["joint"]} | policy))
    return made


def other_people(folder, transactions, holders=NAMES, **policy):
    rows = np.array_split(np.arange(len(transactions)), len(holders))
    return {
        name: set_holder(folder, name, transactions.select(own), holders, **policy)
        for name, own in zip(holders, rows, strict=True)
    }


def rare(records, k, m):
    """Combinations of at most m items that occur fewer than k times, by plain enumeration."""
    seen = {}
    for record in records:
        for size in range(1, m + 1):
            for one in combinations(record, size):
                seen[one] = seen.get(one, 0) + 1
    return [one for one, count in seen.items() if count < k]


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize(("split", "holders"), [("people", 2), ("people", 5), ("items", 2), ("items", 3)])
def test_every_chunk_of_every_cluster_keeps_k_and_m(split, holders, m):
    original = visits()
    result = simulate_sets(original, k=3, m=m, delta=12, holders=holders, split=split)
    report = result.report
    assert report["people"] == 240
    assert report["occurrences"] == len(original.items)
    assert report["smallest_cluster"] >= 6
    assert 20 < report["items_kept_percent"] <= 100


@pytest.mark.parametrize(("split", "holders"), [("people", 3), ("items", 3)])
def test_a_run_is_the_same_again_and_verified_from_its_files(tmp_path, split, holders):
    original = visits()
    for name in ("one", "two"):
        simulate_sets(original, delta=12, holders=holders, split=split, out=tmp_path / name)
    for file in ("disassociated.json", "reassociated.parquet", "report.json", "study.toml"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    answer = command("verify", tmp_path / "one", "--json")
    assert answer.code == 0, answer.err
    told = json.loads(answer.out)
    assert (told["verified"], told["people"], told["k"], told["m"]) == (True, 240, 3, 2)
    assert set(told["entries"]) == {f"holder-{n + 1}" for n in range(holders)}
    form = from_json((tmp_path / "one" / "disassociated.json").read_bytes())
    assert [rare(c.records, 3, 2) for cluster in form.clusters for c in cluster.chunks] == [
        [] for cluster in form.clusters for _ in cluster.chunks
    ]
    assert min(cluster.size for cluster in form.clusters) >= 6


def test_chunks_never_span_holders_and_no_item_is_lost():
    original = visits()
    result = simulate_sets(original, delta=12, holders=2, split="items")
    assert sum(len(one) for one in result.table["items"].to_pylist()) > 0
    assert result.report["items_kept_percent"] < 100


def touched(run: Path, name: str) -> None:
    path = run / name
    if name.startswith("ledger"):
        path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")
    elif name == "report.json":
        report = json.loads(path.read_text()) | {"items_kept_percent": 99.0}
        path.write_text(json.dumps(report, indent=2, sort_keys=True) + "\n")
    elif name == "disassociated.json":
        form = from_json(path.read_bytes())
        path.write_bytes(to_json(replace(form, clusters=form.clusters[1:])))
    elif name == "study.toml":
        path.write_text(path.read_text().replace("m = 2", "m = 1"))
    else:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 255
        path.write_bytes(content)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets")
    simulate_sets(visits(), delta=12, holders=2, split="items", out=folder / "run")
    return folder / "run"


@pytest.mark.parametrize(
    "name",
    [
        "disassociated.json",
        "reassociated.parquet",
        "report.json",
        "study.toml",
        "ledger/holder-1.jsonl",
        "transcript/000-disassociate-holder-2.arrow",
    ],
)
def test_whatever_is_touched_is_found(finished, tmp_path, name):
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    touched(run, name)
    answer = command("verify", run, "--json")
    assert (answer.code, answer.out) == (7, ""), answer.err
    assert "Traceback" not in answer.err


def test_strange_files_missing_files_and_wrong_pins_are_found(finished, tmp_path):
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    assert command("verify", run, "--pin", f"holder-1={'0' * 64}").code == 7
    (run / "notes.txt").touch()
    assert "not part of a run: notes.txt" in command("verify", run).err
    (run / "notes.txt").unlink()
    (run / "reassociated.parquet").unlink()
    assert "has no reassociated.parquet" in command("verify", run).err


def test_a_holder_with_fewer_than_k_people_leaves_cleanly(tmp_path):
    original = visits()
    small, large = original.select(np.arange(2)), original.select(np.arange(2, 240))
    holders = {
        "north": set_holder(tmp_path, "north", large, ("north", "south")),
        "south": set_holder(tmp_path, "south", small, ("north", "south")),
    }
    outcome = drive(set_study(("north", "south")), holders)
    assert outcome.report["people"] == 238
    assert outcome.report["holders"]["south"]["takes_part"] is False
    assert "'south' had fewer than k people: nothing of them is published." in outcome.report["caveats"]
    assert from_json(decode(outcome.transcript["000-disassociate-south.arrow"], p.REPLIES).payload.form).names == ()


def test_nobody_has_k_people(tmp_path):
    few = visits(4)
    holders = {
        name: set_holder(tmp_path, name, few.select(np.arange(start, start + 2)), ("north", "south"))
        for start, name in ((0, "north"), (2, "south"))
    }
    with pytest.raises(DataRefused, match="no holder has k = 3 people"):
        drive(set_study(("north", "south")), holders)


def test_a_joint_tree_needs_every_policy(tmp_path):
    holders = other_items(tmp_path, visits(), set_trees=["local"])
    with pytest.raises(HolderRefused) as refused:
        drive(set_study(split="items", tree="joint"), holders)
    assert refused.value.code == "policy-tree"


@pytest.mark.parametrize(
    ("sets", "told"),
    [
        ({"split": "items"}, "split 'items' needs tree 'joint'"),
        ({"tree": "joint"}, "needs no joint tree"),
        ({"delta": 2}, "delta must be at least k = 3, got 2"),
        ({"min_size": 2}, "min_size must be from k = 3 to delta = 12, got 2"),
    ],
)
def test_settings_that_cannot_be(sets, told):
    with pytest.raises(SettingsRefused, match=told):
        set_study(**sets)


def test_a_table_study_says_nothing_of_sets():
    with pytest.raises(SettingsRefused, match="a table study releases no sets"):
        make_study(("north",), sets={"delta": 12})


def test_only_what_the_protocol_names_crosses(tmp_path):
    """No reply of a holder carries an id, and none but the finished form carries an item's name."""
    original = visits()
    tape = Tape(other_items(tmp_path, original))
    from tests.simulator import Driver

    Driver(set_study(split="items", tree="joint"), tape).run()
    kinds = {type(decode(reply, p.REPLIES).payload).__name__ for _, reply in tape.replies}
    assert kinds == {"Enrolled", "Shared", "Aligned", "Gathered", "ItemCounts", "Branched", "Sets", "Closed"}
    talk = [reply for _, reply in tape.replies if not isinstance(decode(reply, p.REPLIES).payload, sp.Sets)]
    assert [name for name in original.names if any(name.encode() in reply for reply in talk)] == []


class Led:
    """A liar that led real holders honestly up to the first counts of a joint tree."""

    def __init__(self, folder, study=None):
        self.study = study or set_study(split="items", tree="joint")
        self.holders = other_items(folder, visits())
        self.liars = {name: LyingCoordinator(one, self.study) for name, one in self.holders.items()}
        enrolled = {name: liar.ask(Step.ENROL, p.Enrol(self.study.text)) for name, liar in self.liars.items()}
        relay = [tuple(getattr(enrolled[n], part) for n in NAMES) for part in ("identity", "agreement", "signature")]
        shared = {name: liar.ask(Step.SHARE, p.Share(NAMES, *relay)) for name, liar in self.liars.items()}
        for name, key in zip(NAMES, shared["north"].wrapped, strict=True):
            self.liars[name].ask(Step.ALIGN, p.Align(key))
        everyone = np.arange(240, dtype=np.int32)
        for liar in self.liars.values():
            assert liar.ask(Step.GATHER, sp.Gather(everyone)) == sp.Gathered(True, 240)
        empty = sp.CountItems(0, np.zeros(0, np.int32), (), ())
        self.counts = {name: liar.ask(Step.COUNT, empty).supports for name, liar in self.liars.items()}

    def branched(self, name="north"):
        return self.liars[name].ask(Step.BRANCH, sp.Branch(0, np.array([0], np.int32), np.array([0], np.int32)))

    def told(self, branches, signature, winner=0, number=1):
        parts = tuple(branches if place == winner else b"" for place in range(3))
        signs = tuple(signature if place == winner else b"" for place in range(3))
        return sp.CountItems(number, np.array([winner], np.int32), parts, signs)


def code(reply):
    return reply.code if isinstance(reply, p.Refused) else type(reply).__name__


def test_a_split_that_its_owner_did_not_make_is_refused(tmp_path):
    led = Led(tmp_path)
    true = led.branched()
    forged = bytearray(true.branches)
    forged[0] = 0 if forged[0] else 1
    assert code(led.liars["south"].ask(Step.COUNT, led.told(bytes(forged), true.signature))) == "roster-mismatch"
    assert code(led.liars["south"].ask(Step.COUNT, led.told(true.branches, bytes(64)))) == "roster-mismatch"
    assert code(led.liars["south"].ask(Step.COUNT, led.told(true.branches, true.signature, 1))) == "roster-mismatch"
    assert code(led.liars["south"].ask(Step.COUNT, led.told(true.branches, true.signature))) == "ItemCounts"


def test_a_split_below_k_is_refused_even_if_a_partner_signed_it(tmp_path):
    led = Led(tmp_path)
    single = bytearray(240)
    single[7] = single[9] = 1
    statement = branch_statement(led.study.digest, "north", 0, bytes(single))
    signature = Identity.for_simulation(0, "north").sign(statement)
    assert code(led.liars["south"].ask(Step.COUNT, led.told(bytes(single), signature))) == "group-below-k"


def test_the_same_step_with_other_data_is_refused(tmp_path):
    led = Led(tmp_path)
    north = led.branched()
    south = led.branched("south")
    west = led.liars["west"]
    assert code(west.ask(Step.COUNT, led.told(north.branches, north.signature, 0))) == "ItemCounts"
    assert code(west.ask(Step.COUNT, led.told(south.branches, south.signature, 1))) == "changed-request"
    again = sp.Branch(0, np.array([0], np.int32), np.array([5], np.int32))
    assert code(led.liars["north"].ask(Step.BRANCH, again)) == "changed-request"
    assert code(led.liars["north"].ask(Step.GATHER, sp.Gather(np.arange(3, dtype=np.int32)))) == "changed-request"


@pytest.mark.parametrize(
    ("step", "payload", "expected"),
    [
        (Step.DISASSOCIATE, sp.Disassociate(0), "out-of-order"),
        (Step.DISASSOCIATE, sp.Disassociate(1), "malformed-message"),
        (Step.BRANCH, sp.Branch(1, np.array([0], np.int32), np.array([0], np.int32)), "out-of-order"),
        (Step.BRANCH, sp.Branch(0, np.array([4], np.int32), np.array([0], np.int32)), "malformed-message"),
        (Step.COUNT, sp.CountItems(3, np.zeros(0, np.int32), (), ()), "out-of-order"),
        (Step.MAP, p.TrainMap(np.arange(240, dtype=np.int32), 2, 2, np.zeros(0, np.int32)), "policy-exposure"),
        (Step.CONSTRAIN, p.CheckGroups(0, np.zeros(240, np.int32)), "policy-exposure"),
        (Step.EVALUATE, p.Evaluate(), "policy-exposure"),
        (Step.CLOSE, p.Close(bytes(32)), "out-of-order"),
    ],
)
def test_steps_out_of_place_are_refused(tmp_path, step, payload, expected):
    assert code(Led(tmp_path).liars["north"].ask(step, payload)) == expected


def test_a_table_study_has_no_steps_on_sets(tmp_path):
    study = make_study(("north",))
    sets = ["items"]
    holder = set_holder(tmp_path, "north", visits(), ("north",), exposures=["open"], never_send=sets)
    liar = LyingCoordinator(holder, study)
    liar.ask(Step.ENROL, p.Enrol(study.text))
    assert code(liar.ask(Step.GATHER, sp.Gather(np.zeros(0, np.int32)))) == "policy-exposure"


def test_the_same_people_leave_in_one_form_only(tmp_path):
    original = visits()
    holders = other_people(tmp_path, original)
    drive(set_study(), holders)
    with pytest.raises(HolderRefused) as refused:
        drive(set_study(delta=20), holders)
    assert refused.value.code == "second-partition"


def test_a_broken_partitioner_does_not_get_past_the_holders_own_verifier(tmp_path, monkeypatch):
    def careless(transactions, k, m, delta, least):
        records = tuple(sorted(record for record in transactions if record))
        items = tuple(sorted({item for record in records for item in record}))
        return Disassociated(k, m, (Cluster(len(transactions), (Chunk(items, records),), ()),), transactions.names)

    monkeypatch.setattr(nodes.sets, "disassociate", careless)
    with pytest.raises(HolderRefused) as refused:
        drive(set_study(), other_people(tmp_path, visits()))
    assert refused.value.code == "guarantee-broken"


class Lying:
    """A holder that sends a cluster which breaks k^m, past its own guard."""

    def __init__(self, holder):
        self.holder = holder

    def answer(self, request):
        reply = decode(self.holder.answer(request), p.REPLIES)
        if not isinstance(reply.payload, sp.Sets):
            return encode(reply)
        form = from_json(reply.payload.form)
        first = form.clusters[0]
        broken = replace(form, clusters=(replace(first, chunks=(Chunk((0,), ((0,),)),), terms=()), *form.clusters[1:]))
        return encode(Message(reply.envelope, replace(reply.payload, form=to_json(broken))))


def test_the_coordinator_verifies_again(tmp_path):
    holders = other_people(tmp_path, visits())
    holders["south"] = Lying(holders["south"])
    with pytest.raises(GuaranteeBroken, match="the form of 'south'"):
        drive(set_study(), holders)


def test_items_of_one_name_at_two_holders_stay_two_items(tmp_path):
    original = visits()
    holders = {
        name: set_holder(tmp_path, name, original, ("north", "south"), set_trees=["joint"])
        for name in ("north", "south")
    }
    outcome = drive(set_study(("north", "south"), split="items", tree="joint"), holders)
    assert {name.partition(":")[0] for name in outcome.release.form.names} == {"north", "south"}


@pytest.mark.parametrize("name", ["visits.csv", "visits.txt"])
def test_holders_read_long_tables_and_lines(tmp_path, name):
    original, settings = visits(60), []
    for holder in ("north", "south"):
        made = set_holder(tmp_path, holder, original, ("north", "south"))
        place = tmp_path / holder / name
        rows = [(i, original.names[item]) for i, record in enumerate(original) for item in record]
        lines = [" ".join(original.names[item] for item in record) for record in original]
        text = "person,items\n" + "".join(f"{who},{what}\n" for who, what in rows)
        place.write_text(text if name.endswith("csv") else "\n".join(lines) + "\n")
        own = made._settings
        settings.append(replace(own, source=replace(own.source, place=place)))
    outcome = drive(set_study(("north", "south")), {one.name: DataHolder(one) for one in settings})
    assert outcome.report["people"] == 120
    assert outcome.report["occurrences"] == 2 * len(original.items)


def test_the_command_line_plays_a_study(tmp_path):
    lines = [" ".join(visits().names[item] for item in record) for record in visits()]
    (tmp_path / "visits.txt").write_text("\n".join(lines) + "\n")
    options = ("--holders", "3", "--split", "items", "--delta", "12")
    answer = command("disassociate", tmp_path / "visits.txt", *options, "--out", tmp_path / "run", "--json")
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["holders"] == 3
    assert command("verify", tmp_path / "run").out.startswith("Verified: 240 people in ")
    refused = command("disassociate", tmp_path / "visits.txt", *options, "--strict", "--split", "x", "--json")
    assert (refused.code, refused.out) == (3, "")
    assert "--strict is for one organisation" in refused.err
    assert "--split is 'people' or 'items'" in refused.err


def test_a_policy_with_several_set_columns_or_none_is_told(tmp_path):
    from federated_anon.policy import Policy, require_permitted

    with pytest.raises(PolicyRefused, match="exactly one set-valued column here, there are 0"):
        require_permitted(Policy(smallest_k=2), set_study(), [COLUMNS[0]])
