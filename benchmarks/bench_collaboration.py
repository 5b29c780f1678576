"""What collaboration brings: agreement under the Davies-Bouldin gate, and partners' codes as side information."""

from __future__ import annotations

import csv
import gzip
import os
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "2")

import numpy as np
from reporting import page, table
from tables import SHARED

from federated_anon.arrays import Codebook, Labels, Points
from federated_anon.cells import make_cells
from federated_anon.microaggregation import best_groups, information_loss, merge_small_units
from federated_anon.side import Code, correct, encode_block, rebuild
from federated_anon.side.code import plain_code
from federated_anon.side.conditional import Partition
from federated_anon.som import BatchSOM, Grid, assign_units, collaborative_update, davies_bouldin, lead_codebook
from federated_anon.som.batch import train_pass
from federated_anon.som.collaboration import link_strength

TABLES = (
    *("census", "tarragona", "eia", "ecoli", "glass", "wine", "yeast", "waveform", "pageblocks"),
    *("spambase", "satimage", "electricalgrid"),
)
HOLDERS, K, ROUNDS, RADIUS = 3, 5, 3, 0.7
SEEDS = (0, 1)
SHAPES = {"8": Grid(2, 4), "16": Grid(4, 4)}
BUDGET = 20.0


def read(name: str) -> Points | None:
    """Standardised numeric columns of a table, without its label; None where the table is absent."""
    path = next((SHARED / "data" / f"{name}.csv{end}" for end in ("", ".gz") if _there(name, end)), None)
    if path is None:
        return None
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        head, *rows = csv.reader(lines)
    kept = [i for i, column in enumerate(head) if column != "label"]
    values = np.array([[float(row[i]) for i in kept] for row in rows])
    values = values[:, values.std(axis=0) > 0]
    return (values - values.mean(axis=0)) / values.std(axis=0)


def _there(name: str, end: str) -> bool:
    return Path(SHARED / "data" / f"{name}.csv{end}").exists()


def deal(points: Points, seed: int) -> list[Points]:
    """Columns dealt at random to the holders."""
    order = np.random.default_rng(seed).permutation(points.shape[1])
    return [np.ascontiguousarray(points[:, np.sort(part)]) for part in np.array_split(order, HOLDERS)]


@dataclass(frozen=True, slots=True)
class Map:
    """A holder's map: prototypes, units of at least k records, Davies-Bouldin."""

    codebook: Codebook
    units: Labels
    index: float


def judged(points: Points, codebook: Codebook) -> Map:
    units = merge_small_units(points, assign_units(points, codebook), codebook, K)
    return Map(codebook, units, davies_bouldin(points, units))


def first_maps(views: list[Points], grid: Grid, aligned: bool) -> list[Map]:
    """Maps trained alone, or, all but the first, from the activations of the first."""
    maps: list[Map] = []
    for view in views:
        lead = lead_codebook(view, maps[0].units, grid) if aligned and maps else None
        som = BatchSOM(grid.rows, grid.cols, initial=lead, start_radius=1.5 if lead is not None else None)
        maps.append(judged(view, som.fit(view, np.random.default_rng(0)).codebook_))
    return maps


def candidate(views: list[Points], maps: list[Map], place: int, grid: Grid) -> Map:
    """The map that the partners' activations would make of a holder's."""
    own = maps[place]
    partners = [other.units for i, other in enumerate(maps) if i != place]
    links = [min(1.0, link_strength(own.units, units, grid, RADIUS)) for units in partners]
    return judged(
        views[place],
        collaborative_update(views[place], own.units, partners, links, grid, RADIUS, own.codebook),
    )


def rounds(views: list[Points], maps: list[Map], grid: Grid, gated: bool) -> tuple[list[Map], int]:
    """Maps after the rounds, and how many candidates were kept."""
    kept = 0
    for _ in range(ROUNDS):
        tried = [candidate(views, maps, place, grid) for place in range(len(maps))]
        keep = [not gated or new.index < old.index - 1e-9 for old, new in zip(maps, tried, strict=True)]
        kept += sum(keep)
        maps = [new if good else old for good, old, new in zip(keep, maps, tried, strict=True)]
    return maps, kept


def plain_passes(views: list[Points], maps: list[Map], grid: Grid, gated: bool) -> list[Map]:
    """As many ordinary passes at the same temperature, under the same gate or none."""
    for _ in range(ROUNDS):
        tried = [judged(v, train_pass(v, m.codebook, grid, RADIUS)) for v, m in zip(views, maps, strict=True)]
        better = [not gated or new.index < old.index - 1e-9 for old, new in zip(maps, tried, strict=True)]
        maps = [new if good else old for good, old, new in zip(better, maps, tried, strict=True)]
    return maps


def agreement_row(name: str, points: Points, aligned: bool) -> tuple[object, ...]:
    """Accepted candidates, and mean Davies-Bouldin before, after, and after the controls."""
    grid, kept, seen = Grid.for_records(len(points)), 0, []
    for seed in SEEDS:
        views = deal(points, seed)
        maps = first_maps(views, grid, aligned)
        after, count = rounds(views, maps, grid, gated=True)
        free, _ = rounds(views, maps, grid, gated=False)
        controls = [plain_passes(views, maps, grid, gated) for gated in (True, False)]
        kept += count
        seen.append([[m.index for m in each] for each in (maps, after, free, *controls)])
    tried = len(SEEDS) * HOLDERS * ROUNDS
    means = np.concatenate(seen, axis=1).mean(axis=1)
    return (name, "lead" if aligned else "alone", f"{kept} of {tried}", *(f"{value:.3f}" for value in means))


def unit_partition(grid: Grid) -> Partition:
    """Units of a map, whole, as cells."""

    def partition(points: Points, least: int) -> Labels:
        som = BatchSOM(grid.rows, grid.cols, end_radius=0.3).fit(points, np.random.default_rng(0))
        return merge_small_units(points, som.assign(points), som.codebook_, least)

    return partition


def cell_partition(grid: Grid) -> Partition:
    """Units split into cells of k to 2k-1 records, as ``best`` does."""

    def partition(points: Points, least: int) -> Labels:
        som = BatchSOM(grid.rows, grid.cols).fit(points, np.random.default_rng(0))
        return make_cells(points, som.assign(points), least, 0)

    return partition


def side_losses(views: list[Points], partition: Partition) -> tuple[float, float, float, int]:
    """Loss of the final groups without side information, with corrections only, with all; codes in turn used."""
    plain = [plain_code(view, partition(view, K), K) for view in views]
    turned: list[Code] = []
    for view in views:
        turned.append(encode_block(view, turned, K, partition))
    corrected = [[correct(view, codes, i) for i, view in enumerate(views)] for codes in (plain, turned)]
    joined = np.concatenate(views, axis=1)
    arms = (rebuild(plain), rebuild(plain, corrected[0]), rebuild(turned, corrected[1]))
    alone, decoded, both = (
        information_loss(joined, best_groups(np.concatenate(arm, axis=1), K, 0, BUDGET).labels) for arm in arms
    )
    return alone, decoded, both, sum(code.is_conditional for code in turned)


def side_row(name: str, points: Points, size: str) -> tuple[object, ...]:
    """Mean losses over the deals of columns, and the change that side information brings."""
    grid = SHAPES.get(size, Grid.for_records(len(points)))
    partition = cell_partition(grid) if size == "cells of k" else unit_partition(grid)
    losses = [side_losses(deal(points, seed), partition) for seed in SEEDS]
    alone, decoded, both = (float(np.mean([loss[i] for loss in losses])) for i in range(3))
    turned = sum(loss[3] for loss in losses)
    changes = (f"{100 * (decoded / alone - 1):+.1f} %", f"{100 * (both / alone - 1):+.1f} %")
    return (name, size, f"{alone:.3f}", f"{decoded:.3f}", f"{both:.3f}", *changes, f"{turned} of {2 * len(SEEDS)}")


NOTES = f"""\
{HOLDERS} holders, columns dealt at random by the seeds {SEEDS}, k = {K}; means over seeds and holders. Adult is left
out (mostly categories) and so is BMS1 (sets).

Agreement: {ROUNDS} rounds at radius {RADIUS} on maps of about 5 sqrt(N) units; a candidate is kept if its
Davies-Bouldin index falls. *lead*: maps started from the first holder's activations; *alone*: trained independently.
The controls are as many plain passes at the same radius, with the same gate and without.

Side information: loss (100 SSE/SST) of the final groups with true means. *decode* corrects codes after all are
published; *all* also lets holders publish in turn where their own loss says so; the last column counts how often.
*5 sqrt(N)* are whole units; *cells of k* are units split into cells of k to 2k-1, the default of `best`."""


def main() -> None:
    """Measure both forms of collaboration on every table that is there."""
    found = {name: points for name in TABLES if (points := read(name)) is not None}
    agreement = [agreement_row(name, points, way) for name, points in found.items() for way in (False, True)]
    sizes = ("8", "16", "5 sqrt(N)", "cells of k")
    side = [side_row(name, points, size) for name, points in found.items() for size in sizes]
    head = ("table", "maps", "kept", "before", "gated", "not gated", "plain, gated", "plain, not gated")
    losses = ("table", "units", "none", "decode", "all", "decode, change", "all, change", "in turn")
    page(
        "collaboration",
        "Collaboration: agreement under the gate, and side information",
        [
            "## Agreement: candidates kept, and mean Davies-Bouldin",
            table(head, agreement),
            "## Side information: loss of the final groups",
            table(losses, side),
        ],
        NOTES,
    )


if __name__ == "__main__":
    main()
