"""Commands for studies across organisations: ``holder serve`` and ``certs``."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Annotated

import typer

from federated_anon.errors import SettingsRefused
from federated_anon.findings import Finding

app = typer.Typer(add_completion=False)
holder = typer.Typer(no_args_is_help=True, help="A holder's own end of a study across organisations.")
app.add_typer(holder, name="holder")

PARTY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@holder.command("serve")
def serve_command(
    settings: Annotated[
        Path, typer.Argument(help="The holder's settings file; its [service] says where and for whom.")
    ],
) -> None:
    """Open this holder's door to the coordinator: Arrow Flight over mutual TLS, until SIGTERM or Ctrl-C.

    One line on stdout says when it is ready. The log on stderr stays here: sizes, times, and why a step was refused.
    """
    from nodes.service import serve
    from nodes.settings import load_settings

    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    logging.getLogger("nodes.service").setLevel(logging.INFO)
    serve(load_settings(settings), lambda line: typer.echo(f"Ready: {line}"))


@app.command("certs")
def certs_command(
    folder: Annotated[Path, typer.Argument(help="Folder to write; it must not exist yet.")],
    parties: Annotated[str, typer.Option(help="All parties, comma-separated; one of them is 'coordinator'.")],
    host: Annotated[list[str] | None, typer.Option(help="A name or address to add to every certificate.")] = None,
    days: Annotated[int, typer.Option(min=1, max=825, help="How long the certificates are good for.")] = 90,
) -> None:
    """Make a trial authority and a certificate per party. For a trial only: all private keys are made in one place.

    Carry each party its own folder, by a way that you trust; keep authority.key, or destroy it.
    """
    from federated_anon.crypto.trial_authority import write_trial
    from federated_anon.messages import COORDINATOR

    holders = checked_parties(parties, COORDINATOR)
    write_trial(folder, COORDINATOR, holders, tuple(host or ()), days)
    typer.echo(f"Written: {folder}/<party>/ for {COORDINATOR}, {', '.join(holders)}; good for {days} days.")
    typer.echo("For a trial only: whoever has authority.key can pass for any party that nobody has pinned.")
    typer.echo("A holder's settings then say, with its own name for X:\n")
    typer.echo('[service]\naddress = "0.0.0.0:7430"\ncertificate = "X.crt"\nkey = "X.key"\nauthority = "authority.crt"')
    typer.echo(f'coordinator_certificate = "{COORDINATOR}.crt"')


def links_examined(file: Path, certificates: Path) -> list[Finding]:
    """What a coordinator finds out about the services of a study: certificates, ways, versions, clocks."""
    from coordinator.checkup import examine_links
    from federated_anon.study import load_study

    return examine_links(load_study(file).addresses, certificates)


def cluster_examined(file: Path, address: str) -> list[Finding]:
    """What a coordinator finds out about the Ray cluster of a study."""
    from coordinator.cluster import examine_cluster
    from federated_anon.study import load_study

    study = load_study(file)
    return examine_cluster(address, {name: place.resource for name, place in study.deployment.items()})


def checked_parties(text: str, coordinator: str) -> tuple[str, ...]:
    """The holders among the named parties; all faults in one ``SettingsRefused``."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    faults = [f"--parties: '{name}' is not a party's name" for name in names if not PARTY.fullmatch(name)]
    if names.count(coordinator) != 1:
        faults.append(f"--parties must name '{coordinator}' once")
    if len(set(names)) < len(names) or len(names) < 2:
        faults.append("--parties must name at least one holder, and everyone once")
    if "authority" in names:
        faults.append("--parties: 'authority' is the name of the authority's own files")
    if faults:
        raise SettingsRefused("command line", faults)
    return tuple(name for name in names if name != coordinator)
