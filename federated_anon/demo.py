"""A real study of three organisations over generated people, and what to see in it."""

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


def show(out: Path, people: int, seed: int) -> None:
    """Write the organisations' files, run the study on local Ray, and tell what came of it; all or nothing."""
    with partial_folder(out) as folder:
        found = organisations(people, seed)
        study = write_organisations(folder, found, seed)
        console.say(introduction(out, found))
        with console.display(quiet=False) as listen:
            result = run(study, folder / "run", listen=listen)
    tell(result)
    console.say(*next_steps(out))


def introduction(out: Path, found: Sequence[Organisation]) -> str:
    """Who takes part, and with what."""
    sizes = ", ".join(f"{one.name} ({one.table.num_rows} rows, {one.table.num_columns} columns)" for one in found)
    return f"Three organisations, each with a file, a key and a policy of its own in {out}: {sizes}."


def next_steps(out: Path) -> tuple[str, ...]:
    """What to type and to look at now."""
    return (
        "Next:",
        f"  federated-anon verify {out}/run",
        f"  federated-anon doctor {out}/study.toml",
        "  federated-anon simulate YOUR.csv --quasi '*' --k 5 --out trial",
        "Look at:",
        f"  {out}/run/report.html              the report, for people",
        f"  {out}/run/release.csv              the joint table",
        f"  {out}/hospital/settings.toml       a holder's columns and policy",
        f"  {out}/run/ledger/hospital.jsonl    all that left the hospital",
        opening(out / "run" / PAGE),
    )


def write_organisations(out: Path, found: Sequence[Organisation], seed: int) -> Path:
    """Data, settings and keys of each organisation, and the study they agree on."""
    out.mkdir(parents=True, exist_ok=True)
    keys = {one.name: Identity.for_simulation(seed, one.name) for one in found}
    for one in found:
        folder = out / one.name
        folder.mkdir(mode=0o700)
        keys[one.name].save(folder / "identity.key")
        write_table(one.table, folder / one.file)
        partners = {name: key.public.hex() for name, key in keys.items() if name != one.name}
        policy = {"smallest_k": K, "exposures": ["open"], "tell_rows": True}
        content = holder_settings(one.name, one.file, one.columns, partners, policy)
        (folder / "settings.toml").write_text(settings_text(content))
    Identity.for_simulation(seed, "coordinator").save(out / COORDINATOR_KEY)
    study = out / "study.toml"
    study.write_text(study_text(study_content([one.name for one in found], seed)))
    return study


def write_table(table: pa.Table, path: Path) -> None:
    """A table as CSV or Parquet, as the suffix says."""
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path)


def study_content(holders: Sequence[str], seed: int) -> dict[str, Any]:
    """The study file of the demo."""
    return {
        "name": "demo",
        "holders": list(holders),
        "method": "best",
        "exposure": "open",
        "seed": seed,
        "privacy": {"k": K, "l": L},
        "deployment": {name: {"settings": f"{name}/settings.toml"} for name in holders},
    }


def tell(result: Result) -> None:
    """Three tables: what was lost, what risk is left, who learned what."""
    screen = console.screen()
    screen.print(lost(result.report))
    console.say(*(f"Note: {caveat}" for caveat in result.report["caveats"]))
    screen.print(console.pairs("What risk is left", risks(result)))
    screen.print(console.grid("Who learned what", ("party", "learned"), learned(result)))


def lost(report: Mapping[str, Any]) -> Table:
    """Every column of the release, whose it is, and how much of it was lost."""
    rows = [
        (c["name"], c["holder"], c["role"], console.percent(c["information_loss_percent"])) for c in report["columns"]
    ]
    rows.append(("all", "", "", console.percent(report["information_loss_percent"])))
    return console.grid("What was lost", ("column", "holder", "role", "lost"), rows, right=("lost",))


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
        "linked by who knows all": f"at most {100 * classes / summary['records']:.1f} %, knowing every "
        f"quasi-identifier (promised {100 / summary['k']:.0f} %, guessing {100 / summary['records']:.2f} %)",
        "linked by the coordinator": f"{100 * report['coordinator_view_linkage']:.0f} %, had it the holders' data "
        "beside the cells: open exposure trusts it",
    }


def learned(result: Result) -> list[tuple[str, str]]:
    """In words, who has seen what."""
    holders = result.report["holders"]
    cells = ", ".join(f"{name} {facts['cells']}" for name, facts in holders.items())
    veiled = sum(facts["veiled_groups"] for facts in holders.values())
    sent = console.size(result.summary["bytes_sent"])
    return [
        (
            "coordinator",
            "pseudonyms, not ids; which cell each person is in at each holder, and means of cells of at least k "
            f"people ({cells} cells, {sent} in all)",
        ),
        ("every holder", "how many people are common; the partners' cells and cell means; no id, no single value"),
        ("recipient", "the release and its report" + veil(veiled)),
    ]


def veil(groups: int) -> str:
    """What is said of group means that carry noise, if any do."""
    return f"; {groups} group means carry noise, so that no record follows from two sums" if groups else ""
