"""A real study of three organisations over generated people, and what to see in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import tomli_w
from rich.console import Console
from scipy.spatial import cKDTree

from federated_anon import console
from federated_anon.columns import Column, Role
from federated_anon.crypto.signing import Identity
from federated_anon.drafts import SETTINGS_HEAD, STUDY_HEAD, holder_settings
from federated_anon.encoding import Encoding
from federated_anon.errors import StorageFailed
from federated_anon.people import Organisation, organisations
from federated_anon.privacy import equivalence_classes
from federated_anon.simulate import Result, run

K, L = 5, 3


def show(out: Path, people: int, seed: int) -> None:
    """Write the organisations' files, run the study on local Ray, and tell what came of it."""
    if out.exists():
        raise StorageFailed(f"'{out}' exists already; choose another --out, or remove it")
    screen = Console()
    found = organisations(people, seed)
    study = write_organisations(out, found, seed)
    sizes = ", ".join(f"{one.name} {one.table.num_rows} x {one.table.num_columns}" for one in found)
    screen.print(f"Three organisations with files of their own in {out}: {sizes}.", highlight=False)
    with console.display(quiet=False) as listen:
        result = run(study, out / "run", listen=listen)
    tell(screen, result, found)
    screen.print(
        f"Next: federated-anon verify {out}/run\n"
        f"      federated-anon doctor {study}\n"
        f"      look at {out}/run/release.csv, {out}/hospital/settings.toml, {out}/run/ledger/hospital.jsonl\n"
        "      federated-anon simulate YOUR.csv --quasi '*' --k 5 --out trial",
        highlight=False,
    )


def write_organisations(out: Path, found: Sequence[Organisation], seed: int) -> Path:
    """Data, settings and keys of each organisation, and the study they agree on."""
    out.mkdir(parents=True)
    keys = {one.name: Identity.for_simulation(seed, one.name) for one in found}
    for one in found:
        folder = out / one.name
        folder.mkdir(mode=0o700)
        keys[one.name].save(folder / "identity.key")
        write_table(one.table, folder / one.file)
        partners = {name: key.public.hex() for name, key in keys.items() if name != one.name}
        policy = {"smallest_k": K, "exposures": ["open"], "tell_rows": True}
        content = holder_settings(one.name, one.file, one.columns, partners, policy)
        (folder / "settings.toml").write_text(SETTINGS_HEAD + tomli_w.dumps(content))
    study = out / "study.toml"
    study.write_text(STUDY_HEAD + tomli_w.dumps(study_content([one.name for one in found], seed)))
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


def tell(screen: Console, result: Result, found: Sequence[Organisation]) -> None:
    """Three tables: what was lost, what risk is left, who learned what."""
    report, summary = result.report, result.summary
    lost = [
        (c["name"], c["holder"], c["role"], "" if loss is None else f"{loss:.1f} %")
        for c in report["columns"]
        for loss in (c["information_loss_percent"],)
    ]
    screen.print(console.grid("What was lost", ("column", "holder", "role", "information lost"), lost))
    diversity = ", ".join(f"{name} {value:.0f}" for name, value in report["diversity_reached"].items())
    screen.print(
        console.pairs(
            "What risk is left",
            {
                "people in common, groups": f"{summary['records']}, {summary['groups']}",
                "smallest class (k)": f"{summary['k_reached']} (asked {summary['k']})",
                "values per class (l)": f"{diversity} (asked {L})",
                "information lost": f"{summary['information_loss_percent']:.1f} %",
                "linked by who knows every quasi-identifier": f"at most {100 * linked_at_most(result, found):.1f} % "
                f"(the promise: {100 / summary['k']:.0f} %; guessing: {100 / summary['records']:.2f} %)",
                "linked from the coordinator's view (open)": f"{100 * report['coordinator_view_linkage']:.0f} %",
            },
        )
    )
    screen.print(console.grid("Who learned what", ("party", "learned"), learned(result)))


def linked_at_most(result: Result, found: Sequence[Organisation]) -> float:
    """Share of people that an attacker who knows every quasi-identifier can link, at most.

    Each person is taken to stand in the class nearest to them: that favours the attacker, who still must guess.
    """
    original, columns = joined(found)
    encoding = Encoding.fit(original, columns)
    quasi = [column.name for column in columns]
    _, first, sizes = np.unique(equivalence_classes(result.table, quasi), return_index=True, return_counts=True)
    classes = encoding.encode(result.table.select(quasi).take(first))
    _, nearest = cKDTree(classes).query(encoding.encode(original))
    return float((1 / sizes[nearest]).mean())


def joined(found: Sequence[Organisation]) -> tuple[pa.Table, list[Column]]:
    """The common people's quasi-identifiers in one table, which no party of the study ever has."""
    ids = [pc.utf8_lower(pc.utf8_trim_whitespace(one.table.column(0))) for one in found]
    common = ids[0].filter(pc.is_in(ids[0], ids[1].combine_chunks()))
    common = common.filter(pc.is_in(common, ids[2].combine_chunks()))
    parts: dict[str, Any] = {}
    columns = []
    for one, own in zip(found, ids, strict=True):
        rows = pc.index_in(common, own.combine_chunks())
        for column in one.columns:
            if column.role is Role.QUASI:
                parts[column.name] = one.table[column.name].take(rows)
                columns.append(column)
    return pa.table(parts), columns


def learned(result: Result) -> list[tuple[str, str]]:
    """In words, who has seen what."""
    holders = result.report["holders"]
    cells = ", ".join(f"{name} {facts['cells']}" for name, facts in holders.items())
    veiled = sum(facts["veiled_groups"] for facts in holders.values())
    return [
        ("coordinator", "pseudonyms of ids, not ids; each record's cell at each holder; means of cells of at least k"),
        ("", f"cells: {cells}; {console.size(result.summary['bytes_sent'])} in all"),
        (
            "every holder",
            "how many people are common; the partners' cell indices and cell means; no partner's id or value",
        ),
        (
            "recipient",
            f"the release and its report; {veiled} group means carry noise so that no record follows from two sums",
        ),
    ]
