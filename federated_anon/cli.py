"""The command line: ``federated-anon init, simulate, run, verify, doctor, keys, demo``."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from federated_anon import console
from federated_anon.errors import FederatedAnonError, SettingsRefused
from federated_anon.simulate import Result, Runtime, run, simulate
from federated_anon.study import load_study

if TYPE_CHECKING:
    from nodes.doctor import Finding

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="One joint k-anonymous table from organisations that hold different columns about the same people.",
    epilog=(
        "Exit codes: 0 done, 1 unexpected fault, 2 wrong command line, 3 settings refused, 4 data refused, "
        "5 a holder refused, 6 a guarantee cannot be kept, 7 verification failed, 8 a holder is late, "
        "9 storage failed, 130 interrupted."
    ),
)

USAGE_ERROR: Any = typer.BadParameter.__mro__[2]  # The root of Typer's own errors, which it does not export.

Names = Annotated[str, typer.Option(help="Comma-separated column names.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout; no progress display.")]
Seed = Annotated[int, typer.Option(help="Same seed, same bytes.")]


def names(text: str) -> tuple[str, ...]:
    """Column names of a comma-separated option."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


@app.command("simulate")
def simulate_command(
    file: Annotated[Path, typer.Argument(help="CSV (also .gz), Parquet or Arrow file with one row per person.")],
    k: Annotated[int, typer.Option(help="Every combination of quasi-identifiers occurs at least k times.")] = 5,
    holders: Annotated[int, typer.Option(help="To how many holders the columns are dealt.")] = 3,
    quasi: Annotated[str, typer.Option(help="Quasi-identifiers; '*' is every column not named otherwise.")] = "",
    sensitive: Annotated[str, typer.Option(help="Sensitive columns: values stay, shuffled inside groups.")] = "",
    keep: Annotated[str, typer.Option(help="Columns kept as they are, shuffled inside groups.")] = "",
    drop: Annotated[str, typer.Option(help="Columns that take no part.")] = "",
    key: Annotated[str | None, typer.Option(help="Column that names the person; without it, the row does.")] = None,
    views: Annotated[str, typer.Option(help="Who holds what, as 'a,b;c,d'; without it, dealt by the seed.")] = "",
    method: Annotated[str, typer.Option(help="best, k-tca or c-tca.")] = "best",
    exposure: Annotated[str, typer.Option(help="open: the coordinator is trusted with cell indices.")] = "open",
    l: Annotated[int | None, typer.Option("--l", help="l-diversity of the sensitive columns.")] = None,  # noqa: E741
    t: Annotated[float | None, typer.Option("--t", help="t-closeness of the sensitive columns.")] = None,
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(help="Run folder to write; it must not exist yet.")] = None,
    runtime: Annotated[str, typer.Option(help="ray: local Ray actors; in-process: no Ray at all.")] = "ray",
    as_json: Json = False,
) -> None:
    """Play a whole study on one file: columns are dealt to holders, everything runs on this machine.

    Example: federated-anon simulate people.csv --k 5 --quasi '*' --sensitive diagnosis --key id --out trial
    """
    with console.display(as_json) as listen:
        result = simulate(
            file,
            k=k,
            holders=holders,
            quasi=names(quasi),
            sensitive=names(sensitive),
            keep=names(keep),
            drop=names(drop),
            key=key,
            views=[names(view) for view in views.split(";")] if views else (),
            method=method,
            exposure=exposure,
            l=l,
            t=t,
            seed=seed,
            out=out,
            runtime=known_runtime(runtime),
            listen=listen,
        )
    tell(result, as_json)


@app.command("run")
def run_command(
    study: Annotated[Path, typer.Argument(help="The study file; its [deployment] says where holders run.")],
    out: Annotated[Path, typer.Option(help="Run folder to write; it must not exist yet.")] = Path("run"),
    address: Annotated[str | None, typer.Option(help="An existing Ray cluster, such as 'auto' or host:6379.")] = None,
    runtime: Annotated[str, typer.Option(help="ray, or in-process without Ray.")] = "ray",
    timeout: Annotated[float, typer.Option(help="Seconds to wait for a holder's answer.")] = 3600.0,
    checkpoints: Annotated[
        Path | None, typer.Option(help="Folder for checkpoints: an interrupted study goes on from there.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a study with its real holders, each under its own settings and policy.

    One Ray cluster is one trust domain: whoever can run code on it can read what its nodes hold.
    """
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
            listen=listen,
        )
    tell(result, as_json)


@app.command("verify")
def verify_command(
    folder: Annotated[Path, typer.Argument(help="A finished run.")],
    pin: Annotated[list[str] | None, typer.Option(help="holder=key: the identity you know from elsewhere.")] = None,
    as_json: Json = False,
) -> None:
    """Check a run from its files alone: k, l, t, ledgers, signatures, and that nothing was touched since."""
    from coordinator.audit import audited

    found = audited(folder, dict(parsed_pin(text) for text in pin or ()))
    verdict = {
        "verified": True,
        "run": str(folder),
        "records": found.records,
        "k_reached": found.reached.k,
        "diversity_reached": found.reached.diversity,
        "closeness_reached": found.reached.closeness,
        "ledger_entries": dict(found.entries),
        "bytes_sent": dict(found.bytes_sent),
        "identities": dict(found.identities),
    }
    if as_json:
        console.print_json(verdict)
        return
    rows = [(n, found.entries[n], console.size(found.bytes_sent[n]), found.identities[n]) for n in found.identities]
    screen = Console()
    screen.print(f"Verified: {found.records} records, every class has at least {found.reached.k}.")
    screen.print(console.grid("Ledgers", ("holder", "entries", "sent", "identity"), rows))


@app.command("keys")
def keys_command(
    file: Annotated[Path, typer.Argument(help="Where to write the private key; never over an existing file.")],
) -> None:
    """Make an identity for a holder, and print the public key that its partners pin under [partners]."""
    from federated_anon.crypto.signing import Identity

    identity = Identity.create()
    identity.save(file)
    typer.echo(identity.public.hex())


@app.command("init")
def init_command(
    files: Annotated[list[Path], typer.Argument(help="One data file per holder; the file's name names the holder.")],
    out: Annotated[Path, typer.Option(help="Folder to write; it must not exist yet.")] = Path("study"),
    k: Annotated[int, typer.Option(help="The study's k.")] = 5,
    key: Annotated[str | None, typer.Option(help="Column that names the person, in every file.")] = None,
    quasi: Names = "",
    sensitive: Names = "",
    keep: Names = "",
    drop: Names = "",
) -> None:
    """Look at data files and write a commented study with settings and keys for each holder.

    Types are taken from the data; roles never are: a column you do not name is marked 'choose', and the study is
    refused until you have chosen.
    """
    from federated_anon.deal import Roles
    from federated_anon.drafts import draft_study
    from nodes.source import read_table

    tables = {file.name.split(".")[0]: (file, read_table(file)) for file in files}
    if len(tables) < len(files):
        raise SettingsRefused("command line", ["every file needs a name of its own: it names the holder"])
    roles = Roles(names(quasi), names(sensitive), names(keep), names(drop), key)
    undecided = draft_study(out, tables, roles, k)
    typer.echo(f"Written: {out}/study.toml and one folder per holder.")
    if undecided:
        typer.echo(
            f'Choose a role for {undecided} columns (role = "choose"), then: federated-anon doctor {out}/study.toml'
        )
    else:
        typer.echo(f"Next: federated-anon doctor {out}/study.toml, then: federated-anon run {out}/study.toml --out run")


@app.command("doctor")
def doctor_command(
    file: Annotated[Path, typer.Argument(help="A study file, or a holder's settings file.")],
    as_json: Json = False,
) -> None:
    """Check what can be checked from here before a study runs: settings, keys, data, pins, policy against study."""
    findings = examined(file)
    if as_json:
        console.print_json({"healthy": all(f.ok for f in findings), "findings": [f.as_dict() for f in findings]})
    else:
        rows = [("ok" if f.ok else "FAULT", f.subject, f.text) for f in findings]
        Console().print(console.grid(f"Doctor: {file}", ("", "what", "finding"), rows))
    if not all(finding.ok for finding in findings):
        raise typer.Exit(SettingsRefused.exit_code)


@app.command("demo")
def demo_command(
    out: Annotated[Path, typer.Option(help="Folder to write; it must not exist yet.")] = Path("demo-run"),
    people: Annotated[int, typer.Option(help="How many people the generator makes.")] = 3000,
    seed: Seed = 0,
) -> None:
    """A real study of three organisations over generated people: data files, settings, release, what was learned."""
    from federated_anon.demo import show

    show(out, people, seed)


def examined(file: Path) -> list[Finding]:
    """Findings about a holder's settings, or about a study and the holders whose settings lie here."""
    from federated_anon.sections import read_toml
    from nodes.doctor import Finding, examine_holder

    if "holder" in read_toml(file):
        return examine_holder(file)
    study = load_study(file)
    findings = [
        Finding(True, "study", f"{len(study.holders)} holders, k = {study.privacy.k}, digest {study.study.digest[:16]}")
    ]
    for name in study.holders:
        place = study.deployment.get(name)
        if place is None:
            findings.append(Finding(False, f"{name}: place", "[deployment] does not say where this holder runs"))
        elif (file.parent / place.settings).exists():
            findings += examine_holder(file.parent / place.settings, study.study)
        else:
            findings.append(
                Finding(True, f"{name}: place", f"'{place.settings}' is not on this machine; ask its doctor")
            )
    return findings


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
    if not separator or len(key) != 64:
        raise SettingsRefused("command line", [f"--pin is holder=key with 64 hex digits, got '{text}'"])
    return holder, key.lower()


def tell(result: Result, as_json: bool) -> None:
    """The summary, for machines or for people."""
    if as_json:
        console.print_json(result.summary)
        return
    screen = Console()
    screen.print(console.pairs("Release", summary_rows(result)))
    for caveat in result.report["caveats"]:
        screen.print(f"Note: {caveat}", highlight=False)
    if result.folder:
        screen.print(f"Next: federated-anon verify {result.folder}", highlight=False)


def summary_rows(result: Result) -> dict[str, Any]:
    """What a person wants to know first."""
    summary = result.summary
    return {
        "records": summary["records"],
        "k asked / reached": f"{summary['k']} / {summary['k_reached']}",
        "groups": summary["groups"],
        "information lost": f"{summary['information_loss_percent']:.2f} %",
        "method, exposure": f"{summary['method']}, {summary['exposure']}",
        "holders, columns": f"{summary['holders']}, {summary['columns']}",
        "sent by holders": console.size(summary["bytes_sent"]),
        "time": f"{summary['seconds']} s",
        "run": summary["run"] or "(not written: no --out)",
    }


def interrupted(*_: Any) -> None:
    """A polite end by signal is an interruption like Ctrl-C."""
    raise KeyboardInterrupt


def main() -> None:
    """Entry point: no traceback ever reaches a user; each kind of fault has its exit code."""
    logging.getLogger("nodes").addHandler(logging.StreamHandler(sys.stderr))
    signal.signal(signal.SIGTERM, interrupted)
    sys.exit(guarded(lambda: app(standalone_mode=False)))


def guarded(command: Callable[[], Any]) -> int:
    """Run a command; what goes wrong becomes one message on stderr and an exit code."""
    try:
        return int(command() or 0)
    except FederatedAnonError as error:
        console.errors.print(f"[bold red]Error:[/] {escape(str(error))}")
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        console.errors.print("Interrupted; nothing was written.")
        return 130
    except USAGE_ERROR as error:
        error.show()
        return int(error.exit_code)
    except Exception as error:
        if os.environ.get("FEDERATED_ANON_DEBUG"):
            raise
        told = f"{type(error).__name__}; FEDERATED_ANON_DEBUG=1 shows where"
        console.errors.print(f"[bold red]Unexpected fault:[/] {told}")
        return 1
