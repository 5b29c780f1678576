"""The tables of the papers, computed again by the protocol that they print: one command, one page.

Printed protocol: a decision tree, ten folds, on the (anonymised) table itself. Each printed cell is computed on the
data as they are published; where that misses, on the variant that explains the printed figure, if there is one:

- Glass with its Id column, which numbers the records in the order of their classes;
- Yeast as MIT against the rest, in place of ten classes;
- Wine without scaling, where one column (proline) decides all distances;
- Electrical with ``stab``, whose sign is the label.

Shares that sum to one, combined utility and Score are checked by their own arithmetic from what is printed.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.reporting import RESULTS, machine, table
from benchmarks.tables import SHARED
from federated_anon import simulate
from federated_anon.columns import Column
from federated_anon.deal import Roles, declared
from federated_anon.encoding import Encoding
from federated_anon.methods import METHODS, PRESETS
from federated_anon.microaggregation import HAC, MDAV
from federated_anon.representatives import representatives
from federated_anon.som import BatchSOM, Grid
from federated_anon.utility.combined import scores
from federated_anon.utility.separability import TREE, Task, printed
from nodes.source import read_table

NEAR = 3.0
"""Points within which a figure counts as reproduced."""

FILES = {"page-blocks": "pageblocks.csv", "electrical": "electricalgrid.csv.gz", "sat": "satimage.csv"}
SAME = {"k-cmvm": "k-tca", "c-cmvm": "c-tca", "k-cmvm++": "k-tca++", "c-cmvm++": "c-tca++"}
SEPARABILITY = {
    "separability_percent": 1.0,
    "separability_fraction": 100.0,
    "accuracy_percent": 1.0,
}
SCORE_HEAD = ("paper", "table", "method", "data sets", "printed", "by its definition", "verdict")
LARGE = {"spambase", "waveform", "page-blocks", "electrical", "sat"}


@dataclass(frozen=True, slots=True)
class Printed:
    """One printed figure."""

    source: str
    place: str
    data: str
    method: str
    k: int | None
    measure: str
    value: float


@dataclass(frozen=True, slots=True)
class Variant:
    """Data prepared in another way, and what that explains."""

    name: str
    why: str
    prepare: Callable[[pa.Table], pa.Table]
    scaled: bool = True


def numbered(content: pa.Table) -> pa.Table:
    return content.add_column(0, "Id", pa.array(np.arange(1, content.num_rows + 1)))


def one_against_rest(content: pa.Table) -> pa.Table:
    labels = pa.array(["MIT" if value == "MIT" else "rest" for value in content["label"].to_pylist()])
    return content.set_column(content.column_names.index("label"), "label", labels)


def as_it_is(content: pa.Table) -> pa.Table:
    return content


def without_stab(content: pa.Table) -> pa.Table:
    return content.drop_columns(["stab"]) if "stab" in content.column_names else content


PLAIN = Variant("as published", "", without_stab)
UNSCALED = "distances without scaling, decided by proline alone (maps: units of one joint map, whatever k)"
VARIANTS = {
    "glass": Variant("with Id", "the Id column numbers the records class by class", numbered),
    "yeast": Variant("MIT against the rest", "one class of ten against all others", one_against_rest),
    "wine": Variant("unscaled", UNSCALED, as_it_is, scaled=False),
    "electrical": Variant("with stab", "the sign of stab is the label", as_it_is),
}


def figures() -> list[Printed]:
    """Every printed figure."""
    with (SHARED / "reference" / "published_tables.csv").open(newline="") as file:
        return [
            Printed(
                row["source"][:3],
                row["table"],
                row["dataset"],
                SAME.get(row["method"], row["method"]),
                int(row["k"]) if row["k"] else None,
                row["measure"],
                float(row["value"]),
            )
            for row in csv.DictReader(file)
        ]


@cache
def content_of(data: str) -> pa.Table | None:
    path = SHARED / "data" / FILES.get(data, f"{data}.csv")
    return read_table(path) if path.exists() else None


@cache
def ours(data: str, method: str, k: int, name: str) -> float | None:
    """Our figure by the printed protocol, in percent; nothing where data or method are not here."""
    content = content_of(data)
    variant = PLAIN if name == PLAIN.name else VARIANTS[data]
    if content is None or (method not in METHODS and method not in ("original", "mdav")):
        return None
    prepared = variant.prepare(content)
    columns = tuple(c for c in declared(prepared, Roles(quasi=("*",), keep=("label",))) if c.name != "label")
    seeds = range(1 if data in LARGE else 3)
    found = [accuracy(anonymised(prepared, columns, method, k, seed, variant), columns, seed) for seed in seeds]
    return 100.0 * float(np.mean(found))


def accuracy(release: pa.Table, columns: tuple[Column, ...], seed: int) -> float:
    return printed(release, Task("label", columns, (TREE,), seed)).accuracy[TREE].value


def anonymised(
    content: pa.Table, columns: tuple[Column, ...], method: str, k: int, seed: int, variant: Variant
) -> pa.Table:
    """The release of one method: MDAV on the joined table as in the papers, the others with three holders."""
    if method == "original":
        return content
    if method == "mdav" or not variant.scaled:
        groups = joint_groups(content, columns, method, k, seed, variant.scaled)
        release = representatives(content, columns, groups).take(pa.array(groups))
        return release.append_column("label", content["label"])
    labels = {"labels": {"column": "label", "share": "records"}} if PRESETS[method].labels else {}
    names = [column.name for column in columns]
    options = {"k": k, "holders": 3, "quasi": names, "keep": ["label"], "method": method, "seed": seed, **labels}
    return simulate(content, **options, runtime="in-process").table


def joint_groups(
    content: pa.Table, columns: tuple[Column, ...], method: str, k: int, seed: int, scaled: bool
) -> np.ndarray:
    """Groups on the joined table: MDAV, or for the maps of the papers the units of one map."""
    points = Encoding.fit(content, columns).encode(content)
    if not scaled:
        points = np.column_stack([content[column.name].to_numpy().astype(float) for column in columns])
    if method == "mdav":
        return MDAV(k).fit(points).labels_
    grid = Grid.for_records(len(points), 5.0)
    units = BatchSOM(grid.rows, grid.cols).fit(points, np.random.default_rng(seed)).assign(points)
    return np.unique(units, return_inverse=True)[1]


def judged(one: Printed) -> tuple[object, ...] | None:
    """A row: where it is printed, the printed figure, ours, and the verdict with its reason."""
    target = one.value * SEPARABILITY[one.measure]
    k = one.k or 5
    plain = ours(one.data, one.method, k, PLAIN.name)
    head = (one.source, one.place, one.data, one.method, k if one.method != "original" else "", target)
    if plain is None:
        missing = "the data are not here" if content_of(one.data) is None else "not one of our methods"
        return (*head, "–", "–", f"not run: {missing}")
    if abs(plain - target) <= NEAR:
        return (*head, f"{plain:.1f}", "–", "reproduced")
    if variant := VARIANTS.get(one.data):
        other = ours(one.data, one.method, k, variant.name)
        if other is not None and abs(other - target) <= NEAR:
            return (*head, f"{plain:.1f}", f"{other:.1f}", f"reproduced {variant.name}: {variant.why}")
        return (*head, f"{plain:.1f}", "–" if other is None else f"{other:.1f}", f"not reproduced: {reason(one)}")
    return (*head, f"{plain:.1f}", "–", f"not reproduced: {reason(one)}")


def reason(one: Printed) -> str:
    """Why a figure may not come out, as far as it is known."""
    if "++" in one.method:
        return "labels move the published values in print; here they only guide the maps, and groups keep k"
    if one.method in ("k-tca", "c-tca"):
        return "the papers publish prototypes of maps of unprinted size, k-TCA without any k; here groups of k to 2k-1"
    if one.method == "mdav":
        return "no preparation of the data that we tried gives it"
    if one.method.startswith("kde"):
        return "its cells are merged here until groups hold k; in print there is no k"
    return "no preparation of the data that we tried gives it"


def shares(all_figures: list[Printed]) -> str:
    """Structural utility in print: pairs of methods that sum to one."""
    pairs: dict[tuple[str, str, str, str], list[float]] = defaultdict(list)
    for one in all_figures:
        if one.measure in ("structural_utility", "structural_w1") and one.place in ("6",):
            pairs[(one.source, one.place, one.data, one.method.removesuffix("++"))].append(one.value)
    whole = sum(abs(sum(values) - 1) <= 0.011 for values in pairs.values() if len(values) == 2)
    total = sum(len(values) == 2 for values in pairs.values())
    return (
        f"Structural utility, 004 table 6: {whole} of {total} pairs (a method and its ++ version) sum to one. It is a "
        "share between two methods, not a property of a release, so there is no figure of ours beside it."
    )


def arithmetic(all_figures: list[Printed]) -> list[tuple[object, ...]]:
    """Scores as printed, and as the definition gives them from the combined utilities printed beside them."""
    by_table: dict[tuple[str, str], dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for one in all_figures:
        if one.measure == "combined_utility":
            by_table[(one.source, one.place)][one.method][one.data] = one.value
    rows: list[tuple[object, ...]] = []
    for (source, place), utility in by_table.items():
        told = {method: row.pop("SCORE", None) for method, row in utility.items()}
        common = set.intersection(*(set(row) for row in utility.values()))
        found = scores({method: {data: row[data] for data in common} for method, row in utility.items()})
        for method, value in found.items():
            stated = told[method]
            if stated is not None:
                verdict = "reproduced" if abs(value - stated) <= 0.05 else "not reproduced: the printed sum is another"
                rows.append((source, place, method, len(common), stated, f"{value:.2f}", verdict))
    return rows


def squares(all_figures: list[Printed]) -> list[tuple[object, ...]]:
    """SSE of MDAV and HAC on Census, standardised with n - 1 as the paper does."""
    content = content_of("census")
    if content is None:
        return []
    points = np.column_stack([column.to_numpy().astype(float) for column in content.columns])
    points = (points - points.mean(axis=0)) / points.std(axis=0, ddof=1)
    rows: list[tuple[object, ...]] = []
    for one in all_figures:
        if one.measure != "sse_standardised" or one.k is None or one.place not in ("5.3", "6.1"):
            continue
        groups = (MDAV if one.method == "mdav" else HAC)(one.k).fit(points).labels_
        means = np.array([points[groups == g].mean(axis=0) for g in range(groups.max() + 1)])
        sse = float(np.square(points - means[groups]).sum())
        near = abs(sse - one.value) <= 0.005 * one.value
        better = "not reproduced: our HAC forms its groups otherwise and loses less"
        verdict = "reproduced" if near else better if sse < one.value else "not reproduced"
        rows.append((one.source, one.place, one.method, one.k, one.value, f"{sse:.2f}", verdict))
    return rows


def main() -> None:
    """All tables on one page."""
    if not (SHARED / "reference" / "published_tables.csv").exists():
        sys.exit("the published figures are not beside this project")
    found = figures()
    rows = [row for one in found if one.measure in SEPARABILITY and (row := judged(one))]
    done = [row for row in rows if not str(row[-1]).startswith("not run")]
    good = sum(str(row[-1]).startswith("reproduced") for row in done)
    head = ("paper", "table", "data", "method", "k", "printed, %", "ours, %", "ours on the variant, %", "verdict")
    text = "\n\n".join(
        (
            "# The papers' tables by the papers' own protocol",
            machine(),
            "Command: `python benchmarks/paper_tables.py`",
            f"{good} of {len(done)} printed accuracies come out within {NEAR:.0f} points, some only on data prepared "
            "in a way that flatters. The protocol itself flatters too: see docs/measures.md for the held-out one.",
            "## Separability and accuracy",
            table(head, rows),
            "## Score: sums of the printed combined utilities",
            table(SCORE_HEAD, arithmetic(found)),
            "## Sum of squares on Census (standardised with n - 1)",
            table(("paper", "table", "method", "k", "printed", "ours", "verdict"), squares(found)),
            "## Structural utility",
            shares(found),
            "## Silhouette, Davies-Bouldin, Calinski-Harabasz",
            "Not run: the papers do not say of which partition, of which table, these indices are; Glass and Waveform "
            "even share their Calinski-Harabasz figures to the last digit (004, table 5).",
        )
    )
    (RESULTS / "paper_tables.md").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
