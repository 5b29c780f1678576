"""Every method by its name, through the front door."""

import numpy as np
import pyarrow as pa
import pytest

from coordinator.grouping import LARGE_HAC, TEXTBOOK, textbook_groups
from federated_anon import simulate
from federated_anon.errors import SettingsRefused
from federated_anon.methods import ALIASES, METHODS, PRESETS, Grouping, listed
from federated_anon.microaggregation.best import LARGE
from federated_anon.study import load_study
from tests.command_line import command


def people(rows=60, seed=0):
    rng = np.random.default_rng(seed)
    return pa.table({f"c{i}": rng.normal(size=rows) for i in range(4)})


def test_every_name_has_a_preset_and_stands_in_the_help():
    assert set(METHODS) == set(PRESETS)
    assert set(ALIASES.values()) <= set(METHODS)
    assert not set(ALIASES) & set(METHODS)
    assert all(name in listed() for name in (*METHODS, *ALIASES))


@pytest.mark.parametrize("alias", ALIASES)
def test_an_alias_is_the_same_study_and_says_so(alias):
    plain = simulate(people(), k=4, method=ALIASES[alias], runtime="in-process")
    other = simulate(people(), k=4, method=alias, runtime="in-process")
    assert other.report == plain.report
    assert other.table.equals(plain.table)
    assert other.summary["method_asked"] == alias
    assert "method_asked" not in plain.summary


def test_an_alias_in_a_file_is_resolved_before_the_digest(tmp_path):
    text = 'name = "a"\nholders = ["x"]\nexposure = "open"\nmethod = "{}"\n[privacy]\nk = 3\n'
    files = []
    for name in ("k-tca", "k-cmvm"):
        (tmp_path / f"{name}.toml").write_text(text.format(name))
        files.append(load_study(tmp_path / f"{name}.toml"))
    assert files[0].study.digest == files[1].study.digest
    assert [file.alias for file in files] == ["", "k-cmvm"]


@pytest.mark.parametrize("method", [name for name in METHODS if name != "best"])
def test_sealed_exposure_refuses_methods_that_need_indices(method):
    with pytest.raises(SettingsRefused, match="needs exposure 'open'"):
        simulate(people(), k=4, method=method, exposure="sealed", runtime="in-process")


@pytest.mark.parametrize("grouping", TEXTBOOK)
def test_a_large_table_is_cut_into_blocks_and_keeps_k(grouping):
    large = LARGE_HAC if grouping is Grouping.HAC else LARGE
    points = np.random.default_rng(0).normal(size=(large + 7, 2))
    found = textbook_groups(grouping, points, 5, seed=0)
    assert "blocks" in found.route
    assert np.bincount(found.labels).min() >= 5
    assert len(found.labels) == len(points)


def test_the_groups_are_the_textbook_methods_own():
    points = np.random.default_rng(1).normal(size=(80, 3))
    for grouping, method in TEXTBOOK.items():
        assert np.array_equal(textbook_groups(grouping, points, 4, 0).labels, method(4).fit(points).labels_)


def test_recoding_by_densities_says_which_k_it_would_have_reached():
    rng = np.random.default_rng(0)
    hills = pa.table({f"c{i}": rng.normal(size=300) + rng.integers(0, 4, 300) * 7 for i in range(5)})
    result = simulate(hills, k=5, method="kde", runtime="in-process")
    assert any("would have reached k = 1" in caveat for caveat in result.report["caveats"])
    assert result.summary["k_reached"] >= 5
    assert result.summary["information_loss_percent"] < 90
    with pytest.raises(SettingsRefused, match="has no maps"):
        simulate(hills, k=5, method="kde", runtime="in-process", collaboration={"rounds": 2})


def test_help_lists_the_methods():
    shown = command("simulate", "--help").out
    assert all(name in shown.replace("\n", " ") for name in ("v-mdav", "tfrp", "hac"))


def test_labels_wishes_and_mixed_models_give_the_same_bytes_on_ray(tmp_path):
    """The steps that only some methods take: labels, refined cells, verdicts on wishes."""
    pytest.importorskip("ray")
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 80)
    columns = {f"c{i}": rng.normal(size=80) + 4 * label for i in range(4)}
    table = pa.table(columns | {"y": label, "wished": rng.integers(0, 9, 80)})
    options = {"k": 4, "holders": 2, "keep": ("y",), "wish": "wished", "method": "k-tca++", "labels": {"column": "y"}}
    options["map"] = {"models": {"holder-2": "gmm"}}
    for runtime in ("ray", "in-process"):
        simulate(table, runtime=runtime, out=tmp_path / runtime, **options)
    for name in ("release.parquet", "release.csv", "report.json"):
        assert (tmp_path / "ray" / name).read_bytes() == (tmp_path / "in-process" / name).read_bytes()
