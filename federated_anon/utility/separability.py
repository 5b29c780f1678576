"""Separability: how well a model learns a label from a release, by two protocols.

*Printed*: cross-validate on the anonymised table itself. Records of a group are alike, so the folds share groups and a
tree memorises group -> label; random codes in place of the released values score the same. It flatters.
*Held-out*: anonymise the training folds alone, train on that release, test on original records it has never seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from federated_anon.arrays import Labels
from federated_anon.columns import Column
from federated_anon.encoding import Encoding, column_of
from federated_anon.errors import DataRefused
from federated_anon.privacy.linkage import Rate, wilson
from federated_anon.tally import plain

TREE, LINEAR, BOOSTED = "tree", "linear", "boosted"
MODELS = (TREE, LINEAR, BOOSTED)
PRINTED_FOLDS = 10
HELD_OUT_FOLDS = 5

Anonymise = Callable[[pa.Table], pa.Table]
"""Records with their label in, the release of exactly these records with the label out, rows in any order."""


@dataclass(frozen=True, slots=True)
class Separability:
    """Accuracy of each model with its 95 % interval (no record is predicted twice), and of the commonest label."""

    protocol: str
    accuracy: Mapping[str, Rate]
    by_majority: Rate
    folds: int

    @property
    def mean(self) -> float:
        """Mean accuracy over the models."""
        return float(np.mean([rate.value for rate in self.accuracy.values()]))


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be learned: the label, from the given columns, by the given models, folds drawn by the seed."""

    label: str
    columns: tuple[Column, ...]
    models: tuple[str, ...] = MODELS
    seed: int = 0


def printed(release: pa.Table, task: Task, folds: int = PRINTED_FOLDS) -> Separability:
    """Cross-validation on one table: what the papers report, for an original as for a release."""
    return _validated("printed", release, task, folds, lambda rows: release.take(pa.array(rows)))


def held_out(
    original: pa.Table, anonymise: Anonymise, task: Task, folds: int = HELD_OUT_FOLDS, tested: int | None = None
) -> Separability:
    """Train on what ``anonymise`` makes of the training folds, test on the originals of the other fold.

    ``tested`` is how many of the folds take their turn, where a few tell enough; all of them by default.
    """

    def training(rows: Labels) -> pa.Table:
        return anonymise(original.take(pa.array(rows)))

    return _validated("held-out", original, task, folds, training, tested)


def transferred(original: pa.Table, release: pa.Table, task: Task) -> Separability:
    """Train on the whole release, test on the originals in it: between the two protocols, for a release alone.

    The tested records are in the release, each as one of k in its group's representative.
    """
    truth = labels_of(original, task.label)
    predicted = _predictions(release, original, task)
    return Separability("transferred", _rates(predicted, truth), _majority(truth), 1)


def labels_of(table: pa.Table, name: str) -> NDArray[Any]:
    """(n,): the label by its spelling; missing is a label like any other."""
    return np.asarray(plain(column_of(table, name)).cast(pa.string()).fill_null("").to_numpy(zero_copy_only=False))


def fold_of(labels: NDArray[Any], folds: int, seed: int) -> Labels:
    """(n,): stratified folds, each label spread evenly; a label rarer than folds is simply absent in some."""
    if not 2 <= folds <= len(labels):
        raise DataRefused(f"{len(labels)} records cannot be cut into {folds} folds")
    rng = np.random.default_rng([seed, folds])
    shuffled = rng.permutation(len(labels))
    order = shuffled[np.argsort(labels[shuffled], kind="stable")]
    fold = np.empty(len(labels), dtype=np.int64)
    fold[order] = np.arange(len(labels)) % folds
    return fold


def _validated(
    protocol: str,
    truth: pa.Table,
    task: Task,
    folds: int,
    training: Callable[[Labels], pa.Table],
    tested: int | None = None,
) -> Separability:
    expected = labels_of(truth, task.label)
    folds = min(folds, len(expected))
    fold = fold_of(expected, folds, task.seed)
    turns = min(tested or folds, folds)
    predicted = {model: np.empty(len(expected), dtype=object) for model in task.models}
    for number in range(turns):
        rows = np.flatnonzero(fold == number)
        table = training(np.flatnonzero(fold != number))
        for model, answer in _predictions(table, truth.take(pa.array(rows)), task).items():
            predicted[model][rows] = answer
    asked = fold < turns
    answers = {model: answer[asked] for model, answer in predicted.items()}
    return Separability(protocol, _rates(answers, expected[asked]), _majority(expected[asked]), turns)


def _predictions(trained_on: pa.Table, tested: pa.Table, task: Task) -> dict[str, NDArray[Any]]:
    """What each model says of the tested records; the encoding is learned from the training table alone."""
    encoding = Encoding.fit(trained_on, task.columns)
    known, asked = encoding.encode(trained_on), encoding.encode(tested)
    targets = labels_of(trained_on, task.label)
    if len(np.unique(targets)) == 1:
        return {model: np.full(len(asked), targets[0], dtype=object) for model in task.models}
    with threadpool_limits(1):  # Small tables: threads would wait for each other longer than they work.
        return {model: _model(model, task.seed).fit(known, targets).predict(asked) for model in task.models}


def _model(name: str, seed: int) -> Any:
    """A fresh model; scikit-learn's defaults but for what makes it reproducible and finite."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier

    if name == TREE:
        return DecisionTreeClassifier(random_state=seed)
    if name == LINEAR:
        return LogisticRegression(max_iter=2000)
    if name == BOOSTED:
        return HistGradientBoostingClassifier(max_iter=60, random_state=seed, early_stopping=False)
    raise DataRefused(f"unknown model '{name}'; known: {', '.join(MODELS)}")


def _rates(predicted: Mapping[str, NDArray[Any]], truth: NDArray[Any]) -> dict[str, Rate]:
    return {model: wilson(float((answer == truth).sum()), len(truth)) for model, answer in predicted.items()}


def _majority(truth: NDArray[Any]) -> Rate:
    return wilson(float(np.unique(truth, return_counts=True)[1].max()), len(truth))


def feature_columns(columns: Sequence[Column], label: str) -> tuple[Column, ...]:
    """All columns but the label; ``DataRefused`` if none is left."""
    found = tuple(column for column in columns if column.name != label)
    if not found:
        raise DataRefused(f"nothing to learn '{label}' from: it is the only column")
    return found
