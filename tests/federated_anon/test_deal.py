import pyarrow as pa
import pytest

from federated_anon.columns import Role
from federated_anon.deal import Roles, assigned, dealt, declared, with_key
from federated_anon.errors import SettingsRefused

TABLE = pa.table({name: [1.0, 2.0] for name in "abcde"})


def test_the_star_stands_for_the_rest():
    roles = assigned(list("abc"), Roles(quasi=("*",), keep=("b",)))
    assert roles == {"a": Role.QUASI, "b": Role.KEEP, "c": Role.QUASI}


def test_all_faults_of_the_roles_come_together():
    with pytest.raises(SettingsRefused) as refused:
        assigned(list("abc"), Roles(quasi=("a", "x"), keep=("a",)))
    text = str(refused.value)
    assert "3 faults" in text
    assert "unknown column 'x'" in text
    assert "'a' has 2 roles" in text
    assert "columns without a role: b, c" in text


def test_two_stars_are_one_too_many():
    with pytest.raises(SettingsRefused, match="once only"):
        assigned(list("abc"), Roles(quasi=("*",), drop=("*",)))


def test_without_a_key_the_row_is_the_key_whatever_columns_are_called():
    table = pa.table({"row": [1.0, 2.0], "row_": [3.0, 4.0]})
    people = with_key(table, declared(table, Roles(quasi=("*",))))
    assert people.table.column_names == ["row", "row_", "row__"]
    assert people.columns[-1].role is Role.KEY


def test_every_holder_gets_the_key_and_a_fair_share():
    people = with_key(TABLE, declared(TABLE, Roles(quasi=("*",), sensitive=("e",))))
    shares = dealt(people.columns, 2, (), seed=3)
    names = [[column.name for column in share] for share in shares.values()]
    assert all(share[0] == "row" for share in names)
    assert sorted(name for share in names for name in share[1:]) == list("abcde")
    assert [sum(c.role is Role.QUASI for c in share) for share in shares.values()] == [2, 2]
    assert shares == dealt(people.columns, 2, (), seed=3)


def test_views_deal_as_they_say_and_their_faults_come_together():
    people = with_key(TABLE, declared(TABLE, Roles(quasi=("*",))))
    shares = dealt(people.columns, 3, (("a", "c"), ("b", "d", "e")), seed=0)
    assert [[c.name for c in share[1:]] for share in shares.values()] == [["a", "c"], ["b", "d", "e"]]
    with pytest.raises(SettingsRefused) as refused:
        dealt(people.columns, 3, (("a", "x"), ("a", "b")), seed=0)
    assert "5 faults" in str(refused.value)


def test_more_holders_than_columns_are_refused():
    people = with_key(TABLE, declared(TABLE, Roles(quasi=("*",))))
    with pytest.raises(SettingsRefused, match="cannot be dealt to 6 holders"):
        dealt(people.columns, 6, (), seed=0)
