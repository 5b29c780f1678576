"""A set-valued study on one file: its people, or its items, are dealt to several holders and everything runs here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from federated_anon.simulate import COORDINATOR_KEY, Result, Runtime, run

if TYPE_CHECKING:
    import pyarrow as pa

    from coordinator.driver import Progress
    from federated_anon.setvalued import Transactions
    from federated_anon.study import StudyFile

Split = Literal["people", "items"]


def simulate_sets(
    transactions: Transactions,
    *,
    k: int = 3,
    m: int = 2,
    delta: int = 40,
    min_size: int | None = None,
    holders: int = 3,
    split: Split = "people",
    seed: int = 0,
    out: Path | str | None = None,
    runtime: Runtime = "in-process",
    listen: Callable[[Progress], None] | None = None,
) -> Result:
    """Play a whole study: people (or items) are dealt evenly to ``holders`` by the seed. Same call, same bytes."""
    from federated_anon.columns import Column, Kind, Role
    from federated_anon.crypto.signing import Identity
    from federated_anon.drafts import write_holder
    from federated_anon.folders import require_free, temporary_folder

    if out is not None:
        require_free(Path(out))
    study = planned_sets(k, m, delta, min_size, holders, split, seed)
    shares = dealt_people(transactions, study) if split == "people" else dealt_items(transactions, study)
    columns = (Column("person", Role.KEY, Kind.INTEGER), Column("items", Role.SET, Kind.SET))
    with temporary_folder() as folder:
        for name, table in shares.items():
            write_holder(folder / name, name, table, columns, study, seed)
        Identity.for_simulation(seed, "coordinator").save(folder / COORDINATOR_KEY)
        return run(study, out, base=folder, runtime=runtime, listen=listen)


def planned_sets(k: int, m: int, delta: int, min_size: int | None, holders: int, split: Split, seed: int) -> StudyFile:
    """The study file of a simulation; all faults at once."""
    from federated_anon.deal import HOLDER
    from federated_anon.study import study_file

    names = [HOLDER.format(number + 1) for number in range(min(max(holders, 0), 65))]
    tree = "joint" if split == "items" else "local"
    content: dict[str, Any] = {
        "name": "simulation",
        "kind": "set-valued",
        "holders": names,
        "seed": seed,
        "privacy": {"k": k},
        "sets": {"m": m, "delta": delta, "min_size": min_size, "split": split, "tree": tree},
        "deployment": {name: {"settings": f"{name}/settings.toml"} for name in names},
    }
    return study_file(content, "simulation")


def dealt_people(transactions: Transactions, study: StudyFile) -> dict[str, pa.Table]:
    """Each person at one holder."""
    import numpy as np

    from federated_anon.errors import SettingsRefused
    from federated_anon.seeds import stream

    count = len(study.holders)
    if len(transactions) < count:
        raise SettingsRefused("simulation", [f"{len(transactions)} people cannot be dealt to {count} holders"])
    order = stream(study.seed, "deal", "people").permutation(len(transactions))
    rows = {name: np.sort(order[place::count]) for place, name in enumerate(study.holders)}
    return {name: people_table(transactions.select(own), own) for name, own in rows.items()}


def dealt_items(transactions: Transactions, study: StudyFile) -> dict[str, pa.Table]:
    """All people at every holder, each item at one."""
    import numpy as np

    from federated_anon.errors import SettingsRefused
    from federated_anon.seeds import stream
    from federated_anon.setvalued import Transactions

    count = len(study.holders)
    if len(transactions.names) < count:
        raise SettingsRefused("simulation", [f"{len(transactions.names)} items cannot be dealt to {count} holders"])
    owner = np.empty(len(transactions.names), dtype=np.int64)
    owner[stream(study.seed, "deal", "items").permutation(len(owner))] = np.arange(len(owner)) % count
    rows, shares = np.repeat(np.arange(len(transactions)), transactions.lengths), {}
    for place, name in enumerate(study.holders):
        mine = owner[transactions.items] == place
        lengths = np.bincount(rows[mine], minlength=len(transactions))
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        part = Transactions(offsets, transactions.items[mine], transactions.names)
        shares[name] = people_table(part, np.arange(len(transactions)))
    return shares


def people_table(transactions: Transactions, people: Any) -> pa.Table:
    """People and their sets, as a holder's file has them."""
    import pyarrow as pa

    from federated_anon.setvalued.formats import to_lists

    return pa.table({"person": people, "items": to_lists(transactions)})
