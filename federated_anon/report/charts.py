"""The pictures of a run, each from plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from federated_anon.report.drawing import (
    BLUE,
    INK,
    MEDIUM,
    ORANGE,
    PALE,
    PARTIES,
    SMALL,
    SOFT,
    VERMILION,
    canvas_figure,
    figure,
)
from federated_anon.report.page import Figure, Table
from federated_anon.report.verdict import at_most_linked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

Report = Mapping[str, Any]
LONGEST = 16


def short(text: str, longest: int = LONGEST) -> str:
    """A name cut to what fits beside an axis; a dollar sign is no formula."""
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return cut.replace("$", r"\$")


def percent(value: float | None, digits: int = 1) -> str:
    """A share in percent, or a dash."""
    return "–" if value is None else f"{value:.{digits}f} %"


def beside(axes: Axes, end: float, place: float, text: str) -> None:
    """A figure beside the end of a lying bar."""
    axes.annotate(text, (end, place), (4, 0), textcoords="offset points", va="center", fontsize=8, color=SOFT)


def loss_against_k(report: Report) -> Figure:
    """What was lost at the chosen k, and what larger groups would lose."""
    curve = report["loss_by_k"]
    at = [one["k"] for one in curve]
    lost = [one["loss_percent"] for one in curve]

    def draw(axes: Axes) -> None:
        axes.plot(at, lost, color=BLUE, marker="o", markersize=4, markerfacecolor="white")
        axes.plot(at[:1], lost[:1], color=ORANGE, marker="o", markersize=9, linestyle="none", zorder=3)
        axes.annotate(
            f"this release: {lost[0]:.1f} %",
            (at[0], lost[0]),
            (12, -3),
            textcoords="offset points",
            color=INK,
            fontsize=8,
        )
        axes.set_ylim(0, max(100.0, 1.05 * max(lost)) if max(lost) > 60 else 1.25 * max(max(lost), 1.0))
        axes.set_xlim(0, 1.12 * max(at) + 1)
        axes.set_xlabel("people per group at least (k)")
        axes.set_ylabel("information lost, %")

    says = f"At k = {at[0]} this release lost {lost[0]:.1f} % of the variance."
    if len(curve) > 1:
        says += (
            f" Its groups joined to {at[-1]} people would lose about {lost[-1]:.0f} %. A study run at that k finds"
            " better groups, so the curve is an upper estimate; it comes from the release, no holder was asked again."
        )
    rows = tuple(
        (k, percent(value), "this release" if n == 0 else "groups joined")
        for n, (k, value) in enumerate(zip(at, lost, strict=True))
    )
    return figure("loss-by-k", "Information loss against k", says, draw, Table(("k", "lost", "how"), rows))


def loss_by_column(report: Report) -> Figure | None:
    """Which columns lost how much."""
    measured = [c for c in report["columns"] if c["information_loss_percent"] is not None]
    if not measured:
        return None
    ordered = sorted(measured, key=lambda c: -c["information_loss_percent"])
    shown = ordered[:14][::-1]
    holders = list(report["holders"])

    def draw(axes: Axes) -> None:
        values = [c["information_loss_percent"] for c in shown]
        colours = [PARTIES[holders.index(c["holder"]) % len(PARTIES)] for c in shown]
        axes.barh(range(len(shown)), values, color=colours, height=0.62)
        for place, value in enumerate(values):
            beside(axes, value, place, f"{value:.1f}")
        axes.set_yticks(range(len(shown)), [short(c["name"]) for c in shown])
        axes.set_xlim(0, 1.15 * max(*values, 1.0))
        axes.grid(False)
        axes.spines["bottom"].set_visible(False)
        axes.set_xticks([])
        _legend(axes, holders)

    worst, least = ordered[0], ordered[-1]
    says = f"{worst['name']} lost most ({worst['information_loss_percent']:.1f} %), {least['name']} least."
    rows = tuple((c["name"], c["holder"], c["kind"], percent(c["information_loss_percent"])) for c in ordered)
    size = (MEDIUM[0], max(MEDIUM[1], 0.21 * len(shown) + 0.7))
    return figure(
        "loss-by-column", "Loss per column, %", says, draw, Table(("column", "holder", "type", "lost"), rows), size=size
    )


def _legend(axes: Axes, holders: Sequence[str]) -> None:
    """Colours of the holders, by name."""
    from matplotlib.patches import Patch

    keys = [Patch(color=PARTIES[n % len(PARTIES)], label=short(name)) for n, name in enumerate(holders[:6])]
    if len(holders) > 1:
        axes.legend(handles=keys, loc="lower right", handlelength=0.9, handleheight=0.9)


def column_change(name: str, holder: str, profile: Mapping[str, Any], number: int) -> Figure:
    """One column before and after, in shares of people."""
    labels, edges = profile["labels"], profile["edges"]
    before, after = (np.array(profile[side]) / max(sum(profile[side]), 1) * 100 for side in ("before", "after"))

    def draw(axes: Axes) -> None:
        places = np.arange(len(labels))
        axes.bar(places, before, width=0.86, color=PALE, label="before")
        axes.hlines(after, places - 0.43, places + 0.43, color=BLUE, linewidth=2.2, label="after")
        if edges and len(edges) > 0:
            step = -(-len(edges) // 4)
            axes.set_xticks(np.arange(len(edges))[::step] + 0.5, [str(edge) for edge in edges][::step])
        else:
            many = len(labels) > 3
            axes.set_xticks(places, [short(label, 11) for label in labels])
            axes.tick_params("x", rotation=35 if many else 0, labelsize=7 if many else 8)
            for tick in axes.get_xticklabels():
                tick.set_horizontalalignment("right" if many else "center")
        axes.set_ylim(0, 1.22 * max(*before, *after, 1.0))
        axes.set_ylabel("% of people")
        axes.legend(loc="upper right", ncols=2, handlelength=1.0, columnspacing=1.0, borderaxespad=0.0, reverse=True)

    most = int(np.argmax(np.abs(after - before)))
    says = f"Held by {holder}. Moved by {profile['distance']:.2g} deviations (EMD); "
    says += f"most at {labels[most]}: {before[most]:.0f} to {after[most]:.0f} %."
    rows = tuple(
        (label, b, a, f"{y - x:+.1f} %")
        for label, b, a, x, y in zip(labels, profile["before"], profile["after"], before, after, strict=True)
    )
    table = Table(("values", "people before", "people after", "change"), rows)
    return figure(f"column-{number}", name, says, draw, table, size=SMALL)


def heat(axes: Axes, values: np.ndarray, names: Sequence[str], across: Sequence[str], **options: Any) -> None:
    """A matrix as coloured squares, with its figures where there is room."""
    axes.pcolormesh(np.ma.masked_invalid(values), edgecolors="white", linewidth=0.8, **options)
    axes.set_xticks(np.arange(len(across)) + 0.5, [short(name, 11) for name in across], rotation=40, ha="right")
    axes.set_yticks(np.arange(len(names)) + 0.5, [short(name, 13) for name in names])
    axes.set_ylim(len(names), 0)
    axes.grid(False)
    for side in axes.spines.values():
        side.set_visible(False)
    if values.size <= 64:
        low, high = options["vmin"], options["vmax"]
        for (row, column), value in np.ndenumerate(values):
            if np.isfinite(value):
                dark = abs((value - low) / (high - low) - 0.5) > 0.33 if low < 0 else (value - low) / (high - low) < 0.5
                axes.text(
                    column + 0.5,
                    row + 0.5,
                    f"{value:.2f}".replace("-0.00", "0.00"),
                    ha="center",
                    va="center",
                    fontsize=7,
                    color="white" if dark else INK,
                )


def correlations(title: str, name: str, told: Mapping[str, Any], whose: str) -> Figure:
    """Correlations before, after, and what changed."""
    names = list(told["names"])
    before, after = np.array(told["before"], dtype=float), np.array(told["after"], dtype=float)
    change = np.abs(after - before)

    def draw(canvas: Canvas) -> None:
        left, right = canvas.subplots(1, 2, sharey=True)
        for axes, values, head in ((left, before, "before"), (right, after, "after")):
            heat(axes, values, names, names, cmap="RdBu_r", vmin=-1, vmax=1)
            axes.set_title(head, color=SOFT)

    first, second = np.unravel_index(int(np.argmax(np.triu(change, 1))), change.shape)
    pairs = np.triu_indices(len(names), 1)
    says = f"{whose} Pairs changed by {change[pairs].mean():.2f} on average"
    says += f", most {names[first]} with {names[second]}: {before[first, second]:.2f} to {after[first, second]:.2f}."
    rows = tuple(
        (names[i], names[j], f"{before[i, j]:.2f}", f"{after[i, j]:.2f}", f"{after[i, j] - before[i, j]:+.2f}")
        for i, j in zip(*pairs, strict=True)
    )
    height = 1.5 + 0.2 * max(len(names), 4)
    return canvas_figure(
        name,
        title,
        says,
        draw,
        Table(("column", "with", "before", "after", "change"), rows),
        size=(MEDIUM[0], min(height, 6.0)),
    )


def components(name: str, holder: str, told: Mapping[str, Any]) -> Figure:
    """How much of the variance of a holder's columns each principal component carries, before and after."""
    shares = [np.sort(np.linalg.eigvalsh(np.array(told[side], dtype=float)))[::-1] for side in ("before", "after")]
    before, after = (100 * np.clip(one, 0, None) / max(np.clip(one, 0, None).sum(), 1e-9) for one in shares)

    def draw(axes: Axes) -> None:
        places = np.arange(len(before))
        axes.bar(places, before, width=0.7, color=PALE, label="before")
        axes.plot(places, after, color=BLUE, marker="o", markersize=5, label="after")
        axes.set_xticks(places, [str(place + 1) for place in places])
        axes.set_xlabel("principal component")
        axes.set_ylabel("% of variance")
        axes.set_ylim(0, 1.15 * max(*before, *after))
        axes.legend(loc="upper right", reverse=True)

    says = f"The first component of {holder}'s columns carries {before[0]:.0f} % before and {after[0]:.0f} % after."
    rows = tuple(
        (n + 1, percent(float(b)), percent(float(a))) for n, (b, a) in enumerate(zip(before, after, strict=True))
    )
    return figure(name, f"Principal components: {holder}", says, draw, Table(("component", "before", "after"), rows))


def principal_plane(told: Mapping[str, Any]) -> Figure:
    """Simulated people before and after on the two main directions of the originals."""
    before, after = np.array(told["before"]), np.array(told["after"])

    def draw(canvas: Canvas) -> None:
        left, right = canvas.subplots(1, 2, sharex=True, sharey=True)
        for axes, points, colour, head in ((left, before, SOFT, "before"), (right, after, BLUE, "after")):
            axes.scatter(points[:, 0], points[:, 1], s=5, color=colour, alpha=0.45, linewidths=0)
            axes.set_title(head, color=SOFT)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.grid(False)
        canvas.supxlabel("first component", fontsize=8, color=SOFT)
        left.set_ylabel("second component")

    spread = [100 * now / max(once, 1e-12) for once, now in told["variance"]]
    says = (
        f"On the two main directions of the originals ({told['explained']:.0f} % of the variance) the release keeps "
        f"{spread[0]:.0f} % and {spread[1]:.0f} % of it. A sample of {len(before)} people; a group is one point."
    )
    rows = tuple((name, *pair) for name, pair in zip(("first", "second"), told["variance"], strict=True))
    return canvas_figure(
        "pca",
        "Principal plane",
        says,
        draw,
        Table(("component", "variance before", "variance after"), rows),
        size=(MEDIUM[0], 2.8),
    )


def linkage(report: Report) -> Figure:
    """Attacks by what is known, against the line that k draws."""
    bound, people = 100 / report["k"], max(report["records"], 1)
    bars: list[tuple[str, float, tuple[float, float] | None]] = [("guessing", 100 / people, None)]
    for name, profile in report["profiles"].items():
        if profile and profile["linked"]:
            linked = profile["linked"]
            bars.append((f"knows {name}'s columns", 100 * linked["value"], (100 * linked["low"], 100 * linked["high"])))
    bars.append(("knows all columns, at most", 100 * at_most_linked(report), None))
    coordinator = 100 * report["coordinator_view_linkage"]

    def draw(axes: Axes) -> None:
        for place, (_, value, interval) in enumerate(bars[::-1]):
            axes.barh(place, value, color=BLUE, height=0.55)
            if interval:
                axes.hlines(place, *interval, color=INK, linewidth=1.2)
            end, text = max(value, interval[1] if interval else 0), f"{value:.1f}" if value >= 0.1 else f"{value:.2g}"
            if value > 0.75 * bound:
                axes.text(value * 0.98, place, text, ha="right", va="center", fontsize=8, color="white")
            else:
                beside(axes, end, place, text)
        axes.axvline(bound, color=VERMILION, linewidth=1.6)
        axes.text(bound, len(bars) - 0.45, f"1/k = {bound:.3g} % ", ha="right", color=VERMILION, fontsize=8)
        axes.set_yticks(range(len(bars)), [short(name, 28) for name, _, _ in bars[::-1]])
        axes.set_xlim(0, 1.2 * bound)
        axes.set_ylim(-0.6, len(bars) - 0.1)
        axes.set_xlabel("% of people linked to their record")
        axes.grid(False)

    says = f"No attack on the release passes 1/k = {bound:.3g} %. "
    says += (
        "The coordinator's own view of the groups links no more than that."
        if coordinator <= bound + 1e-9
        else "The coordinator sees more than a reader: with the holders' data beside the cell indices it would link "
        f"{coordinator:.0f} %."
    )
    rows = tuple(
        (name, percent(value, 2), f"{low_high[0]:.1f} to {low_high[1]:.1f}" if low_high else "")
        for name, value, low_high in bars
    )
    rows += (("the coordinator's view", percent(coordinator, 2), ""), ("promised: 1/k", percent(bound, 2), ""))
    return figure("linkage", "Linkage risk against 1/k", says, draw, Table(("who", "linked", "95 % interval"), rows))


def group_sizes(report: Report) -> Figure:
    """How many people share one published row."""
    sizes = report["class_sizes"]
    by_people = [(size, size * number) for size, number in sizes]
    shown = by_people[:24]
    rest = sum(people for _, people in by_people[24:])

    def draw(axes: Axes) -> None:
        names = [str(size) for size, _ in shown] + (["more"] if rest else [])
        values = [people for _, people in shown] + ([rest] if rest else [])
        axes.bar(range(len(values)), values, color=BLUE, width=0.75)
        step = -(-len(names) // 12)
        axes.set_xticks(range(0, len(names), step), names[::step])
        axes.set_xlabel("records alike in every quasi-identifier")
        axes.set_ylabel("people")

    total = sum(people for _, people in by_people)
    smallest = 100 * by_people[0][1] / max(total, 1)
    says = f"{sum(n for _, n in sizes):,} groups of {sizes[0][0]} to {sizes[-1][0]:,} people; "
    says += f"{smallest:.0f} % of people are in the smallest ones."
    rows = tuple((size, number, size * number) for size, number in sizes)
    return figure("group-sizes", "How many are alike", says, draw, Table(("size", "groups", "people"), rows))
