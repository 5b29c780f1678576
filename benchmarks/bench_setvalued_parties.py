"""Set-valued studies of several holders on BMS1: items kept, pair ratio, time, and the auditor's word on each run."""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import perf_counter

import pyarrow as pa
import reporting
import tables

from coordinator.set_audit import audited_set_study
from federated_anon.setvalued import Transactions, disassociate, reassociate
from federated_anon.setvalued.formats import from_lists, read_transactions
from federated_anon.setvalued.measures import rank_preservation, top_pairs
from federated_anon.setvalued.parties import side_by_side
from federated_anon.simulate_sets import simulate_sets

BMS1 = tables.SHARED / "data" / "bms1.txt.gz"
EXPECTED = {("people", 2): 70.0, ("people", 5): 66.0, ("people", 10): 61.0, ("items", 2): 72.7, ("items", 3): 72.7}
TOP = 17


def pair_ratio(original: Transactions, published: Transactions) -> float:
    return rank_preservation(original, published, top_pairs(original, TOP), top_pairs(published, TOP)).ratio


def one(original: Transactions, split: str, holders: int, folder: Path) -> list[object]:
    place = folder / f"{split}-{holders}"
    begun = perf_counter()
    result = simulate_sets(original, holders=holders, split=split, out=place)
    spent = perf_counter() - begun
    found = audited_set_study(place)
    table = from_lists(result.table["items"].combine_chunks().cast(pa.list_(pa.string())))
    kept, expected = result.report["items_kept_percent"], EXPECTED[split, holders]
    verdict = "in order" if abs(kept - expected) <= 2 else "OUTSIDE"
    ratio = pair_ratio(original, table)
    entries = sum(found.entries.values())
    return [split, holders, kept, expected, ratio, found.smallest, entries, spent, f"verified, {verdict}"]


def main() -> None:
    original = read_transactions(BMS1)
    alone = disassociate(original, 3, 2, 40)
    ratio = pair_ratio(original, reassociate(side_by_side([alone])))
    smallest = min(cluster.size for cluster in alone.clusters)
    rows = [["one holder", 1, 100 * alone.kept / len(original.items), 72.7, ratio, smallest, 0, float("nan"), ""]]
    with tempfile.TemporaryDirectory() as folder:
        rows += [one(original, split, holders, Path(folder)) for split, holders in EXPECTED]
    head = ("holders have other", "holders", "items kept %", "first trial %", "top-17 pair ratio", "smallest cluster")
    head = (*head, "ledger entries", "seconds", "auditor")
    notes = (
        "k = 3, m = 2, delta = 40, min_size = 20, seed 0; holders in one process, ledgers on disk, run folder audited."
    )
    reporting.page(
        "setvalued_parties", "Set-valued studies of several holders (BMS1)", [reporting.table(head, rows)], notes
    )


if __name__ == "__main__":
    main()
