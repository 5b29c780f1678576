"""Scenarios played: real holders and a real coordinator in one process per play, many plays side by side on Ray."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from coordinator.protocol import Outcome
    from federated_anon.scenario.plan import Cell, Play, ScenarioFile
    from federated_anon.scenario.sites import Site
    from federated_anon.study import Study

RELEASED = "released"


def play_scenarios(plan: ScenarioFile, cells: Sequence[Cell], workers: int) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Cells with their figures as they finish, on a Ray cluster of this machine alone."""
    from federated_anon.simulate import RAY_ALONE, RAY_MANNERS

    for name, value in (RAY_MANNERS | RAY_ALONE).items():
        os.environ.setdefault(name, value)
    from coordinator.runtime import as_finished, own_cluster

    with own_cluster(workers):
        for (_, cell), figures in as_finished(play_cell, [(plan, cell) for cell in cells], workers):
            yield cell, figures


def play_cell(wish: tuple[ScenarioFile, Cell]) -> dict[str, Any]:
    """One play of a scenario file."""
    plan, cell = wish
    return played(plan, plan.plays[cell.number])


def played(plan: ScenarioFile, play: Play) -> dict[str, Any]:
    """How a play ends, in figures; a study that ends without a release says why (``ending``), and that is a result."""
    from federated_anon.errors import FederatedAnonError
    from federated_anon.folders import temporary_folder
    from federated_anon.scenario.sites import LABEL, generated, staged
    from nodes.source import read_table

    table = read_table(plan.table.file) if plan.table.file else generated(plan.table, play.seed)
    label = plan.table.label if plan.table.file else LABEL
    sites = staged(table, label, plan.table.drop, play)
    study = study_of(play, [site.name for site in sites])
    begun = time.perf_counter()
    counts: dict[str, int] = {}
    with temporary_folder() as folder:
        try:
            outcome = conducted(folder, sites, study, play, counts)
        except FederatedAnonError as error:
            figures: dict[str, Any] = {"ending": str(error.code), "reason": str(error).splitlines()[0]}
        else:
            figures = {"ending": RELEASED, **figures_of(outcome, table, label, play)}
    return {**figures, **counts, "seconds": round(time.perf_counter() - begun, 2)}


def study_of(play: Play, holders: Sequence[str]) -> Study:
    """The study that the sites agree on."""
    from federated_anon.sections import checked
    from federated_anon.study import Study

    alone = {"rounds": 0, "side_information": False}
    content = {
        "name": "scenario",  # The same for all: a study's name is part of its digest, and that of its pseudonyms.
        "holders": list(holders),
        "method": play.method,
        "exposure": play.exposure,
        "seed": play.seed,
        "privacy": {"k": play.k},
        **({} if play.collaboration else {"collaboration": alone}),
    }
    return checked(Study, content, f"scenario '{play.name}'")


def conducted(folder: Path, sites: Sequence[Site], study: Study, play: Play, counts: dict[str, int]) -> Outcome:
    """The study over real holders with their troubles; ``counts`` gets bytes and steps, also when it fails."""
    from coordinator.driver import Driver
    from coordinator.holders import InProcess
    from federated_anon.drafts import write_holder
    from federated_anon.scenario.trouble import Troubled
    from nodes.holder import DataHolder
    from nodes.settings import load_settings

    answers = {}
    for number, site in enumerate(sites):
        write_holder(folder / site.name, site.name, site.table, site.columns, study, study.seed)
        settings = load_settings(folder / site.name / "settings.toml")
        troubles = [trouble for trouble in play.trouble if trouble.site == number + 1]
        answers[site.name] = Troubled(lambda own=settings: DataHolder(own).answer, troubles)  # type: ignore[misc]
    steps: list[Any] = []
    secret = np.random.default_rng(play.seed).bytes(32)
    driver = Driver(study, InProcess(answers), secret=secret, listen=steps.append)
    try:
        return cast("Outcome", driver.run())
    finally:
        counts |= {"bytes": sum(driver.bytes_received.values()), "rounds": len(steps)}


def figures_of(outcome: Outcome, table: pa.Table, label: str | None, play: Play) -> dict[str, Any]:
    """What was lost, what a tree still learns, and what is at risk."""
    from federated_anon.columns import Role
    from federated_anon.deal import Roles, declared
    from federated_anon.privacy import equivalence_classes, smallest_class
    from federated_anon.utility.separability import TREE, Task, transferred

    release, report = outcome.release.table, outcome.report
    columns = declared(table, Roles(quasi=("*",), keep=(label,) if label else ()))
    quasi = tuple(column for column in columns if column.role is Role.QUASI)
    classes = equivalence_classes(release, [column.name for column in quasi])
    figures: dict[str, Any] = {
        "records": report["records"],
        "k_reached": smallest_class(classes),
        "information_loss": report["information_loss_percent"],
        "linkage_bound": (int(classes.max()) + 1) / len(classes),
        "coordinator_linkage": report["coordinator_view_linkage"],
    }
    if label:
        task = Task(label, quasi, (TREE,), play.seed)
        figures["accuracy"] = transferred(table, release, task).accuracy[TREE].value
    return figures
