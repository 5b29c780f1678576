from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as parquet
import pytest

from federated_anon.columns import Column, Kind, Role
from federated_anon.errors import DataRefused
from federated_anon.evaluation import evaluate
from federated_anon.microaggregation import MDAV, group_means, information_loss
from tests.command_line import ROLES, command, people, require_refusal, write

QUASI = tuple(Column(name, Role.QUASI, Kind.NUMBER) for name in "abc")
COLUMNS = (*QUASI, Column("ill", Role.SENSITIVE, Kind.CATEGORY))


def tables(records=90, k=3):
    """Originals, a release by MDAV in shuffled order, the released row of each original, and the loss."""
    rng = np.random.default_rng(0)
    ill = rng.integers(0, 3, size=records)
    points = rng.normal(size=(records, 3)) + ill[:, None]
    standard = (points - points.mean(axis=0)) / points.std(axis=0)
    groups = MDAV(k).fit(standard).labels_
    means = group_means(points, groups)
    order = rng.permutation(records)
    names = np.array(["x", "y", "z"])
    original = pa.table({**dict(zip("abc", points.T, strict=True)), "ill": names[ill]})
    release = pa.table({**dict(zip("abc", means[order].T, strict=True)), "ill": names[ill][order]})
    rows = np.empty(records, dtype=np.int64)
    rows[order] = np.arange(records)
    return original, release, rows, information_loss(standard, groups)


def test_with_rows_the_loss_is_the_true_one_and_without_a_bound_below_it():
    original, release, rows, loss = tables()
    known = evaluate(original, release, COLUMNS, rows=rows)
    assert known["loss"]["information_loss_percent"] == pytest.approx(loss)
    assert known["loss"]["mean_squared_error"] == pytest.approx(3 * loss / 100)
    for column in "abc":
        errors = known["loss"]["columns"][column]
        lost = known["loss"]["columns_percent"][column] / 100
        assert errors["normalised_variance"] == pytest.approx(lost), "group means have no mean error"
        assert errors["correlation"] == pytest.approx(np.sqrt(1 - lost))
    blind = evaluate(original, release, COLUMNS)
    assert 0 < blind["loss"]["information_loss_at_least_percent"] <= loss
    assert known["risk"]["linkage"]["linked"]["value"] <= blind["risk"]["linkage"]["at_most"] <= 1 / 3 + 1e-9
    assert known["loss"]["distorted_cells"] >= blind["loss"]["distorted_cells_at_least"] > 0
    assert "columns" not in blind["loss"]


def test_what_needs_no_rows_does_not_depend_on_their_order():
    original, release, _, _ = tables()
    shuffled = release.take(pa.array(np.random.default_rng(1).permutation(90)))
    first, second = (evaluate(original, one, COLUMNS) for one in (release, shuffled))
    for part in ("privacy", "loss", "structure"):
        assert json.dumps(rounded(first[part])) == json.dumps(rounded(second[part]))


def rounded(value):
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    return round(value, 9) + 0.0 if isinstance(value, float) else value


def test_privacy_by_hand():
    original = pa.table({"a": [1.0, 2.0, 3.0, 8.0, 9.0], "ill": list("xxyzz")})
    release = pa.table({"a": [2.0, 2.0, 2.0, 8.5, 8.5], "ill": list("xxyzz")})
    columns = (QUASI[0], COLUMNS[-1])
    found = evaluate(original, release, columns, rows=np.arange(5), label="ill")
    privacy = found["privacy"]
    assert privacy["k"] == 2
    assert privacy["l_distinct"] == {"ill": 1}
    assert privacy["t"] == {"ill": pytest.approx(0.6)}
    assert privacy["anonymity_set_mean"] == pytest.approx((9 + 4) / 5)
    assert privacy["guesses_to_success"] == pytest.approx((3 * 2 + 2 * 1.5) / 5)
    assert privacy["degree"] == "probable innocence"
    assert found["loss"]["discernibility"] == 13
    assert found["loss"]["classification_metric"] == pytest.approx(0.2)
    assert found["loss"]["distorted_cells"] == 4
    assert found["loss"]["range_loss"] == pytest.approx(3 * 2 / 8 + 2 * 1 / 8)


def test_all_protocols_stand_beside_each_other_with_the_warning():
    original, release, rows, _ = tables()
    found = evaluate(original, release, COLUMNS, label="ill", rows=rows, anonymise=lambda table: table)
    assert set(found["separability"]) == {"original", "printed", "transferred", "held_out"}
    assert set(found["combined_utility"]) == {"printed", "transferred", "held_out"}
    assert any("flatters" in note for note in found["notes"])
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_every_reason_why_a_release_does_not_fit_is_told_at_once():
    original, release, _, _ = tables()
    wrong = release.slice(5).drop_columns(["c"]).append_column("extra", pa.array(range(85)))
    wrong = wrong.set_column(0, "a", pa.array(["one"] * 85))
    with pytest.raises(DataRefused) as refusal:
        evaluate(original, wrong, COLUMNS, label="none")
    for told in (
        "5 faults",
        "'c' is not a column of the release",
        "'extra'",
        "90 originals, 85",
        "'a' is double",
        "'none'",
    ):
        assert told in str(refusal.value)
    with pytest.raises(DataRefused, match="no column is a quasi-identifier"):
        evaluate(original, release, COLUMNS[-1:])
    with pytest.raises(DataRefused, match="every released row once"):
        evaluate(original, release, COLUMNS, rows=np.zeros(90, dtype=np.int64))


def test_the_command_reads_tables_and_runs_and_refuses_with_all_faults(room):
    table = write(room / "people.csv", people())
    simulated = command(
        "simulate", table, *ROLES, "--k", "4", "--runtime", "in-process", "--out", "run", "--evaluate", "--json"
    )
    assert simulated.code == 0, simulated.err
    written = json.loads((room / "run" / "evaluation.json").read_text())
    assert written["rows_known"] is True
    assert written["privacy"]["k"] == 4
    told = json.loads((room / "run" / "report.json").read_text())["information_loss_percent"]
    assert written["loss"]["information_loss_percent"] == pytest.approx(told)
    assert command("verify", "run").code == 0
    answer = command("evaluate", table, "run", "--json")
    found = json.loads(answer.out)
    assert found["measured_by_holders"]["information_loss_percent"] == told
    assert found["loss"]["information_loss_at_least_percent"] <= told
    shown = command("evaluate", table, room / "run" / "release.csv", "--drop", "id", "--sensitive", "illness")
    assert shown.code == 0, shown.err
    assert "people linked" in shown.out
    release = parquet.read_table(room / "run" / "release.parquet")
    csv.write_csv(release.slice(3).drop_columns(["pay"]), room / "less.csv")
    refused = command("evaluate", table, "less.csv", "--drop", "id", "--label", "none")
    require_refusal(refused, 4, "3 faults", "'pay' is not a column of the release", "60 originals, 57", "'none'")
    require_refusal(command("evaluate", table, room), 4, "not the folder of a finished run")
    require_refusal(command("simulate", table, *ROLES, "--evaluate"), 3, "--out")


def test_a_key_or_the_order_say_which_row_is_whose(room):
    original, release, rows, loss = tables()
    keyed = [
        table.append_column("id", pa.array(ids)) for table, ids in ((original, range(90)), (release, np.argsort(rows)))
    ]
    for table, name in zip(keyed, ("o.csv", "r.csv"), strict=True):
        csv.write_csv(table, room / name)
    found = json.loads(command("evaluate", "o.csv", "r.csv", "--key", "id", "--sensitive", "ill", "--json").out)
    assert found["loss"]["information_loss_percent"] == pytest.approx(loss)
    csv.write_csv(release.take(pa.array(rows)), room / "same.csv")
    options = ("--aligned", "--drop", "id", "--sensitive", "ill", "--json")
    same = json.loads(command("evaluate", "o.csv", "same.csv", *options).out)
    assert rounded(same["loss"]) == rounded(found["loss"])
