from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from federated_anon.errors import DataRefused
from federated_anon.quantities import quantities, restored

COLUMNS = [
    pa.array([1, None, -128], pa.int8()),
    pa.array([-(2**63), 2**63 - 1, None], pa.int64()),
    pa.array([0, 2**64 - 1, None], pa.uint64()),
    pa.array([1.5, None, -2.25], pa.float32()),
    pa.array(np.array([1.5, 2.0], np.float16), pa.float16()),
    pa.array([1e308, 5e-324, None]),
    pa.array([dt.date(1900, 2, 28), None, dt.date(2099, 12, 31)], pa.date32()),
    pa.array([dt.date(1900, 2, 28), None], pa.date64()),
    pa.array([dt.datetime(2020, 1, 1, 12), None], pa.timestamp("ns", "Europe/Berlin")),
    pa.array([dt.datetime(1960, 1, 1, 12), None], pa.timestamp("s")),
    pa.array([Decimal("-12.34"), None, Decimal("9999999.99")], pa.decimal128(30, 2)),
    pa.array([Decimal("-1.5"), None, Decimal("2.5")], pa.decimal128(18, 1)),
    pa.array([Decimal("-1.5"), None], pa.decimal256(50, 1)),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_numbers_go_there_and_back(column):
    found = quantities(column, "x")
    assert restored(found.values, found.present, column.type).equals(column)
    tail = quantities(column.slice(1), "x")
    assert restored(tail.values, tail.present, column.type).equals(column.slice(1))


def test_not_a_number_is_missing():
    assert quantities(pa.array([float("nan"), 1.0, None]), "x").present.tolist() == [False, True, False]


def test_what_has_no_mean_is_refused_by_name():
    with pytest.raises(DataRefused, match="column 'town' holds string"):
        quantities(pa.array(["a"]), "town")
