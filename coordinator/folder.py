"""A run's folder, whole or not there: release, report, resolved study and ledgers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coordinator.protocol import Outcome
from coordinator.sets import SetOutcome
from federated_anon.folders import partial_folder
from federated_anon.report.run_page import PAGE, SIMULATED, folder_page


def write_run(place: Path, outcome: Outcome | SetOutcome, measured: Mapping[str, Any] | None = None) -> None:
    """Release, report, resolved study and ledgers, all or nothing; ``measured`` is what only a simulation can."""
    with partial_folder(place) as folder:
        for name, content in outcome.release.files().items():
            (folder / name).write_bytes(content)
        (folder / "report.json").write_text(json.dumps(outcome.report, indent=2, sort_keys=True) + "\n")
        (folder / "study.toml").write_text(outcome.release.study.to_toml())
        if outcome.transcript:
            (folder / "transcript").mkdir()
        for name, reply in outcome.transcript.items():
            (folder / "transcript" / name).write_bytes(reply)
        (folder / "ledger").mkdir()
        for holder, lines in outcome.ledgers.items():
            (folder / "ledger" / f"{holder}.jsonl").write_text("".join(line + "\n" for line in lines))
        if measured is not None:
            (folder / SIMULATED).write_text(json.dumps(measured, indent=2, sort_keys=True) + "\n")
        if outcome.release.study.kind == "table":
            (folder / PAGE).write_text(folder_page(folder), encoding="utf-8")
