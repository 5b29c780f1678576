from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_wine
from sklearn.metrics import calinski_harabasz_score, davies_bouldin_score, silhouette_score
from sklearn.tree import DecisionTreeClassifier

from federated_anon.columns import Column, Kind, Role
from federated_anon.encoding import Encoding
from federated_anon.errors import DataRefused
from federated_anon.microaggregation import MDAV
from federated_anon.utility.separability import (
    LINEAR,
    TREE,
    Task,
    feature_columns,
    fold_of,
    held_out,
    labels_of,
    printed,
    transferred,
)
from federated_anon.utility.validity import validity

WINE = load_wine()
NAMES = [f"c{number}" for number in range(13)]
COLUMNS = tuple(Column(name, Role.QUASI, Kind.NUMBER) for name in NAMES)
TABLE = pa.table({**dict(zip(NAMES, WINE.data.T, strict=True)), "label": WINE.target})
TASK = Task("label", COLUMNS, (TREE,))


def grouped(table, values=None):
    """MDAV with k=5; ``values`` may replace what is published by codes that mean nothing."""
    points = Encoding.fit(table, COLUMNS).encode(table)
    groups = MDAV(5).fit(points).labels_
    means = np.array([points[groups == g].mean(axis=0) for g in range(groups.max() + 1)])
    published = (means if values is None else values(means))[groups]
    return pa.table({**dict(zip(NAMES, published.T, strict=True)), "label": table["label"]})


def noise(means):
    return np.random.default_rng(0).normal(size=means.shape)


def original(table):
    """The same values on the scale of the release, so that a model can be asked of both."""
    scaled = (WINE.data - WINE.data.mean(axis=0)) / WINE.data.std(axis=0)
    return pa.table({**dict(zip(NAMES, scaled.T, strict=True)), "label": table["label"]})


def test_a_tree_on_the_original_is_scikit_learns_own_fold_by_fold():
    fold = fold_of(labels_of(TABLE, "label"), 10, 0)
    points, right = Encoding.fit(TABLE, COLUMNS), 0
    for number in range(10):
        train, test = TABLE.filter(pa.array(fold != number)), TABLE.filter(pa.array(fold == number))
        points = Encoding.fit(train, COLUMNS)
        tree = DecisionTreeClassifier(random_state=0).fit(points.encode(train), labels_of(train, "label"))
        right += int((tree.predict(points.encode(test)) == labels_of(test, "label")).sum())
    found = printed(TABLE, TASK).accuracy[TREE]
    assert found.value == pytest.approx(right / 178)
    assert found.low < found.value < found.high
    assert held_out(TABLE, lambda rows: rows, TASK, 10).accuracy[TREE] == found


def test_the_printed_protocol_cannot_tell_a_release_from_random_codes_and_the_held_out_one_can():
    flattering = [printed(grouped(TABLE, values), TASK).accuracy[TREE].value for values in (None, noise)]
    assert abs(flattering[0] - flattering[1]) < 0.05
    scaled = original(TABLE)
    honest = [held_out(scaled, lambda t, v=v: grouped(t, v), TASK).accuracy[TREE].value for v in (None, noise)]
    assert honest[0] > 0.75
    assert honest[1] < 0.6


def test_held_out_records_never_reach_the_anonymiser():
    seen = []

    def watch(rows):
        seen.append(set(rows["c0"].to_pylist()))
        return rows

    numbered = TABLE.set_column(0, "c0", pa.array(np.arange(178.0)))
    held_out(numbered, watch, TASK, 5)
    fold = fold_of(labels_of(TABLE, "label"), 5, 0)
    assert [len(part) for part in seen] == [int((fold != number).sum()) for number in range(5)]
    assert all(part.isdisjoint(np.flatnonzero(fold == number)) for number, part in enumerate(seen))


def test_folds_are_even_stratified_and_the_same_again():
    labels = np.array(["a"] * 50 + ["b"] * 7)
    fold = fold_of(labels, 5, 3)
    assert np.ptp(np.bincount(fold)) <= 1
    assert np.bincount(fold[:50]).tolist() == [10] * 5
    assert (fold == fold_of(labels, 5, 3)).all()
    with pytest.raises(DataRefused):
        fold_of(labels, 1, 0)


def test_more_models_and_the_release_alone():
    task = Task("label", COLUMNS, (TREE, LINEAR))
    found = transferred(original(TABLE), grouped(TABLE), task)
    assert found.mean == pytest.approx(np.mean([rate.value for rate in found.accuracy.values()]))
    assert found.accuracy[LINEAR].value > 0.9
    assert found.by_majority.value == pytest.approx(71 / 178)
    with pytest.raises(DataRefused):
        printed(TABLE, Task("label", COLUMNS, ("oracle",)))
    with pytest.raises(DataRefused):
        feature_columns([Column("label", Role.KEEP, Kind.INTEGER)], "label")


def test_a_release_of_one_label_predicts_it():
    task = Task("label", COLUMNS, (LINEAR,))
    one = TABLE.set_column(13, "label", pa.array([1] * 178))
    assert transferred(TABLE, one, task).accuracy[LINEAR].value == pytest.approx(71 / 178)


def test_indices_are_those_of_scikit_learn():
    points = Encoding.fit(TABLE, COLUMNS).encode(TABLE)
    found = validity(points, WINE.target)
    assert found.silhouette == pytest.approx(silhouette_score(points, WINE.target))
    assert found.davies_bouldin == pytest.approx(davies_bouldin_score(points, WINE.target))
    assert found.calinski_harabasz == pytest.approx(calinski_harabasz_score(points, WINE.target))
    with pytest.raises(DataRefused):
        validity(points, np.zeros(178, dtype=int))
