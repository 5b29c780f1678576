"""Pictures of how holders worked together: maps and gated rounds in open exposure, levels of splits in sealed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from federated_anon.report.charts import heat, short
from federated_anon.report.drawing import GREEN, MEDIUM, PARTIES, SOFT, canvas_figure, figure
from federated_anon.report.page import Figure, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

Report = Mapping[str, Any]


def map_of(
    number: int, holder: str, facts: Mapping[str, Any], profile: Mapping[str, Any] | None, k: int
) -> Figure | None:
    """A holder's map: how far units lie apart, and how many records each has."""
    rows, cols = facts["grid"]
    if len(facts["hits"]) != rows * cols:
        return None
    hits = np.array(facts["hits"], dtype=float).reshape(rows, cols)
    heights = list(profile["heights"]) if profile else []
    told = len(heights) == rows * cols
    walls = (
        np.array([np.nan if one is None else one for one in heights], dtype=float).reshape(rows, cols) if told else None
    )

    def draw(canvas: Canvas) -> None:
        panels = canvas.subplots(1, 2 if told else 1, squeeze=False)[0]
        sides = [(np.where(hits > 0, hits, np.nan), "hits", "cividis_r")]
        sides = ([(walls, "U-matrix", "cividis")] if walls is not None else []) + sides
        for axes, (values, head, colours) in zip(panels, sides, strict=True):
            shown = axes.pcolormesh(np.ma.masked_invalid(values), cmap=colours)
            canvas.colorbar(shown, ax=axes, shrink=0.8, aspect=14).outline.set_visible(False)
            axes.set_title(head, color=SOFT)
            axes.set_aspect("equal")
            axes.set_xticks([])
            axes.set_yticks([])
            axes.grid(False)

    full = int((hits > 0).sum())
    says = (
        f"{full} of {rows * cols} units hold people, each at least {k}; white ones are empty or below k and not told. "
    )
    says += f"Davies-Bouldin {facts['davies_bouldin']:.3g}." + (
        " Light ridges in the U-matrix part clusters." if told else ""
    )
    counted = np.unique(hits[hits > 0].astype(int), return_counts=True)
    table = Table(
        ("records in a unit", "units"), tuple((int(size), int(count)) for size, count in zip(*counted, strict=True))
    )
    return canvas_figure(f"map-{number}", f"Map of {holder}", says, draw, table, size=(MEDIUM[0], 2.4))


def rounds(report: Report) -> Figure | None:
    """Davies-Bouldin per round, with steps that the gate kept and refused."""
    told, holders = report["rounds"], list(report["holders"])
    if not told:
        return None

    def draw(axes: Axes) -> None:
        for number, holder in enumerate(holders):
            own = [one for one in told if one["holder"] == holder]
            colour = PARTIES[number % len(PARTIES)]
            path = (
                [own[0]["before"], *(o["after"] if o["verdict"] == "keep" else o["before"] for o in own)] if own else []
            )
            axes.plot(range(len(path)), path, color=colour, label=short(holder), zorder=2)
            for one in own:
                is_kept = one["verdict"] == "keep"
                if math.isfinite(one["after"]):
                    axes.plot(
                        one["round"] + 1,
                        one["after"],
                        marker="o" if is_kept else "x",
                        color=colour,
                        markersize=7,
                        linestyle="none",
                        zorder=3,
                    )
        axes.set_xlabel("round (● kept, × refused)")
        axes.set_ylabel("Davies-Bouldin, lower is better")
        axes.set_xticks(range(1 + max(one["round"] for one in told) + 1))
        axes.legend(loc="best")

    kept = sum(one["verdict"] == "keep" for one in told)
    says = f"{kept} of {len(told)} proposed steps were kept: only those that lower the index and harm no holder's map."
    rows = tuple(
        (
            o["round"] + 1,
            o["holder"],
            f"{o['before']:.4g}",
            f"{o['after']:.4g}",
            "kept" if o["verdict"] == "keep" else "refused",
        )
        for o in told
    )
    return figure(
        "rounds",
        "Collaboration, round by round",
        says,
        draw,
        Table(("round", "holder", "before", "after", "verdict"), rows),
    )


def links(report: Report) -> Figure | None:
    """How strongly each holder listened to each other one in the last round."""
    told, holders = report["rounds"], list(report["holders"])
    if not told or len(holders) < 2:
        return None
    last = max(one["round"] for one in told)
    strengths = np.full((len(holders), len(holders)), np.nan)
    for one in told:
        if one["round"] == last:
            row = holders.index(one["holder"])
            strengths[row, [n for n in range(len(holders)) if n != row]] = one["strengths"]
    most = float(np.nanmax(strengths, initial=0.0))

    def draw(axes: Axes) -> None:
        heat(axes, strengths, holders, holders, cmap="cividis", vmin=0.0, vmax=max(most, 1e-9))
        axes.set_xlabel("to the map of")

    listens, to = (int(n) for n in np.unravel_index(int(np.nanargmax(strengths)), strengths.shape))
    says = (
        f"The strongest link of the last round: {holders[listens]} listens to {holders[to]} ({most:.2f}). 0 is no link."
    )
    rows = tuple(
        (a, b, f"{strengths[i, j]:.3f}") for i, a in enumerate(holders) for j, b in enumerate(holders) if i != j
    )
    return figure("links", "Link strengths", says, draw, Table(("holder", "listens to", "strength"), rows))


def splits(report: Report) -> Figure | None:
    """Sealed: who split how many groups, level by level."""
    levels, holders = report["levels"], list(report["holders"])
    if not levels:
        return None

    def draw(axes: Axes) -> None:
        base = np.zeros(len(levels))
        for number, holder in enumerate(holders):
            won = np.array([level[holder] for level in levels], dtype=float)
            axes.bar(
                range(1, len(levels) + 1), won, bottom=base, color=PARTIES[number % len(PARTIES)], label=short(holder)
            )
            base += won
        axes.set_xlabel("level")
        axes.set_ylabel("groups split")
        axes.legend(loc="upper right")

    totals = {holder: sum(level[holder] for level in levels) for holder in holders}
    most = max(totals, key=lambda name: totals[name])
    says = f"{len(levels)} levels, {sum(totals.values()):,} splits won; {most} won most ({totals[most]:,}): "
    says += "its columns tell people apart best."
    rows = tuple((n + 1, *(level[holder] for holder in holders)) for n, level in enumerate(levels))
    return figure("splits", "Levels of splits", says, draw, Table(("level", *holders), rows))


def bytes_told(by_step: Mapping[str, Mapping[str, int]], size: Any) -> Figure:
    """What left each holder, by step, from the ledgers."""
    holders = list(by_step)
    steps = list(dict.fromkeys(step for told in by_step.values() for step in told))
    largest = sorted(steps, key=lambda step: -sum(told.get(step, 0) for told in by_step.values()))[:5]
    colours = dict(zip(largest, (PARTIES[0], PARTIES[1], GREEN, PARTIES[3], PARTIES[4]), strict=False))

    def draw(axes: Axes) -> None:
        for place, holder in enumerate(holders[::-1]):
            left = 0.0
            told = by_step[holder]
            parts = [(s, told.get(s, 0)) for s in largest] + [
                ("other", sum(v for s, v in told.items() if s not in largest))
            ]
            for step, count in parts:
                axes.barh(
                    place,
                    count / 1000,
                    left=left,
                    color=colours.get(step, "#c3cad3"),
                    height=0.6,
                    label=step if place == 0 else None,
                )
                left += count / 1000
        axes.set_yticks(range(len(holders)), [short(name) for name in holders[::-1]])
        axes.set_xlabel("kB sent")
        axes.grid(False)
        axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.22), ncols=3, handlelength=0.9, columnspacing=1.0)

    most = max(holders, key=lambda name: sum(by_step[name].values()))
    says = (
        f"All that left each holder, from the ledger it signed; {most} sent most, {size(sum(by_step[most].values()))}."
    )
    rows = tuple((step, *(size(by_step[holder].get(step, 0)) for holder in holders)) for step in steps)
    return figure(
        "bytes", "Bytes that left each holder", says, draw, Table(("step", *holders), rows), size=(MEDIUM[0], 3.0)
    )
