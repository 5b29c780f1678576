"""Set-valued studies of several holders on the command line: simulated on one file, summed up, and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from federated_anon import console
from federated_anon.errors import SettingsRefused
from federated_anon.simulate import Result

if TYPE_CHECKING:
    from federated_anon.setvalued.transactions import Transactions
    from federated_anon.simulate_sets import Split

SPLITS = ("people", "items")


def simulate_file(
    original: Transactions,
    asked: Mapping[str, Any],
    holders: int,
    split: str,
    alone: Sequence[str],
    out: Path | None,
    as_json: bool,
) -> None:
    """Play the study of several holders; ``alone`` are options given that only one organisation can use."""
    from federated_anon.simulate_sets import simulate_sets

    faults = [f"{option} is for one organisation's own data, not for --holders" for option in alone]
    if split not in SPLITS:
        faults.append(f"--split is 'people' or 'items', got '{split}'")
    if faults:
        raise SettingsRefused("command line", faults)
    with console.display(as_json) as listen:
        chosen = {name: asked[name] for name in ("k", "m", "delta", "min_size", "seed")}
        result = simulate_sets(
            original, **chosen, holders=holders, split=cast("Split", split), out=out, listen=cast(Any, listen)
        )
    tell_sets(result, as_json)


def tell_sets(result: Result, as_json: bool) -> None:
    """The summary, for machines or for people."""
    summary = result.summary
    if as_json:
        console.print_json(summary)
        return
    rows = {
        "people": f"{summary['people']} in {summary['clusters']} clusters of at least {summary['smallest_cluster']}",
        "holders": f"{summary['holders']}, with other {summary['split']}; {summary['tree']} tree",
        "promise": f"any {summary['m']} known items fit at least {summary['k']} people",
        "items kept": console.percent(summary["items_kept_percent"]),
        "re-associated": f"{summary['reassociated_records']} records",
        "sent by holders": console.size(summary["bytes_sent"]),
        "time": f"{summary['seconds']} s",
        "run": summary["run"] or "not written",
    }
    console.screen().print(console.pairs("Disassociated", rows))
    console.say(*(f"Note: {caveat}" for caveat in result.report["caveats"]))
    console.say(f"Next: federated-anon verify {result.folder}" if result.folder else "Next: the same with --out FOLDER")


def verified_study(folder: Path, pins: Mapping[str, str], as_json: bool) -> bool:
    """Check a set-valued study of several holders; False if the folder is of another kind."""
    from coordinator.set_audit import audited_set_study, is_set_study

    if not is_set_study(folder):
        return False
    found = audited_set_study(folder, pins)
    if as_json:
        console.print_json({"verified": True, "kind": "set-valued", "run": str(folder), **asdict(found)})
        return True
    console.say(
        f"Verified: {found.people} people in {found.clusters} clusters of at least {found.smallest}; in every chunk, "
        f"{found.m} items or fewer occur together never or at least {found.k} times."
    )
    rows = [(name, found.entries[name], console.size(found.bytes_sent[name])) for name in found.identities]
    console.screen().print(console.grid("Ledgers", ("holder", "entries", "sent"), rows, right=("entries", "sent")))
    if not pins:
        told = [f"  --pin {name}={key}" for name, key in found.identities.items()]
        console.say("Signed by these keys; compare them with their owners, then verify with:", *told)
    return True
