"""The report as people see it: in a browser, at two widths, on paper; and what it must never show."""

import json
import re
import shutil
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from coordinator.folder import write_run
from federated_anon import simulate
from federated_anon.columns import Column, Kind, Role
from federated_anon.messages import Step, decode
from federated_anon.messages.payloads import REPLIES
from federated_anon.report.run_page import folder_page
from nodes.holder import DataHolder
from tests.browser import CHROMIUM, browser
from tests.command_line import command
from tests.simulator import Driver, Tape, drive, make_holders, make_settings, make_study

needs_browser = pytest.mark.skipif(not CHROMIUM, reason="no Chromium on this machine")

GEOMETRY = re.compile(r'\s(?:d|transform|x|y|x1|y1|x2|y2|points|style|viewBox|width|height)="[^"]*"')
"""Where marks stand on a picture: figures of the page's own, not of anybody's data."""

DRAWN = """[...document.querySelectorAll('svg, img')].map(one => {
  const box = one.getBoundingClientRect();
  const marks = one.querySelectorAll('path, use, text').length;
  return box.width > 100 && box.height > 60 && (one.naturalWidth > 0 || (marks > 5 && one.getBBox().width > 0));
})"""
SMALLEST_TEXT = """Math.min(...[...document.querySelectorAll('figcaption, td, p, li')]
  .filter(one => one.offsetParent).map(one => parseFloat(getComputedStyle(one).fontSize)))"""


def people(rows: int = 300) -> pa.Table:
    """People whose values are spelled with many digits, so that each can be searched for."""
    rng = np.random.default_rng(11)
    age = rng.normal(47, 13, rows)
    return pa.table(
        {
            "id": [f"Citizen-{number:05d}" for number in rng.permutation(rows)],
            "age": np.round(age, 6),
            "pay": np.round(30_000 + 400 * age + rng.normal(0, 5_000, rows), 4),
            "height": np.round(rng.normal(171, 9, rows), 6),
            "town": rng.choice(["Ashby", "Corby", "Derby"], rows, p=[0.5, 0.3, 0.2]).tolist(),
            "illness": rng.choice(["flu", "gout", "none"], rows),
        }
    )


@pytest.fixture(scope="module")
def simulated(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("report") / "run"
    options = {"key": "id", "sensitive": ("illness",), "holders": 2, "l": 2, "runtime": "in-process"}
    simulate(people(), k=5, out=folder, **options)
    return folder


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@needs_browser
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_in_a_browser(simulated, window, tmp_path, width):
    window.open(simulated / "report.html", width)
    wide, inner = window.value("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= inner == width, "no horizontal scrolling"
    drawn = window.value(DRAWN)
    assert len(drawn) == (simulated / "report.html").read_text().count("<svg") >= 12
    assert all(drawn), "every picture is drawn"
    assert window.value(SMALLEST_TEXT) >= 12
    head = window.value("document.querySelector('#verdict h2').innerText")
    assert head == "Each of the 300 people is alike with at least 4 others."
    loss = json.loads((simulated / "report.json").read_text())["information_loss_percent"]
    assert f"{loss:.1f} %" in window.value("document.querySelector('.tiles').innerText")
    titles = window.value("[...document.querySelectorAll('figure h3')].map(one => one.innerText)")
    assert {
        "Information loss against k",
        "age",
        "Principal plane",
        "Linkage risk against 1/k",
        "Link strengths",
    } <= set(titles)
    window.value("document.querySelectorAll('details').forEach(one => { one.open = true })")
    assert window.value("document.documentElement.scrollWidth") <= width, "tables scroll inside their own box"
    assert window.complaints() == []
    picture = window.screenshot(tmp_path / f"{width}.png")
    assert struct.unpack(">I", picture[16:20])[0] == width


@needs_browser
def test_the_page_on_paper(simulated, window, tmp_path):
    window.open(simulated / "report.html", 1280)
    paper = window.paper(tmp_path / "report.pdf")
    pages = len(re.findall(rb"/Type\s*/Page\b(?!s)", paper))
    assert 3 <= pages <= 14


def test_every_picture_says_what_to_see_and_has_its_table(simulated):
    text = (simulated / "report.html").read_text()
    count = text.count("<figure")
    assert count == text.count("<svg") == text.count("<figcaption>") == text.count("<details>") >= 12
    assert "<figcaption></figcaption>" not in text
    assert "<tbody>\n</tbody>" not in text
    assert not re.search(r"(src|href)=\"(https?:)?//", text)
    names = re.findall(r' id="([^"]+)"', text)
    assert len(names) == len(set(names))


def federated(folder: Path, exposure: str, **policy) -> tuple[Path, dict[str, pa.Table], Tape]:
    """A study of two holders with settings of their own, and what they hold."""
    whole, kinds = people(), {"town": Kind.CATEGORY, "illness": Kind.CATEGORY, "id": Kind.TEXT}
    roles = {"id": Role.KEY, "illness": Role.SENSITIVE}
    shares = {"north": whole.select(["id", "age", "town"]), "south": whole.select(["id", "pay", "height", "illness"])}
    holders = {}
    for name, table in shares.items():
        columns = [Column(c, roles.get(c, Role.QUASI), kinds.get(c, Kind.NUMBER)) for c in table.column_names]
        own = {"exposures": [exposure]} | policy
        holders[name] = DataHolder(make_settings(folder, name, table, columns, tuple(shares), **own))
    tape = Tape(holders)
    study = make_study(k=5, exposure=exposure, privacy={"k": 5, "l": 2})
    write_run(folder / "run", Driver(study, tape).run())
    return folder / "run", shares, tape


@pytest.mark.parametrize("exposure", ["open", "sealed"])
def test_a_federated_report_shows_no_value_of_any_holder(tmp_path, exposure):
    run, shares, _ = federated(tmp_path, exposure)
    page, data = (run / "report.html").read_text(), (run / "report.json").read_text()
    shown = GEOMETRY.sub("", page) + data
    figures = set(re.findall(r"\d+(?:[.,]\d+)*", shown)) | {
        text.replace(",", "") for text in re.findall(r"[\d,.]+", shown)
    }
    assert "Columns before and after" in page
    assert not (run / "simulation.json").exists()
    assert "citizen" not in (page + data).lower()
    for table in shares.values():
        for name in set(table.column_names) & {"age", "pay", "height"}:
            values = table[name].to_pylist()
            spelled = {str(value) for value in values} | {f"{value:.{d}f}" for value in values for d in (3, 4, 6)}
            spelled |= {f"{value:.{d}f}" for value in (min(values), max(values)) for d in (1, 2)}
            assert spelled & figures == set(), name
    assert "under 30" in shown or "under 40" in shown, "counts between round numbers"


def test_names_below_k_never_show(tmp_path):
    table = people(120)
    towns = ["Rareville"] * 2 + table["town"].to_pylist()[2:]
    table = table.set_column(table.column_names.index("town"), "town", pa.array(towns))
    options = {"key": "id", "sensitive": ("illness",), "holders": 2, "runtime": "in-process"}
    simulate(table, k=5, out=tmp_path / "run", **options)
    assert "Rareville" not in (tmp_path / "run" / "report.html").read_text()


def test_a_policy_keeps_the_profile_and_the_ledger_says_so(tmp_path):
    run, _, tape = federated(tmp_path, "open", share_profile=False)
    report = json.loads((run / "report.json").read_text())
    assert report["profiles"] == {"north": None, "south": None}
    told = [decode(reply, REPLIES) for _, reply in tape.replies]
    assert [m.payload.profile for m in told if m.envelope.step is Step.EVALUATE] == ["", ""]
    assert "No holder told how its columns changed." in (run / "report.html").read_text()
    assert "the policy keeps the profile" in (run / "ledger" / "north.jsonl").read_text()


def test_sealed_pages_tell_levels_and_open_pages_maps(tmp_path, simulated):
    run, _, _ = federated(tmp_path, "sealed")
    sealed, opened = (run / "report.html").read_text(), (simulated / "report.html").read_text()
    assert "Levels of splits" in sealed
    assert "U-matrix" not in sealed
    assert "Link strengths" not in sealed
    assert "Levels of splits" not in opened
    hits = [
        n for facts in json.loads((simulated / "report.json").read_text())["holders"].values() for n in facts["hits"]
    ]
    assert min(n for n in hits if n) >= 5
    assert sum(hits) == 2 * 300


def test_a_study_that_asks_for_the_total_alone_gets_no_profile(tmp_path):
    study = make_study(holders=("north", "south", "west"), evaluation={"losses": "total"})
    outcome = drive(study, make_holders(tmp_path, study.holders))
    assert set(outcome.report["profiles"].values()) == {None}
    write_run(tmp_path / "run", outcome)
    assert "asks for the total loss alone" in (tmp_path / "run" / "report.html").read_text()


def test_the_command_draws_the_very_same_page_again(simulated, tmp_path):
    run = Path(shutil.copytree(simulated, tmp_path / "run"))
    before = (run / "report.html").read_bytes()
    (run / "report.html").unlink()
    answer = command("report", run, "--json")
    assert json.loads(answer.out) == {"report": str(run / "report.html"), "bytes": len(before)}
    assert (run / "report.html").read_bytes() == before == folder_page(run).encode()


def test_a_folder_without_a_run_is_one_clear_error(tmp_path):
    answer = command("report", tmp_path)
    assert (answer.code, answer.out) == (9, "")
    assert "is not a run that a report can be drawn from" in answer.err
    assert list(tmp_path.iterdir()) == []


@needs_browser
@pytest.mark.parametrize("page", ["report.html", "private/report.html"])
def test_the_pages_of_sets_in_a_browser(window, tmp_path, page):
    rng = np.random.default_rng(0)
    lines = [" ".join(sorted({f"i{n}" for n in rng.zipf(1.6, 6) if n < 60} | {"i1"})) for _ in range(300)]
    (tmp_path / "visits.txt").write_text("\n".join(lines) + "\n")
    arguments = ("--k", "3", "--m", "2", "--delta", "20", "--reassociate", "--out", tmp_path / "run")
    assert command("disassociate", tmp_path / "visits.txt", *arguments).code == 0
    window.open(tmp_path / "run" / page, 390)
    assert window.value("document.documentElement.scrollWidth") <= 390
    drawn = window.value(DRAWN)
    assert len(drawn) >= 2
    assert all(drawn)
    assert window.complaints() == []


def test_a_page_of_sets_that_was_touched_is_noticed(tmp_path):
    (tmp_path / "visits.txt").write_text("a b c\n" * 30)
    arguments = ("--k", "3", "--m", "2", "--delta", "20", "--out", tmp_path / "run")
    assert command("disassociate", tmp_path / "visits.txt", *arguments).code == 0
    page = tmp_path / "run" / "report.html"
    page.write_text(page.read_text().replace("30 people", "90 people"))
    answer = command("verify", tmp_path / "run")
    assert answer.code == 7
    assert "report.html" in answer.err


def test_an_evaluation_beside_the_run_is_shown_when_the_page_is_drawn_anew(simulated, tmp_path):
    run = Path(shutil.copytree(simulated, tmp_path / "run"))
    (run / "evaluation.json").write_text(json.dumps({"linkage": {"linked": 0.1234567}, "note": None}))
    assert command("verify", run).code == 0, "it may come after the page"
    assert command("report", run).code == 0
    assert "linkage.linked" in (run / "report.html").read_text()
    assert "0.1235" in (run / "report.html").read_text()
    assert command("verify", run).code == 0
