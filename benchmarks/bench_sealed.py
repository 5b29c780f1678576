"""Sealed splitting: time and bytes of all holders together on large tables, and loss against MDAV on published ones.

    python benchmarks/bench_sealed.py --records 100000 1000000
    python benchmarks/bench_sealed.py --data FOLDER

Seconds are those of three holders and the coordinator's part, one after another in one process.
"""

import argparse
import csv
import time
from pathlib import Path

import numpy as np

from federated_anon.microaggregation import MDAV, information_loss
from federated_anon.sealed import joint_classes, sealed_groups

TABLES = ("census", "tarragona", "eia", "yeast")
SEEDS = (1, 2, 3)


def mixture(records: int, columns: int = 30, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((records, 6)) + 2 * rng.standard_normal((20, 6))[rng.integers(0, 20, records)]
    table = hidden @ rng.standard_normal((6, columns)) + rng.standard_normal((records, columns))
    return (table - table.mean(axis=0)) / table.std(axis=0)


def published(path: Path) -> np.ndarray:
    with path.open() as file:
        head, *rows = csv.reader(file)
    kept = [place for place, name in enumerate(head) if name != "label"]
    table = np.array([[float(row[place]) for place in kept] for row in rows])
    table = table[:, table.std(axis=0) > 0]
    return (table - table.mean(axis=0)) / table.std(axis=0)


def dealt(table: np.ndarray, seed: int) -> list[np.ndarray]:
    parts = np.array_split(np.random.default_rng(seed).permutation(table.shape[1]), 3)
    return [table[:, part] for part in parts]


def measure_size(records: int, k: int) -> None:
    table = mixture(records)
    start, cpu = time.perf_counter(), time.process_time()
    found = sealed_groups(np.array_split(table, 3, axis=1), k, SEEDS)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    sent, levels = found.transcript.size, found.transcript.levels
    relayed = 2 * sum(len(bits) for level in levels for bits in level.bits)
    smallest = int(np.bincount(joint_classes(found.transcript)).min())
    loss = information_loss(table, found.labels)
    print(
        f"{records} x 30, k={k}: {seconds:.1f} s ({cpu:.1f} s of processor), {len(levels)} levels, "
        f"{sent / 1e6:.2f} MB sent by holders, {relayed / 1e6:.2f} MB relayed, "
        f"loss {loss:.3f}, smallest class {smallest}",
        flush=True,
    )


def measure_loss(folder: Path) -> None:
    for name in TABLES:
        table = published(folder / f"{name}.csv")
        ratios = []
        for k in (3, 5, 10):
            losses = [information_loss(table, sealed_groups(dealt(table, s), k, SEEDS).labels) for s in range(5)]
            ratios.append(float(np.mean(losses)) / information_loss(table, MDAV(k).fit(table).labels_))
        print(f"{name}: {' / '.join(f'{ratio:.3f}' for ratio in ratios)} of MDAV at k = 3 / 5 / 10", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, nargs="*", default=[])
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--data", type=Path)
    chosen = parser.parse_args()
    sealed_groups(np.array_split(mixture(200), 3, axis=1), chosen.k, SEEDS)
    for records in chosen.records:
        measure_size(records, chosen.k)
    if chosen.data:
        measure_loss(chosen.data)


if __name__ == "__main__":
    main()
