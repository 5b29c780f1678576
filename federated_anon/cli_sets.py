"""The command ``disassociate``: set-valued data of one organisation, made k^m-anonymous; and the check of such runs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from federated_anon import console
from federated_anon.errors import SettingsRefused
from federated_anon.folders import reason, require_free

if TYPE_CHECKING:
    from federated_anon.setvalued.run import SetRun
    from federated_anon.setvalued.transactions import Transactions

app = typer.Typer(add_completion=False)


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a disassociation stands, as the progress display wants it."""

    step: str
    holders: tuple[str, ...] = ()
    news: tuple[str, ...] = ()


@app.command(
    "disassociate",
    help="Publish sets (places, purchases, diagnoses) so that any m items known of a person fit at least k people.\n\n"
    "The file has one set per line, or is a table of people and items (--person, --item), or a Parquet file with a "
    "list column (--column). What needs the original to be known goes to RUN/private: keep it.",
    epilog="Example:\n\nfederated-anon disassociate visits.txt --k 3 --m 2 --delta 40 --reassociate --out trial",
)
def disassociate_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="One set per person; text (also .gz), CSV or Parquet.")],
    k: Annotated[int, typer.Option(help="People that any known items fit, at least.")] = 3,
    m: Annotated[int, typer.Option(help="Items that somebody may know of a person, at most.")] = 2,
    delta: Annotated[int, typer.Option(help="People in a cluster, at most.")] = 40,
    min_size: Annotated[int | None, typer.Option(help="People in a cluster, at least; half of delta.")] = None,
    rules: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Items that analysis needs together, one rule per line.")
    ] = None,
    beta: Annotated[float, typer.Option(help="Share of a rule's people to keep together, 0 to 1.")] = 0.6,
    method: Annotated[str, typer.Option(help="How rules are gathered: ants or flow.")] = "ants",
    suppress: Annotated[
        bool, typer.Option("--suppress", help="Suppress items where covering everybody would single people out.")
    ] = False,
    reassociate: Annotated[
        bool, typer.Option("--reassociate", help="Also draw a data set in the format of FILE.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="The drawn data set is itself k^m-anonymous (implies --reassociate).")
    ] = False,
    seed: Annotated[int, typer.Option(help="Same seed, same bytes.")] = 0,
    person: Annotated[str | None, typer.Option(metavar="NAME", help="Column of people in a long table.")] = None,
    item: Annotated[str | None, typer.Option(metavar="NAME", help="Column of items in a long table.")] = None,
    column: Annotated[str | None, typer.Option(metavar="NAME", help="List column of a Parquet file.")] = None,
    holders: Annotated[int, typer.Option(help="Play a study of so many holders on this machine.")] = 1,
    split: Annotated[str, typer.Option(help="What holders have of their own: people, or items of the same people.")] = (
        "people"
    ),
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Run folder to write; must not exist yet.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout; no progress display.")] = False,
) -> None:
    """Sets of one organisation, disassociated."""
    from federated_anon.setvalued.formats import read_with_layout
    from federated_anon.setvalued.run import write_set_run

    if out:
        require_free(out)
    begun = time.perf_counter()
    settings = {
        **{"k": k, "m": m, "delta": delta, "min_size": min_size, "beta": beta, "method": method, "seed": seed},
        **{"suppress": suppress, "reassociate": "strict" if strict else "random" if reassociate else None},
    }
    if holders != 1:
        from federated_anon.cli_set_studies import simulate_file

        alone = {"--rules": rules, "--suppress": suppress, "--strict": strict}
        given = [option for option, value in alone.items() if value]
        simulate_file(read_with_layout(file, person, item, column)[0], settings, holders, split, given, out, as_json)
        return
    with console.display(as_json) as listen:
        tell = listen or (lambda standing: None)
        tell(Stage("read", (str(file),)))
        original, layout = read_with_layout(file, person, item, column)
        run = performed(original, settings, read_rules(rules) if rules else [], tell)
        if out:
            tell(Stage("write", (str(out),)))
            write_set_run(out, run, layout)
    show(run, out, round(time.perf_counter() - begun, 2), as_json)


def performed(
    original: Transactions, settings: Mapping[str, Any], rules: list[list[str]], tell: console.Listener
) -> SetRun:
    """The disassociation that the settings ask for, with its reports."""
    from federated_anon.setvalued import disassociate
    from federated_anon.setvalued.run import finished

    tell(Stage("disassociate", (f"{len(original)} people, {len(original.names)} items",)))
    asked = {name: value for name, value in settings.items() if name != "reassociate"}
    form = disassociate(original, rules=rules, **asked)
    tell(Stage("report", (f"{len(form.clusters)} clusters",)))
    told = {**settings, "rules": len(rules), "min_size": settings["min_size"] or max(form.k, settings["delta"] // 2)}
    return finished(original, form, told, settings["reassociate"], settings["seed"])


def read_rules(path: Path) -> list[list[str]]:
    """Rules of a text file: one per line, items apart by spaces; empty lines count for nothing."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise SettingsRefused("utility rules", [f"'{path}' cannot be read: {reason(error)}"]) from None
    except UnicodeDecodeError:
        raise SettingsRefused("utility rules", [f"'{path}' is not UTF-8 text"]) from None
    found = [line.split() for line in lines if line.strip()]
    if not found:
        raise SettingsRefused("utility rules", [f"'{path}' holds no rule"])
    return found


def show(run: SetRun, out: Path | None, seconds: float, as_json: bool) -> None:
    """The summary, for machines or for people."""
    public, private, settings = run.public, run.private, run.settings
    counts = {name: public[name] for name in ("people", "clusters", "clusters_open_to_cover_problem")}
    summary = {
        **counts,
        **settings,
        "smallest_cluster": min((cluster.size for cluster in run.form.clusters), default=0),
        "reassociated_records": None if run.table is None else len(run.table),
        "rare_combinations": None if run.table is None else public["reassociated"]["rare_combinations"],
        "private": {"items_kept": private["items_kept"], "top_pairs": private.get("top_pairs")},
        "seconds": seconds,
        "run": str(out) if out else None,
    }
    if as_json:
        console.print_json(summary)
        return
    console.screen().print(console.pairs("Disassociated", rows(summary)))
    console.say(*(f"Note: {note}" for note in notes(summary)))
    console.say(f"Next: federated-anon verify {out}" if out else "Next: the same with --out FOLDER writes the run")


def rows(summary: Mapping[str, Any]) -> dict[str, str]:
    """What a person wants to know first."""
    found = {
        "people": f"{summary['people']} in {summary['clusters']} clusters",
        "promise": f"any {summary['m']} known items fit at least {summary['k']} people",
        "smallest cluster": f"{summary['smallest_cluster']} (asked {summary['min_size']})",
        "items kept (private)": console.percent(100 * summary["private"]["items_kept"]),
        "open to the cover problem": f"{summary['clusters_open_to_cover_problem']} clusters",
    }
    if summary["reassociate"]:
        kept = summary["private"]["top_pairs"]
        found["re-associated"] = f"{summary['reassociated_records']} records, {summary['reassociate']}"
        found["top pairs (private)"] = f"{kept['still_top']} of {kept['pairs']} stay, supports x {kept['ratio']:.2f}"
    return {**found, "time": f"{summary['seconds']} s", "run": summary["run"] or "not written"}


def notes(summary: Mapping[str, Any]) -> list[str]:
    """What must be known before anything is published."""
    told = []
    if summary["reassociate"] == "random":
        rare = summary["rare_combinations"]
        told.append(
            f"the re-associated table is not itself k^m-anonymous ({'an unknown number of' if rare is None else rare} "
            "combinations are rarer than k, by chance or not); --strict makes it so"
        )
    if summary["clusters_open_to_cover_problem"] and not summary["suppress"]:
        told.append("if it is known that nobody's set is empty, use --suppress against the cover problem")
    if summary["run"]:
        told.append(f"{summary['run']}/private is not for publication")
    return told


def verified(folder: Path, as_json: bool) -> bool:
    """Check a run on set-valued data; False if the folder is of another kind."""
    from federated_anon.setvalued.run import audited_sets, is_set_run

    if not is_set_run(folder):
        return False
    found = audited_sets(folder)
    if as_json:
        console.print_json({"verified": True, "kind": "disassociated", "run": str(folder), **asdict(found)})
        return True
    console.say(
        f"Verified: {found.people} people in {found.clusters} clusters of at least {found.smallest}; within every "
        f"chunk, {found.m} items or fewer occur together never or at least {found.k} times."
    )
    if found.is_covered:
        console.say("No cluster is open to the cover problem.")
    if found.table_records is not None:
        kind = "is itself k^m-anonymous" if found.is_strict else "is not itself k^m-anonymous"
        console.say(f"The re-associated table of {found.table_records} records was drawn from them; it {kind}.")
    return True
