"""One rule, every grouping: no group falls below k, whatever the table."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from federated_anon.arrays import Labels, Points
from federated_anon.errors import DataRefused
from federated_anon.microaggregation import (
    HAC,
    MDAV,
    TFRP,
    Blocked,
    KMeansMicroaggregation,
    LocalSearch,
    MaximumDistance,
    Refine,
    UnitGroups,
    VariableMDAV,
    best_groups,
    merge_small_units,
    split_large_groups,
)
from federated_anon.som import Grid

Method = Callable[[Points, int], Labels]


def _units(X: Points, k: int) -> Labels:
    codebook = np.asarray(X[: max(1, len(X) // 2)], dtype=float)
    return merge_small_units(X, np.arange(len(X)) % len(codebook), codebook, k)


METHODS: dict[str, Method] = {
    "mdav": lambda X, k: MDAV(k).fit(X).labels_,
    "variable mdav": lambda X, k: VariableMDAV(k, gamma=1.1).fit(X).labels_,
    "maximum distance": lambda X, k: MaximumDistance(k).fit(X).labels_,
    "tfrp": lambda X, k: TFRP(k).fit(X).labels_,
    "hac": lambda X, k: HAC(k).fit(X).labels_,
    "hac as printed": lambda X, k: HAC(k, "complete", maximal=False, priority=False, refine=False).fit(X).labels_,
    "hac centroid": lambda X, k: HAC(k, "centroid", refine=False).fit(X).labels_,
    "k-means": lambda X, k: KMeansMicroaggregation(k).fit(X).labels_,
    "k-means, random start": lambda X, k: KMeansMicroaggregation(k, seed=1).fit(X).labels_,
    "unit groups": lambda X, k: UnitGroups(k, grid=Grid(3, 4)).fit(X).labels_,
    "merged units": _units,
    "split": lambda X, k: split_large_groups(X, np.zeros(len(X), dtype=int), k),
    "refine": lambda X, k: Refine(k).fit(X).labels_,
    "refine, one large start": lambda X, k: Refine(k, start=np.zeros(len(X), dtype=int)).fit(X).labels_,
    "search": lambda X, k: LocalSearch(k, steps=60).fit(X).labels_,
    "blocks": lambda X, k: Blocked(k, cell=max(2 * k, 8), steps=2.0).fit(X).labels_,
    "best, small": lambda X, k: best_groups(X, k, seed=3).labels,
    "best, large": lambda X, k: best_groups(X, k, seed=3, large=1).labels,
}
AT_MOST_2K = {"mdav", "tfrp", "hac", "k-means", "unit groups", "split", "refine", "search", "blocks", "best, small"}


@pytest.fixture(params=METHODS, ids=str)
def method(request: pytest.FixtureRequest) -> Method:
    return METHODS[request.param]


def assert_partition(labels: Labels, records: int, k: int) -> None:
    sizes = np.bincount(labels)
    assert labels.shape == (records,)
    assert labels.dtype == np.int64
    assert sizes.min() >= k


def tables() -> dict[str, Points]:
    rng = np.random.default_rng(5)
    return {
        "plain": rng.standard_normal((101, 4)),
        "skewed": rng.lognormal(0, 3, (97, 3)),
        "ties": rng.integers(0, 3, (90, 2)),
        "duplicates": np.repeat(rng.standard_normal((9, 3)), 11, axis=0),
        "constant": np.full((43, 5), 7.25),
        "one column": rng.standard_normal((60, 1)),
        "a thousand columns": rng.standard_normal((40, 1000)),
        "an outlier": np.vstack([rng.standard_normal((50, 2)), [[1e9, -1e9]]]),
        "huge values": rng.standard_normal((50, 3)) * 1e300,
        "tiny values": rng.standard_normal((50, 3)) * 1e-300,
        "large offset": rng.standard_normal((50, 3)) + 1e9,
        "integers": rng.integers(-5, 5, (64, 3)),
        "booleans": rng.integers(0, 2, (64, 6)).astype(bool),
        "float32": rng.standard_normal((64, 3)).astype(np.float32),
        "column order": np.asfortranarray(rng.standard_normal((64, 3))),
    }


@pytest.mark.parametrize("k", [2, 3, 7, 20])
@pytest.mark.parametrize("name", tables())
def test_no_group_falls_below_k(method: Method, name: str, k: int) -> None:
    table = tables()[name]
    assert_partition(method(table, k), len(table), k)


@given(data=st.data(), k=st.integers(2, 6))
@settings(max_examples=40, deadline=None)
def test_no_group_falls_below_k_on_any_table(data: st.DataObject, k: int) -> None:
    shape = st.tuples(st.integers(k, 4 * k + 3), st.integers(1, 4))
    values = st.one_of(st.floats(-3, 3), st.sampled_from([0.0, 1.0, -1e12, 1e-12, 2.5]))
    table = data.draw(hnp.arrays(np.float64, shape, elements=values))
    for group in METHODS.values():
        assert_partition(group(table, k), len(table), k)


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("extra", [0, 1])
def test_fewer_than_2k_records_are_one_group(method: Method, k: int, extra: int) -> None:
    table = np.random.default_rng(k).standard_normal((k + extra * (k - 1), 3))
    assert (method(table, k) == 0).all()


@pytest.mark.parametrize("name", sorted(AT_MOST_2K))
def test_groups_stay_below_2k(name: str) -> None:
    table = np.random.default_rng(8).lognormal(0, 1, (203, 3))
    assert np.bincount(METHODS[name](table, 4)).max() < 8


def test_same_call_same_labels(method: Method) -> None:
    table = np.random.default_rng(9).integers(0, 6, (150, 3)).astype(float)
    assert np.array_equal(method(table, 4), method(table.copy(), 4))


BAD_TABLES = {
    "NaN": ([[0.0, np.nan], [1.0, 2.0], [3.0, 1.0]], "X must be finite"),
    "infinite": ([[0.0, np.inf], [1.0, 2.0], [3.0, 1.0]], "X must be finite"),
    "empty": (np.empty((0, 3)), "X is empty"),
    "no columns": (np.empty((3, 0)), "X is empty"),
    "objects": (np.array([["a", None], [1, 2], [3, 4]], dtype=object), "X must hold numbers"),
    "flat": (np.arange(4.0), "X must have two dimensions"),
}


ESTIMATORS = [MDAV, VariableMDAV, MaximumDistance, TFRP, HAC, KMeansMicroaggregation]
ESTIMATORS += [UnitGroups, Refine, LocalSearch, Blocked]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_tables_are_refused_by_name(estimator: type[MDAV], name: str) -> None:
    table, message = BAD_TABLES[name]
    with pytest.raises(DataRefused, match=message):
        estimator(2).fit(table)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("k", [1, 0, -3, 11, 2.5, True])
def test_bad_k_is_refused_by_name(estimator: type[MDAV], k: int) -> None:
    with pytest.raises(DataRefused, match="k must"):
        estimator(k).fit(np.eye(10))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_constructor_only_stores(estimator: type[MDAV]) -> None:
    assert not hasattr(estimator(-1), "labels_")
    assert estimator(3).fit(np.eye(9)).fit_predict(np.eye(9)).shape == (9,)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_column_weights_reach_every_method(estimator: type[MDAV]) -> None:
    rng = np.random.default_rng(2)
    table = rng.standard_normal((80, 2))
    weights = np.array([4.0, 0.25])
    assert np.array_equal(estimator(4).fit(table, weights).labels_, estimator(4).fit(table * np.sqrt(weights)).labels_)
    with pytest.raises(DataRefused, match="weights must"):
        estimator(4).fit(table, np.array([1.0, -1.0]))
