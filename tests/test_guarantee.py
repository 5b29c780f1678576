"""No class below k, ever: whole studies over any small table, counted by code of its own."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federated_anon import simulate
from federated_anon.errors import DataRefused, GuaranteeBroken
from federated_anon.methods import METHODS, PRESETS


def labelled(method, column):
    """The labels that a method needs, if it does."""
    return {"labels": {"column": column}} if PRESETS[method].labels else {}


@st.composite
def tables(draw):
    """Tables full of what goes wrong: ties, constants, missing values, categories of one record, dates."""
    rows = draw(st.integers(6, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    missing = draw(st.sampled_from([0.0, 0.2, 0.6]))

    def holes(values):
        return pa.array(values, mask=(rng.random(rows) < missing) & (np.arange(rows) > 0))

    kinds = {
        "tied": lambda: holes(rng.integers(0, 3, rows)),
        "constant": lambda: holes(np.full(rows, 7.5)),
        "skewed": lambda: holes(np.exp(3 * rng.standard_normal(rows))),
        "rare": lambda: holes(np.array(["a", "b", "c", "d"])[np.minimum(rng.geometric(0.6, rows) - 1, 3)]),
        "flag": lambda: holes(rng.random(rows) < 0.1),
        "day": lambda: holes(np.datetime64("2020-01-01") + rng.integers(0, 900, rows).astype("timedelta64[D]")),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(kinds)), min_size=2, max_size=5, unique=True))
    sensitive = rng.choice(["x", "y", "z"], rows)
    return pa.table({name: kinds[name]() for name in chosen} | {"secret": sensitive})


@settings(max_examples=60)
@given(
    table=tables(),
    k=st.integers(2, 6),
    l=st.sampled_from([None, None, 2]),
    method=st.sampled_from(METHODS),
    seed=st.integers(0, 99),
    align=st.sampled_from(["lead", "match", "none"]),
)
def test_no_class_of_any_release_is_smaller_than_k(table, k, l, method, seed, align):  # noqa: E741
    options = {"collaboration": {} if PRESETS[method].density else {"align": align}, **labelled(method, "secret")}
    try:
        result = simulate(
            table, k=k, l=l, holders=2, sensitive=("secret",), method=method, seed=seed, runtime="in-process", **options
        )
    except GuaranteeBroken:
        assert l is not None, "k alone can always be kept on k records"
        return
    except DataRefused:
        assert k > table.num_rows or any(column.null_count == len(column) for column in table.columns)
        return
    quasi = [name for name in result.table.column_names if name != "secret"]
    classes = Counter(map(tuple, zip(*(result.table[name].to_pylist() for name in quasi), strict=True)))
    assert min(classes.values()) >= k
    assert sum(classes.values()) == table.num_rows
    assert Counter(result.table["secret"].to_pylist()) == Counter(table["secret"].to_pylist())
    for name in quasi:
        assert result.table.schema.field(name).type == table.schema.field(name).type


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("holders", [1, 2, 4])
def test_every_method_works_with_any_number_of_holders(method, holders):
    rng = np.random.default_rng(0)
    table = pa.table({f"c{i}": rng.normal(size=90) for i in range(5)} | {"y": rng.choice(["u", "v"], 90)})
    options = {"keep": ("y",), "method": method, **labelled(method, "y")}
    result = simulate(table, k=4, holders=holders, runtime="in-process", **options)
    assert result.summary["k_reached"] >= 4
    loss = result.summary["information_loss_percent"]
    assert loss == pytest.approx(100) if PRESETS[method].density else 0 < loss < 100, "a column of one hill is one cell"


def test_entropy_diversity_and_closeness_are_kept():
    rng = np.random.default_rng(1)
    table = pa.table({"a": rng.normal(size=200), "b": rng.normal(size=200), "s": rng.choice(list("uvwx"), 200)})
    options = {"privacy": {"k": 3, "l": 2, "diversity": "entropy", "t": 0.4}}
    result = simulate(table, holders=2, sensitive=("s",), runtime="in-process", **options)
    assert result.report["diversity_reached"]["s"] >= 2
    assert result.report["closeness_reached"]["s"] <= 0.4


def test_relations_between_columns_of_different_holders_survive_the_shuffle():
    """Kept columns of two holders go through one permutation: equal columns stay equal in every row."""
    rng = np.random.default_rng(2)
    twin = rng.integers(0, 10**6, 120)
    table = pa.table({"a": rng.normal(size=120), "b": rng.normal(size=120), "left": twin, "right": twin})
    views = [("a", "left"), ("b", "right")]
    result = simulate(table, k=5, keep=("left", "right"), views=views, runtime="in-process")
    assert result.table["left"].equals(result.table["right"])
    assert sorted(result.table["left"].to_pylist()) == sorted(twin.tolist())
    assert result.table["left"].to_pylist() != twin.tolist()


def test_a_holder_without_quasi_identifiers_takes_part_with_its_sensitive_column():
    rng = np.random.default_rng(3)
    table = pa.table({"a": rng.normal(size=100), "s": rng.choice(list("xyz"), 100)})
    result = simulate(table, k=3, l=2, sensitive=("s",), views=[("a",), ("s",)], runtime="in-process")
    assert result.report["diversity_reached"]["s"] >= 2
    assert result.report["holders"]["holder-2"]["cells"] == 1
