import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_anon.errors import DataRefused
from federated_anon.setvalued import Transactions
from tests.federated_anon.setvalued.sets import transactions

SETS = st.lists(st.lists(st.integers(0, 20), max_size=6), max_size=20)


@given(SETS)
def test_records_come_back_sorted_each_item_once(sets):
    data = Transactions.of(sets)
    told = [{int(data.names[item]) for item in record} for record in data]
    assert told == [set(one) for one in sets]
    assert all(list(record) == sorted(set(record)) for record in data)
    assert [data.record(i) for i in range(len(data))] == list(data)


@given(transactions(min_size=1), st.randoms())
def test_select_takes_records_in_the_asked_order(data, random):
    rows = [random.randrange(len(data)) for _ in range(10)]
    assert list(data.select(rows)) == [data.record(row) for row in rows]
    assert len(data.select([])) == 0


@given(transactions())
def test_supports_count_the_records_of_each_item(data):
    assert data.supports.tolist() == [sum(item in record for record in data) for item in range(len(data.names))]


def test_numbers_are_ordered_as_numbers_and_words_as_words():
    assert Transactions.of([["10", "9"], ["100"]]).names == ("9", "10", "100")
    assert Transactions.of([["10", "9"], ["x"]]).names == ("10", "9", "x")
    assert Transactions.of([["010", "9"]]).names == ("010", "9")


def test_given_names_are_kept_and_strangers_refused():
    data = Transactions.of([["b"], ["a", "b"]], names=("b", "a", "c"))
    assert data.names == ("b", "a", "c")
    assert list(data) == [(0,), (0, 1)]
    with pytest.raises(DataRefused, match="such as 'z'"):
        Transactions.of([["z"]], names=("a",))
    with pytest.raises(DataRefused, match="differ"):
        Transactions.of([], names=("a", "a"))


def test_equal_data_is_equal_and_its_arrays_are_typed():
    data = Transactions.of([[1, 2], []])
    assert data == Transactions.of([["2", "1"], []])
    assert data != Transactions.of([[1], [2]])
    assert (data.offsets.dtype, data.items.dtype) == (np.int64, np.int32)
