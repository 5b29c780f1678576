"""A real study of three organisations over generated people, in both exposures, and what sets these apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from rich.table import Table

from federated_anon import console
from federated_anon.columns import Role
from federated_anon.crypto.signing import Identity
from federated_anon.drafts import holder_settings, settings_text, study_text
from federated_anon.folders import partial_folder
from federated_anon.people import Organisation, organisations
from federated_anon.privacy import equivalence_classes
from federated_anon.report.run_page import PAGE, opening
from federated_anon.simulate import COORDINATOR_KEY, Result, run

K, L = 5, 3
EXPOSURES = ("open", "sealed")


def show(out: Path, people: int, seed: int) -> None:
    """Write the organisations' files and run their study on local Ray, in both exposures; all or nothing."""
    with partial_folder(out) as folder:
        found = organisations(people, seed)
        console.say(introduction(out, found))
        results = {exposure: studied(folder / exposure, found, seed, exposure) for exposure in EXPOSURES}
    tell(results)
    console.say(*next_steps(out))


def studied(folder: Path, found: Sequence[Organisation], seed: int, exposure: str) -> Result:
    """The study in one exposure, in a trial folder of its own."""
    study = write_organisations(folder, found, seed, exposure)
    console.say(f"The study in {exposure} exposure:")
    with console.display(quiet=False) as listen:
        return run(study, folder / "run", listen=listen)


def introduction(out: Path, found: Sequence[Organisation]) -> str:
    """Who takes part, and with what."""
    sizes = ", ".join(f"{one.name} ({one.table.num_rows} rows, {one.table.num_columns} columns)" for one in found)
    return (
        f"Three organisations, each with a file, a key and a policy of its own: {sizes}. The same study is run twice, "
        f"in two trial folders ({out}/open and {out}/sealed), since a holder answers one study per version of its data."
    )


def next_steps(out: Path) -> tuple[str, ...]:
    """What to type and to look at now."""
    return (
        "Next:",
        f"  federated-anon verify {out}/sealed/run",
        f"  federated-anon verify {out}/open/run",
        f"  federated-anon doctor {out}/sealed/study.toml",
        "  federated-anon simulate YOUR.csv --quasi '*' --k 5 --out trial",
        "Look at:",
        f"  {out}/sealed/run/report.html              the report, for people",
        f"  {out}/sealed/run/release.csv              the joint table",
        f"  {out}/sealed/hospital/settings.toml       a holder's columns and policy",
        f"  {out}/sealed/run/ledger/hospital.jsonl    all that left the hospital",
        opening(out / "sealed" / "run" / PAGE),
    )


def write_organisations(out: Path, found: Sequence[Organisation], seed: int, exposure: str = "open") -> Path:
    """Data, settings and keys of each organisation, and the study they agree on, in this exposure."""
    out.mkdir(parents=True, exist_ok=True)
    keys = {one.name: Identity.for_simulation(seed, one.name) for one in found}
    for one in found:
        folder = out / one.name
        folder.mkdir(mode=0o700)
        keys[one.name].save(folder / "identity.key")
        write_table(one.table, folder / one.file)
        partners = {name: key.public.hex() for name, key in keys.items() if name != one.name}
        policy = {"smallest_k": K, "exposures": [exposure], "tell_rows": True}
        content = holder_settings(one.name, one.file, one.columns, partners, policy)
        (folder / "settings.toml").write_text(settings_text(content))
    Identity.for_simulation(seed, "coordinator").save(out / COORDINATOR_KEY)
    study = out / "study.toml"
    study.write_text(study_text(study_content([one.name for one in found], seed, exposure)))
    return study


def write_table(table: pa.Table, path: Path) -> None:
    """A table as CSV or Parquet, as the suffix says."""
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path)


def study_content(holders: Sequence[str], seed: int, exposure: str) -> dict[str, Any]:
    """The study file of the demo."""
    return {
        "name": "demo",
        "holders": list(holders),
        "method": "best",
        "exposure": exposure,
        "seed": seed,
        "privacy": {"k": K, "l": L},
        "deployment": {name: {"settings": f"{name}/settings.toml"} for name in holders},
    }


def tell(results: Mapping[str, Result]) -> None:
    """Two tables: what each column lost, and everything else about the exposures, side by side."""
    screen = console.screen()
    screen.print(lost({exposure: result.report for exposure, result in results.items()}))
    caveats = [caveat for result in results.values() for caveat in result.report["caveats"]]
    console.say(*(f"Note: {caveat}" for caveat in dict.fromkeys(caveats)))
    screen.print(side_by_side(results))


def lost(reports: Mapping[str, Mapping[str, Any]]) -> Table:
    """Every column of the release, whose it is, and how much of it was lost in each exposure."""
    columns = zip(*(report["columns"] for report in reports.values()), strict=True)
    rows = [
        (same[0]["name"], same[0]["holder"], same[0]["role"], *(losses(column) for column in same)) for same in columns
    ]
    rows.append(("all", "", "", *(losses(report) for report in reports.values())))
    return console.grid("What was lost", ("column", "holder", "role", *reports), rows, right=tuple(reports))


def losses(facts: Mapping[str, Any]) -> str:
    """What a column, or a whole release, lost."""
    return console.percent(facts["information_loss_percent"])


def side_by_side(results: Mapping[str, Result]) -> Table:
    """One row per question, one column per exposure."""
    answers = [{**costs(result), **risks(result), **learned(result)} for result in results.values()]
    rows = [(question, *(answer[question] for answer in answers)) for question in answers[0]]
    return console.grid("What each exposure costs, and who learns what", ("", *results), rows)


def costs(result: Result) -> dict[str, str]:
    """What a study costs in information, time and traffic."""
    return {
        "information lost": losses(result.report),
        "time": f"{result.summary['seconds']} s",
        "sent by holders": console.size(result.summary["bytes_sent"]),
    }


def risks(result: Result) -> dict[str, str]:
    """What is promised, and how far an attacker gets at most.

    Within a class all records look alike, so of the people in it one is linked in expectation, whatever is known of
    their quasi-identifiers: classes / records in all.
    """
    report, summary = result.report, result.summary
    quasi = [column["name"] for column in report["columns"] if column["role"] == Role.QUASI]
    classes = len(np.unique(equivalence_classes(result.table, quasi)))
    diversity = ", ".join(f"{name} {value:.0f}" for name, value in report["diversity_reached"].items())
    return {
        "people in common": f"{summary['records']} in {summary['groups']} groups",
        "smallest class (k)": f"{summary['k_reached']} (asked {summary['k']})",
        "values per class (l)": f"{diversity} (asked {L})",
        "recipient could link": f"{100 * classes / summary['records']:.1f} %, knowing every quasi-identifier "
        f"(promised: at most {100 / summary['k']:.0f} %)",
        "coordinator could link": f"{100 * report['coordinator_view_linkage']:.1f} %, had it the holders' data too "
        f"({PROMISE[report['exposure']].format(100 / summary['k'])})",
    }


PROMISE = {"open": "nothing is promised: it is trusted", "sealed": "promised: at most {:.0f} %"}
"""What is said of the coordinator's linkage, by exposure."""


def learned(result: Result) -> dict[str, str]:
    """In words, who has seen what."""
    coordinator, holder = (open_view if result.report["exposure"] == "open" else sealed_view)(result)
    return {
        "coordinator learns": f"pseudonyms, not ids; {coordinator}; how groups must join for l",
        "every holder learns": f"how many people are common; {holder}; no id, no single value",
        "recipient learns": "the release and its report",
    }


def open_view(result: Result) -> tuple[str, str]:
    """What coordinator and holders see in open exposure."""
    holders = result.report["holders"]
    cells = ", ".join(f"{name} {facts['cells']}" for name, facts in holders.items())
    veiled = sum(facts["veiled_groups"] for facts in holders.values())
    noise = f"; {veiled} group means carry noise, so that no record follows from two sums" if veiled else ""
    return (
        f"each person's cell at each holder; means of cells of at least k people ({cells} cells){noise}",
        "the partners' cells and cell means; the groups",
    )


def sealed_view(result: Result) -> tuple[str, str]:
    """What coordinator and holders see in sealed exposure."""
    return (
        f"the {result.summary['groups']} groups and the splits that made them; which holder gains how much by a split; "
        "group means of at least k people",
        "the groups and whose split won",
    )
