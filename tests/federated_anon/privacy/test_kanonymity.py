from __future__ import annotations

from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_anon.errors import DataRefused, GuaranteeBroken
from federated_anon.privacy import equivalence_classes, require_k, smallest_class
from federated_anon.privacy.kanonymity import joint_labels

rows = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "", None]),
        st.sampled_from([0, 1, None]),
        st.sampled_from([0.5, None]),
        st.sampled_from([True, False, None]),
    ),
    min_size=1,
    max_size=40,
)


def table_of(records):
    kinds = (pa.string(), pa.int8(), pa.float32(), pa.bool_())
    columns = zip(*records, strict=True)
    return pa.table({name: pa.array(values, kind) for name, values, kind in zip("abcd", columns, kinds, strict=True)})


@given(rows)
def test_classes_are_the_distinct_combinations_with_missing_as_a_value(records):
    labels = equivalence_classes(table_of(records), ["a", "b", "c", "d"])
    seen = {}
    assert labels.tolist() == [seen.setdefault(record, len(seen)) for record in records]
    assert smallest_class(labels) == min(Counter(records).values())


@given(rows)
def test_only_the_named_columns_count(records):
    labels = equivalence_classes(table_of(records), ["b"])
    assert smallest_class(labels) == min(Counter(record[1] for record in records).values())


def test_storage_does_not_change_classes():
    parts = [pa.array(["x", "y"]).dictionary_encode(), pa.array(["y", None, "x"]).dictionary_encode()]
    assert equivalence_classes(pa.table({"a": pa.chunked_array(parts)}), ["a"]).tolist() == [0, 1, 1, 2, 0]
    large = pa.table({"a": pa.array(["x", "y", "x"], pa.large_string())})
    assert equivalence_classes(large, ["a"]).tolist() == [0, 1, 0]
    money = pa.table({"a": pa.array([Decimal("1.10"), Decimal("1.10"), None])})
    assert equivalence_classes(money, ["a"]).tolist() == [0, 0, 1]


def test_many_columns_of_many_values_do_not_overflow():
    column = np.arange(5000)
    table = pa.table({str(i): np.roll(column, i) for i in range(40)})
    assert equivalence_classes(table, table.column_names).tolist() == column.tolist()


def test_codes_of_any_size_are_joined():
    codes = [np.array([2**62, 0, 2**62]), np.array([-5, -5, -5])]
    assert joint_labels(codes, 3).tolist() == [0, 1, 0]
    with pytest.raises(DataRefused, match="3 records are needed, got one of 2"):
        joint_labels([np.array([0, 1])], 3)


def test_without_columns_all_records_are_alike():
    assert smallest_class(equivalence_classes(pa.table({"a": [1, 2, 3]}), [])) == 3


def test_k_is_required():
    labels = np.array([0, 0, 0, 7, 7])
    require_k(labels, 2)
    with pytest.raises(GuaranteeBroken, match="every group needs 3 records, the smallest has 2"):
        require_k(labels, 3)
    with pytest.raises(GuaranteeBroken, match="the smallest has 0"):
        require_k(np.array([], int), 2)


def test_unknown_and_nested_columns_are_refused():
    table = pa.table({"a": [1], "b": [["x"]]})
    with pytest.raises(DataRefused, match="no column 'z'; known: a, b"):
        equivalence_classes(table, ["z"])
    with pytest.raises(DataRefused, match="column 'b' holds list"):
        equivalence_classes(table, ["b"])
