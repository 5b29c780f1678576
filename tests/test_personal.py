"""Personal k: nobody in a group smaller than their own wish, and the wishes stay at home."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federated_anon import simulate
from federated_anon.columns import Column, Kind, Role, column_faults
from federated_anon.errors import Code, DataRefused, GuaranteeBroken, HolderRefused, SettingsRefused
from federated_anon.privacy import require_wishes, unmet_groups
from tests.simulator import DataHolder, Driver, Tape, make_settings, make_study, make_table


def people(rows, wishes, seed=0):
    rng = np.random.default_rng(seed)
    columns = {f"c{i}": rng.normal(size=rows) for i in range(4)}
    return pa.table(columns | {"who": [f"p{i}" for i in range(rows)], "wished": pa.array(wishes)})


def released(rows, wishes, seed=0, **options):
    """The size of each person's class in the release, and their wish; ``who`` is kept, and moves inside groups only."""
    result = simulate(
        people(rows, wishes, seed),
        k=3,
        holders=2,
        keep=("who",),
        wish="wished",
        seed=seed,
        runtime="in-process",
        **options,
    )
    assert "wished" not in result.table.column_names
    rows_of = list(zip(*(result.table[f"c{i}"].to_pylist() for i in range(4)), strict=True))
    sizes = Counter(rows_of)
    size = dict(zip(result.table["who"].to_pylist(), (sizes[row] for row in rows_of), strict=True))
    return [(size[f"p{i}"], wish) for i, wish in enumerate(wishes)], result


@settings(max_examples=25)
@given(
    st.lists(st.one_of(st.none(), st.integers(-2, 12)), min_size=12, max_size=40),
    st.sampled_from(["best", "mdav", "c-tca", "kde"]),
    st.sampled_from(["open", "sealed"]),
    st.integers(0, 9),
)
def test_everybody_is_among_as_many_as_they_wished(wishes, method, exposure, seed):
    wishes[0] = 7
    chosen = "best" if exposure == "sealed" else method
    pairs, result = released(len(wishes), wishes, seed, method=chosen, exposure=exposure)
    assert all(size >= (wish or 0) for size, wish in pairs)
    assert result.summary["k_reached"] >= 3
    assert any("Personal k" in caveat for caveat in result.report["caveats"])


def test_without_wishes_the_groups_would_have_been_too_small():
    wishes = [25 if i % 10 == 0 else 0 for i in range(60)]
    plain = simulate(people(60, wishes), k=3, holders=2, keep=("who",), drop=("wished",), runtime="in-process")
    assert plain.summary["k_reached"] < 25
    assert all(size >= wish for size, wish in released(60, wishes)[0])


@pytest.mark.parametrize("exposure", ["open", "sealed"])
def test_a_wish_beyond_the_table_cannot_be_kept(exposure):
    with pytest.raises(GuaranteeBroken, match="wish"):
        released(20, [21] + [0] * 19, exposure=exposure)


def test_verdicts_by_hand():
    groups, wishes = np.array([0, 0, 0, 1, 1, 2, 2]), np.array([3, 0, 1, 3, 0, -5, 2])
    assert unmet_groups(groups, wishes).tolist() == [False, True, False]
    with pytest.raises(GuaranteeBroken, match="1 records"):
        require_wishes(groups, wishes)
    require_wishes(groups, np.minimum(wishes, 2))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-1, 6)), min_size=1, max_size=40))
def test_the_verdict_and_its_independent_check_agree(pairs):
    groups = np.unique([group for group, _ in pairs], return_inverse=True)[1]
    wishes = np.array([wish for _, wish in pairs])
    if unmet_groups(groups, wishes).any():
        with pytest.raises(GuaranteeBroken):
            require_wishes(groups, wishes)
    else:
        require_wishes(groups, wishes)


def holders_with_wishes(tmp_path, wished=9):
    made = {}
    for number, name in enumerate(("north", "south")):
        table, columns = make_table(60, number, name)
        if name == "north":
            wishes = np.full(60, 0)
            wishes[:4] = wished
            table = table.append_column("wished", pa.array(wishes))
            columns = (*columns, Column("wished", Role.WISH, Kind.INTEGER))
        made[name] = DataHolder(make_settings(tmp_path, name, table, columns, ("north", "south")))
    return made


def test_no_wish_leaves_the_holder(tmp_path):
    tape = Tape(holders_with_wishes(tmp_path, 987_654_321 % 50))
    study = make_study(privacy={"k": 3, "personal": "wished"})
    outcome = Driver(study, tape).run()
    assert "wished" not in outcome.release.table.column_names
    other = Tape(holders_with_wishes(tmp_path / "other", 2))
    Driver(study, other).run()
    before = [reply for name, reply in tape.replies if name == "north"][:4]
    same = [reply for name, reply in other.replies if name == "north"][:4]
    assert before == same, "up to the verdicts a holder's replies do not depend on the wishes"


def test_wishes_that_the_study_does_not_name_are_not_passed_over(tmp_path):
    with pytest.raises(HolderRefused) as error:
        Driver(make_study(), Tape(holders_with_wishes(tmp_path))).run()
    assert (error.value.holder, error.value.code) == ("north", Code.POLICY_ROLE)


def test_wishes_that_nobody_has_are_refused(tmp_path):
    table = people(20, [0] * 20).drop_columns(["wished"])
    with pytest.raises((DataRefused, SettingsRefused), match="wished"):
        simulate(table, k=3, holders=2, keep=("who",), runtime="in-process", privacy={"k": 3, "personal": "wished"})


def test_wishes_are_whole_numbers():
    assert "type 'integer'" in column_faults(Column("w", Role.WISH, Kind.CATEGORY))[0]
