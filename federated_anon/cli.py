"""The command line: ``federated-anon init, simulate, run, verify, attack, disassociate, doctor, keys, demo``."""

from __future__ import annotations

import logging
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from federated_anon import (
    cli_attack,
    cli_measures,
    cli_report,
    cli_scenario,
    cli_service,
    cli_set_studies,
    cli_sets,
    console,
)
from federated_anon.errors import SettingsRefused
from federated_anon.findings import Finding
from federated_anon.interruption import INTERRUPTION
from federated_anon.methods import listed
from federated_anon.shell import own_log
from federated_anon.simulate import Runtime, run, simulate
from federated_anon.summary import tell

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="One joint k-anonymous table from organisations that hold different columns about the same people.",
    epilog=(
        "First steps: federated-anon demo, then federated-anon simulate YOUR.csv --quasi '*'\n\n"
        "Exit codes: 0 done, 1 unexpected fault, 2 wrong command line, 3 settings refused, 4 data refused, "
        "5 a holder refused, 6 a guarantee cannot be kept, 7 verification failed, 8 a holder is late, "
        "9 storage failed, 130 interrupted."
    ),
)

Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout; no progress display.")]
Seed = Annotated[int, typer.Option(help="Same seed, same bytes.")]
Out = typer.Option(metavar="FOLDER", help="Run folder to write; it must not exist yet.")
Folder = typer.Option(metavar="FOLDER", help="Folder to write; it must not exist yet.")
Quasi = Annotated[str, typer.Option(metavar="NAMES", help="Quasi-identifiers: what others may know of a person.")]
Sensitive = Annotated[str, typer.Option(metavar="NAMES", help="Values stay, shuffled inside groups; l and t apply.")]
Keep = Annotated[str, typer.Option(metavar="NAMES", help="Values stay, shuffled inside groups.")]
Drop = Annotated[str, typer.Option(metavar="NAMES", help="Columns that take no part, such as names.")]
Certificates = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="The coordinator's certificates, for holders with an address.")
]
STAR = "Names are comma-separated; '*' stands, in one role, for every column not named otherwise."


app.add_typer(cli_service.app)
app.add_typer(cli_measures.app)
app.add_typer(cli_attack.app)
app.add_typer(cli_sets.app)
app.add_typer(cli_report.app)
app.add_typer(cli_scenario.app)


def names(text: str) -> tuple[str, ...]:
    """Column names of a comma-separated option."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


@app.callback(invoke_without_command=True)
def root(
    tell_version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Options of the program itself."""
    if tell_version:
        typer.echo(f"federated-anon {version('federated-anon')}")
        raise typer.Exit


@app.command(
    "simulate",
    help="Play a whole study on one file: its columns are dealt to holders, and everything runs on this machine. "
    f"{STAR}",
    epilog="Example:\n\nfederated-anon simulate people.csv --key id --quasi '*' --sensitive illness --out trial",
)
def simulate_command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV (also .gz), Parquet or Arrow file with one row per person.")
    ],
    k: Annotated[int, typer.Option(help="Every combination of quasi-identifiers occurs at least k times.")] = 5,
    holders: Annotated[int, typer.Option(help="To how many holders the columns are dealt.")] = 3,
    quasi: Quasi = "",
    sensitive: Sensitive = "",
    keep: Keep = "",
    drop: Drop = "",
    key: Annotated[
        str | None, typer.Option(metavar="NAME", help="Column that names the person; without it, the row does.")
    ] = None,
    wish: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whole numbers: nobody in a group smaller than their own wish.")
    ] = None,
    views: Annotated[
        str, typer.Option(metavar="'A,B;C,D'", help="Who holds what; without it, dealt at random by the seed.")
    ] = "",
    method: Annotated[str, typer.Option(help=f"{listed()}.")] = "best",
    exposure: Annotated[str, typer.Option(help="open: the coordinator is trusted with cell indices.")] = "open",
    labels: Annotated[str, typer.Option(metavar="NAME", help="Column of labels, for methods with '++'.")] = "",
    share_labels: Annotated[
        str, typer.Option(help="cells: labels of units of k people guide all holders; records: of each person.")
    ] = "cells",
    l: Annotated[int | None, typer.Option("--l", help="Sensitive values that each group shows at least.")] = None,  # noqa: E741
    t: Annotated[
        float | None, typer.Option("--t", help="How far a group's sensitive values may be from all, 0 to 1.")
    ] = None,
    seed: Seed = 0,
    out: Annotated[Path | None, Out] = None,
    runtime: Annotated[str, typer.Option(help="ray: local Ray actors; in-process: no Ray at all.")] = "ray",
    evaluate: Annotated[bool, typer.Option("--evaluate", help="Measure the release too: evaluation.json.")] = False,
    label: Annotated[str | None, typer.Option(metavar="NAME", help="Column that models learn; for --evaluate.")] = None,
    as_json: Json = False,
) -> None:
    """One file, several holders."""
    options: dict[str, Any] = {
        "k": k,
        "holders": holders,
        "quasi": names(quasi),
        "sensitive": names(sensitive),
        "keep": names(keep),
        "drop": names(drop),
        "key": key,
        "wish": wish,
        "views": [names(view) for view in views.split(";")] if views else (),
        "method": method,
        "exposure": exposure,
        "l": l,
        "t": t,
        "seed": seed,
        **({"labels": {"column": labels, "share": share_labels}} if labels else {}),
    }
    if (evaluate or label) and out is None:
        raise SettingsRefused("command line", ["--evaluate writes into the run's folder: name it with --out"])
    with console.display(as_json) as listen:
        result = simulate(file, **options, out=out, runtime=known_runtime(runtime), listen=listen)
    if out is not None and (evaluate or label):
        cli_measures.write_evaluation(file, out, options, label)
    tell(result, as_json)


@app.command(
    "run",
    help="Run a study with its real holders, each under its own settings and policy.\n\n"
    "One Ray cluster is one trust domain: whoever can run code on it can read what its nodes hold.",
    epilog="Example:\n\nfederated-anon run study/study.toml --out release-2026",
)
def run_command(
    study: Annotated[
        Path, typer.Argument(metavar="STUDY", help="The study file; its \\[deployment] says where holders run.")
    ],
    out: Annotated[Path, Out] = Path("run"),
    address: Annotated[str | None, typer.Option(help="An existing Ray cluster, such as 'auto' or host:6379.")] = None,
    runtime: Annotated[str, typer.Option(help="ray, or in-process without Ray.")] = "ray",
    timeout: Annotated[float, typer.Option(help="Seconds to wait for a holder's answer.")] = 3600.0,
    checkpoints: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Keep replies here, so that an interrupted study goes on where it stood."),
    ] = None,
    certificates: Certificates = None,
    as_json: Json = False,
) -> None:
    """A study with its real holders."""
    if address and not as_json:
        console.errors.print("One Ray cluster is one trust domain: its members can read each other's memory and files.")
    with console.display(as_json) as listen:
        result = run(
            study,
            out,
            runtime=known_runtime(runtime),
            address=address,
            timeout=timeout,
            checkpoints=checkpoints,
            certificates=certificates,
            listen=listen,
        )
    tell(result, as_json)


@app.command(
    "verify",
    help="Check a run from its files alone: k, l, t, ledgers, signatures, and that nothing was touched since.",
    epilog="Example:\n\nfederated-anon verify trial --pin hospital=91af32f4... (64 digits, as its owner told you)",
)
def verify_command(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    pin: Annotated[
        list[str] | None, typer.Option(metavar="HOLDER=KEY", help="The identity you know from elsewhere; repeatable.")
    ] = None,
    as_json: Json = False,
) -> None:
    """A run, checked from its files."""
    from coordinator.audit import audited

    pins = dict(parsed_pin(text) for text in pin or ())
    if cli_sets.verified(folder, as_json) or cli_set_studies.verified_study(folder, pins, as_json):
        return
    found = audited(folder, pins)
    verdict = {
        "verified": True,
        "run": str(folder),
        "records": found.records,
        "k_reached": found.reached.k,
        "diversity_reached": found.reached.diversity,
        "closeness_reached": found.reached.closeness,
        "ledger_entries": dict(found.entries),
        "bytes_sent": dict(found.bytes_sent),
        "coordinator_view_linkage": found.view_linkage,
        "identities": dict(found.identities),
    }
    if as_json:
        console.print_json(verdict)
        return
    rows = [(n, found.entries[n], console.size(found.bytes_sent[n])) for n in found.identities]
    console.say(f"Verified: {found.records} records, each alike with at least {found.reached.k - 1} others.")
    console.screen().print(console.grid("Ledgers", ("holder", "entries", "sent"), rows, right=("entries", "sent")))
    if not pin:
        told = [f"  --pin {name}={key}" for name, key in found.identities.items()]
        console.say("Signed by these keys; compare them with their owners, then verify with:", *told)


@app.command(
    "keys",
    help="Make an identity for a holder, and print the public key that its partners write under \\[partners].",
    epilog="Example:\n\nfederated-anon keys hospital/identity.key",
)
def keys_command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Where to write the private key; never over an existing file.")
    ],
) -> None:
    """A new identity."""
    from federated_anon.crypto.signing import Identity

    identity = Identity.create()
    identity.save(file)
    typer.echo(identity.public.hex())


@app.command(
    "init",
    help="Look at data files and write a commented study with settings and keys for each holder.\n\n"
    "Types are taken from the data; roles never are: a column you do not name is marked 'choose', and the study is "
    f"refused until you have chosen. {STAR}",
    epilog="Example:\n\nfederated-anon init hospital.csv bank.parquet --key patient,customer --sensitive diagnosis",
)
def init_command(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILES", help="One data file per holder; its name names the holder.")
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder to write; it must not exist yet.")] = Path(
        "study"
    ),
    k: Annotated[int, typer.Option(help="Every combination of quasi-identifiers occurs at least k times.")] = 5,
    key: Annotated[str, typer.Option(metavar="NAMES", help="Columns that name the person, one in each file.")] = "",
    quasi: Quasi = "",
    sensitive: Sensitive = "",
    keep: Keep = "",
    drop: Drop = "",
) -> None:
    """A commented study from a look at the data."""
    from federated_anon.drafts import Drafted, draft_study, holder_names
    from nodes.source import read_table

    named = holder_names(files)
    tables = {name: (file, read_table(file)) for name, file in named.items()}
    roles = Drafted(names(quasi), names(sensitive), names(keep), names(drop), names(key))
    undecided = draft_study(out, tables, roles, k)
    console.say(f"Written: {out}/study.toml, and a folder with settings and a key for {', '.join(tables)}.")
    if undecided:
        console.say(f'Next: choose a role for {undecided} columns (role = "choose") in:')
        console.say(*(f"  {out}/{name}/settings.toml" for name in tables))
        console.say(f"Then: federated-anon doctor {out}/study.toml")
    else:
        console.say(f"Next: federated-anon doctor {out}/study.toml")


@app.command(
    "doctor",
    help="Check what can be checked from here before a study runs: settings, keys, data, ledger, pins, and policies "
    "against the study.",
    epilog="Example:\n\nfederated-anon doctor study/study.toml",
)
def doctor_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A study file, or a holder's settings file.")],
    certificates: Certificates = None,
    address: Annotated[
        str | None, typer.Option(help="A Ray cluster to look at: its token, TLS, and a node for every holder.")
    ] = None,
    as_json: Json = False,
) -> None:
    """A study or a holder, examined."""
    from federated_anon.sections import read_toml

    is_holder = "holder" in read_toml(file)
    findings = examined(file, is_holder)
    findings += cli_service.links_examined(file, certificates) if certificates else []
    findings += cli_service.cluster_examined(file, address) if address else []
    faults = sum(not finding.ok for finding in findings)
    if as_json:
        console.print_json({"healthy": not faults, "findings": [finding.as_dict() for finding in findings]})
    else:
        console.screen().print(console.listing(finding_rows(findings)))
        run_it = "" if is_holder else f" Next: federated-anon run {file} --out run"
        console.say(f"{faults} faults: mend them and ask again." if faults else f"All in order.{run_it}")
    if faults:
        raise typer.Exit(SettingsRefused.exit_code)


@app.command(
    "demo",
    help="A real study of three organisations over generated people, open and sealed side by side: what each costs, "
    "who learns what.",
    epilog="Example:\n\nfederated-anon demo --out demo-run --people 3000",
)
def demo_command(
    out: Annotated[Path, Folder] = Path("demo-run"),
    people: Annotated[int, typer.Option(min=50, help="How many people the generator makes.")] = 3000,
    seed: Seed = 0,
) -> None:
    """Three organisations and their study."""
    from federated_anon.demo import show

    show(out, people, seed)


def examined(file: Path, is_holder: bool) -> list[Finding]:
    """Findings about a holder's settings, or about a study and the holders whose settings lie here."""
    from federated_anon.study import load_study
    from nodes.doctor import examine_holder, examine_study

    return examine_holder(file) if is_holder else examine_study(load_study(file), file.parent)


def finding_rows(findings: list[Finding]) -> list[tuple[str, ...]]:
    """Findings as rows; whose they are stands in the first one only."""
    before = ["", *(finding.holder for finding in findings)]
    return [
        ("" if one.holder == last else one.holder, "ok" if one.ok else "FAULT", one.subject, one.text)
        for one, last in zip(findings, before, strict=False)
    ]


def known_runtime(text: str) -> Runtime:
    """A runtime's name, checked."""
    if text == "ray":
        return "ray"
    if text == "in-process":
        return "in-process"
    raise SettingsRefused("command line", [f"--runtime is 'ray' or 'in-process', got '{text}'"])


def parsed_pin(text: str) -> tuple[str, str]:
    """``holder=key`` as a pair."""
    holder, separator, key = text.partition("=")
    if not separator or len(key) != 64 or not set(key.lower()) <= set("0123456789abcdef"):
        raise SettingsRefused("command line", [f"--pin is holder=key with 64 hex digits, got '{text}'"])
    return holder, key.lower()


def command_line() -> int:
    """What the arguments ask for; signals interrupt it from here on."""
    logging.getLogger("nodes").addHandler(own_log())
    INTERRUPTION.arm()
    return int(app(standalone_mode=False) or 0)


def main() -> None:
    """The same as ``python -m federated_anon``."""
    from federated_anon.__main__ import main as whole

    whole()
