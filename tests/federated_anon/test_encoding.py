from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_anon.columns import Column, Kind, Role
from federated_anon.encoding import Encoding, group_loss, squared_loss
from federated_anon.errors import DataRefused

LEVELS = ("low", "mid", "high")


def quasi(name, kind, **rest):
    return Column(name, Role.QUASI, kind, **rest)


def encoded(values, kind, **rest):
    table = pa.table({"x": values})
    return Encoding.fit(table, [quasi("x", kind, **rest)]).encode(table)


def mean_squared_distance(points):
    return ((points[:, None] - points) ** 2).sum(axis=2).mean()


def test_numbers_are_z_scores_of_the_population():
    points = encoded([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0], Kind.NUMBER)
    assert points[:, 0] == pytest.approx([-1.5, -0.5, -0.5, -0.5, 0, 0, 1, 2])


@pytest.mark.parametrize(
    ("values", "kind", "rest"),
    [
        ([1.0, 5.0, 2.5, 8.0], Kind.NUMBER, {}),
        ([1, 5, 2, 800], Kind.INTEGER, {}),
        ([Decimal("1.5"), Decimal("2.5"), Decimal("-7.5")], Kind.NUMBER, {}),
        ([dt.date(2020, 1, 1), dt.date(1950, 1, 1), dt.date(1999, 9, 9)], Kind.DATE, {}),
        ([dt.datetime(2020, 1, 1), dt.datetime(1950, 1, 1)], Kind.TIMESTAMP, {}),
        (["low", "high", "low", "mid"], Kind.ORDERED, {"levels": LEVELS}),
        (["a", "b", "a", "c", None], Kind.CATEGORY, {}),
        ([str(i) for i in range(30)], Kind.CATEGORY, {}),
        ([True, False, False], Kind.BOOLEAN, {}),
        ([3, 1, 2, 3], Kind.CATEGORY, {}),
    ],
)
@pytest.mark.parametrize("weight", [1.0, 4.0])
def test_every_kind_adds_the_same_expected_distance(values, kind, rest, weight):
    points = encoded(values, kind, weight=weight, **rest)
    assert mean_squared_distance(points) == pytest.approx(2 * weight)


@pytest.mark.parametrize("weight", [1.0, 0.25])
def test_a_missing_number_is_as_far_as_two_present_ones(weight):
    points = encoded([1.0, 5.0, 2.5, 8.0, None, float("nan")], Kind.NUMBER, weight=weight)
    assert points.shape == (6, 2)
    assert ((points[:4] - points[4]) ** 2).sum(axis=1).mean() == pytest.approx(2 * weight)
    assert np.array_equal(points[4], points[5])


def test_missing_is_one_more_level_of_a_category():
    points = encoded(["a", None, "b", None], Kind.CATEGORY)
    assert points.shape == (4, 3)
    assert np.array_equal(points[1], points[3])
    assert ((points[1] - points[0]) ** 2).sum() == pytest.approx(((points[2] - points[0]) ** 2).sum())


def test_levels_are_evenly_spaced_in_declared_order():
    points = encoded(["high", "low", "mid", None], Kind.ORDERED, levels=LEVELS)[:, 0]
    assert points[1] < points[2] < points[0]
    assert points[0] - points[2] == pytest.approx(points[2] - points[1])
    assert points[3] == 0


@pytest.mark.parametrize(
    ("values", "kind"),
    [([0.1] * 10, Kind.NUMBER), ([7], Kind.INTEGER), (["a"] * 3, Kind.CATEGORY), ([True], Kind.BOOLEAN)],
)
def test_a_constant_column_is_zero(values, kind):
    assert not encoded(values, kind).any()


def test_a_column_without_values_is_one_state():
    points = encoded(pa.array([None, None], pa.float64()), Kind.NUMBER)
    assert points.tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([-(2**63), 2**63 - 1], pa.int64()),
        pa.array([0, 2**64 - 1], pa.uint64()),
        pa.array([-1.7e308, 1.7e308]),
        pa.array([5e-324, 0.0]),
        pa.array([2**62, 2**62 + 1], pa.timestamp("ns", "UTC")),
    ],
)
def test_extremes_keep_their_distance(values):
    kind = Kind.TIMESTAMP if pa.types.is_timestamp(values.type) else Kind.NUMBER
    assert sorted(encoded(values, kind)[:, 0]) == pytest.approx([-1, 1])


def test_unseen_values_are_coded():
    columns = [quasi("c", Kind.CATEGORY), quasi("o", Kind.ORDERED, levels=LEVELS), quasi("i", Kind.INTEGER)]
    seen = pa.table({"c": ["a", "b", None], "o": ["low", "high", None], "i": [1, 3, None]})
    new = pa.table({"c": ["z", None, "a"], "o": ["mid", "other", None], "i": [-5, 2, None]})
    points = Encoding.fit(seen, columns).encode(new)
    assert points.shape == (3, 7)
    assert not points[0, :3].any()
    assert points[:, 3].tolist() == [0, 0, 0]
    assert points[:, 4].tolist() == [0, 0, 1]
    assert points[:, 5].tolist() == [-7, 0, 0]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.string_view()])
def test_a_category_is_coded_by_its_spelling_whatever_its_type(kind):
    plain = pa.table({"x": ["b", "a", None, "b"]})
    fitted = Encoding.fit(plain, [quasi("x", Kind.CATEGORY)])
    other = pa.table({"x": pa.array(["b", "a", None, "b"]).cast(kind)})
    assert np.array_equal(fitted.encode(plain), fitted.encode(other))
    assert np.array_equal(encoded(other["x"], Kind.CATEGORY), fitted.encode(plain))


def test_slices_cover_the_width_in_order():
    table = pa.table({"a": [1, 2], "b": ["x", "y"], "c": [1.0, None]})
    kinds = (Kind.INTEGER, Kind.CATEGORY, Kind.NUMBER)
    columns = [quasi(name, kind) for name, kind in zip("abc", kinds, strict=True)]
    fitted = Encoding.fit(table, columns)
    assert fitted.slices == {"a": slice(0, 1), "b": slice(1, 3), "c": slice(3, 5)}
    assert fitted.width == fitted.encode(table).shape[1] == 5


@given(st.lists(st.sampled_from(["a", "b", "c", "d", None]), min_size=1, max_size=30))
def test_a_category_can_be_read_back_from_its_code(values):
    table = pa.table({"x": pa.array(values, pa.string())})
    points = Encoding.fit(table, [quasi("x", Kind.CATEGORY)]).encode(table)
    same_code = (points[:, None] == points).all(axis=2)
    same_value = np.array([[a == b for b in values] for a in values])
    assert np.array_equal(same_code, same_value | (len(set(values)) == 1))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=20, unique=True))
def test_order_of_integers_survives(values):
    table = pa.table({"x": pa.array(values, pa.int64())})
    scores = Encoding.fit(table, [quasi("x", Kind.INTEGER)]).encode(table)[:, 0]
    assert np.isfinite(scores).all()
    assert np.all(np.diff(scores[np.argsort(values, kind="stable")]) >= 0)
    assert scores.std() == pytest.approx(1)


def test_loss_is_measured_per_column():
    columns = [quasi("n", Kind.NUMBER, weight=2.0), quasi("c", Kind.CATEGORY)]
    original = pa.table({"n": [0.0, 2.0, 4.0, 6.0], "c": ["a", "a", "b", "b"]})
    released = pa.table({"n": [1.0, 1.0, 5.0, 5.0], "c": ["a", "a", "b", "a"]})
    number, category = squared_loss(Encoding.fit(original, columns), original, released)
    assert (number.name, category.name) == ("n", "c")
    assert number.sse == pytest.approx(2.0 * 4 / 5)
    assert number.sst == pytest.approx(2.0 * 4)
    assert category.sse == pytest.approx(4)
    assert category.sst == pytest.approx(4)


def test_loss_of_the_means_of_everything_is_the_total():
    original = pa.table({"n": [0.0, 2.0, 4.0, 6.0]})
    (loss,) = squared_loss(Encoding.fit(original, [quasi("n", Kind.NUMBER)]), original, pa.table({"n": [3.0] * 4}))
    assert loss.sse == pytest.approx(loss.sst)


def test_what_cannot_be_encoded_is_refused():
    table = pa.table({"x": [str(i) for i in range(1001)]})
    with pytest.raises(DataRefused, match="'x' has 1001 distinct values, at most 1000"):
        Encoding.fit(table, [quasi("x", Kind.CATEGORY)])
    with pytest.raises(DataRefused, match="no column 'y'; known columns: x"):
        Encoding.fit(table, [quasi("y", Kind.CATEGORY)])
    with pytest.raises(DataRefused, match="'x' of type 'text' has no distance"):
        Encoding.fit(table, [quasi("x", Kind.TEXT)])
    with pytest.raises(DataRefused, match="at least one record"):
        Encoding.fit(table.slice(0, 0), [quasi("x", Kind.CATEGORY)])
    with pytest.raises(DataRefused, match="1001 records need as many"):
        squared_loss(Encoding.fit(table.slice(5, 5), [quasi("x", Kind.CATEGORY)]), table, table.slice(1))


def test_the_loss_of_groups_is_that_of_their_rows():
    table = pa.table({"n": [1.0, 2.0, None, 4.0], "c": ["a", "b", "b", None]})
    encoding = Encoding.fit(table, [quasi("n", Kind.NUMBER), quasi("c", Kind.CATEGORY)])
    few, groups = pa.table({"n": [1.5, None], "c": ["b", "a"]}), np.array([0, 1, 1, 0])
    assert group_loss(encoding, table, few, groups) == squared_loss(encoding, table, few.take(groups))
    assert group_loss(Encoding((), ()), table, few, groups) == ()
