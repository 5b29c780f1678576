from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as parquet
import pytest

from federated_anon.comparison import CENTRAL, ORIGINAL, Cell, Store, measured, planned, standings
from federated_anon.comparison.pages import FLATTERS, html, markdown
from federated_anon.comparison.writing import write_results
from federated_anon.errors import SettingsRefused, StorageFailed
from federated_anon.microaggregation import MDAV
from federated_anon.microaggregation import information_loss as loss_of
from nodes.source import read_table


@pytest.fixture
def file(tmp_path):
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, size=60)
    columns = {name: np.round(rng.normal(size=60) + 2 * label, 3) for name in "abcd"}
    csv.write_csv(pa.table({**columns, "label": label}), tmp_path / "small.csv")
    return tmp_path / "small.csv"


def sweep_of(file, methods=("mdav", "c-tca"), **options):
    wish = {"ks": (3,), "holders": (2,), "seeds": (0,), "label": "label", "folds": 2} | options
    return planned([file], methods, wish["ks"], wish["holders"], wish["seeds"], wish["label"], (), wish["folds"])


def test_every_combination_is_a_cell_of_its_own(file):
    sweep = sweep_of(file, ks=(3, 5), seeds=(0, 1))
    cells = sweep.cells()
    assert len(cells) == len({cell.name for cell in cells}) == 2 + 4 + 8
    assert {cell.method for cell in cells} == {ORIGINAL, CENTRAL, "mdav", "c-tca"}
    assert sweep.digest != sweep_of(file, ks=(3,), seeds=(0, 1)).digest
    assert sweep_of(file, folds=0).folds_for(2000) == (5, 5)
    assert sweep_of(file, folds=0).folds_for(2001) == (3, 1)


def test_a_wish_with_faults_is_refused_with_all_of_them(file):
    with pytest.raises(SettingsRefused) as refusal:
        planned([file, file, file.parent / "none.csv"], ["magic", "k-tca++"], [1], [], [0, 0], None, (), 1)
    for told in ("none.csv", "'small'", "magic", "k-tca++", "k: at least 2", "holders", "seeds", "folds"):
        assert told in str(refusal.value)


def test_figures_of_the_reference_are_those_of_the_estimator(file):
    sweep = sweep_of(file)
    found = measured(sweep, Cell("small", CENTRAL, 3, 0, 0), read_table)
    table = read_table(file).drop_columns(["label"])
    points = np.column_stack([column.to_numpy() for column in table.columns])
    points = (points - points.mean(axis=0)) / points.std(axis=0)
    groups = MDAV(3).fit(points).labels_
    assert found["information_loss"] == pytest.approx(loss_of(points, groups))
    assert found["k_reached"] == 3
    assert found["linked"] <= 1 / 3
    assert measured(sweep, Cell("small", ORIGINAL, 1, 0, 0), read_table)["held_out_tree"] > 0.9


def test_a_federated_cell_agrees_with_the_study_itself(file):
    from federated_anon import simulate

    found = measured(sweep_of(file), Cell("small", "mdav", 3, 2, 1), read_table)
    names = list("abcd")
    study = simulate(file, k=3, holders=2, quasi=names, keep=["label"], method="mdav", seed=1, runtime="in-process")
    assert found["information_loss"] == pytest.approx(study.report["information_loss_percent"])
    assert found["k_reached"] == study.report["k_reached"]


def test_what_cannot_be_is_told_and_does_not_stop_the_rest(file):
    found = measured(sweep_of(file), Cell("small", "mdav", 3, 9, 0), read_table)
    assert "cannot be dealt to 9 holders" in found["error"]


def test_finished_cells_are_kept_and_another_sweep_is_refused(file, tmp_path):
    sweep = sweep_of(file)
    store = Store(tmp_path / "out", sweep)
    store.open()
    first = sweep.cells()[0]
    store.keep(first, {"k_reached": 1, "cell_seconds": 0.1})
    again = Store(tmp_path / "out", sweep)
    again.open()
    assert again.missing() == list(sweep.cells()[1:])
    (tmp_path / "out" / "cells" / f"{first.name}.json").write_text("{half")
    assert again.missing() == list(sweep.cells())
    with pytest.raises(SettingsRefused, match="holds other results"):
        Store(tmp_path / "out", sweep_of(file, ks=(4,))).open()
    file.write_text(file.read_text().replace("label", "Label", 1))
    with pytest.raises(SettingsRefused, match="tables was"):
        Store(tmp_path / "out", sweep_of(file)).open()
    with pytest.raises(StorageFailed, match="holds other things"):
        Store(tmp_path, sweep).open()


def figures(loss, accuracy, k=3):
    return {
        "information_loss": loss,
        "held_out": accuracy,
        "held_out_tree": accuracy,
        "printed_tree": 0.99,
        "structural_median": 1 - loss / 100,
        "correlation_error": loss / 1000,
        "linked": 0.2,
        "seconds": 1.0,
        "k_reached": k,
        "cell_seconds": 1.0,
    }


def test_ranks_pages_and_files_say_the_same(file, tmp_path):
    sweep = sweep_of(file, methods=("best", "mdav", "k-tca"), ks=(3, 5))
    store = Store(tmp_path / "out", sweep)
    store.open()
    for cell in sweep.cells():
        loss = {"best": 5.0, "mdav": 6.0}.get(cell.method, 9.0)
        store.keep(cell, figures(loss, 1 - loss / 100, k=2 if cell.method == "k-tca" else cell.k))
    found = standings(sweep, store.table())
    assert found.below_k == ("k-tca",)
    assert found.rankings["information_loss"].best_first == (("best", 1.0), ("mdav", 2.0))
    assert found.rankings["held_out"].rank_of("best") == 1.0
    assert found.scores["best"] == pytest.approx(2.0)
    text = markdown(sweep, found)
    assert FLATTERS in text
    assert "Not ranked, since they did not reach k everywhere: k-tca" in text
    assert "| small | best | 95.0 | 99.0 | +4.0 |" in text
    assert "<svg" in html(sweep, found)
    write_results(tmp_path / "out", sweep, store.table(), found)
    written = parquet.read_table(tmp_path / "out" / "results.parquet")
    assert written.num_rows == len(sweep.cells())
    assert (tmp_path / "out" / "ranks-held_out.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "out" / "sweep.json").read_text())["ks"] == [3, 5]
