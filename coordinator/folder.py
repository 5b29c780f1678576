"""A run's folder, whole or not there: release, report data, resolved study and ledgers."""

from __future__ import annotations

import json
from pathlib import Path

from coordinator.protocol import Outcome
from federated_anon.folders import partial_folder


def write_run(place: Path, outcome: Outcome) -> None:
    """Release, report data, resolved study and ledgers, all or nothing."""
    with partial_folder(place) as folder:
        (folder / "release.parquet").write_bytes(outcome.release.parquet())
        (folder / "release.csv").write_bytes(outcome.release.csv())
        (folder / "report.json").write_text(json.dumps(outcome.report, indent=2, sort_keys=True) + "\n")
        (folder / "study.toml").write_text(outcome.release.study.to_toml())
        if outcome.transcript:
            (folder / "transcript").mkdir()
        for name, reply in outcome.transcript.items():
            (folder / "transcript" / name).write_bytes(reply)
        (folder / "ledger").mkdir()
        for holder, lines in outcome.ledgers.items():
            (folder / "ledger" / f"{holder}.jsonl").write_text("".join(line + "\n" for line in lines))
