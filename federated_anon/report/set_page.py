"""Pages of a run on set-valued data: one for publication from what is published, one that needs the original."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from federated_anon.report.drawing import BLUE, INK, ORANGE, PALE, SOFT, figure
from federated_anon.report.page import Block, Figure, Finding, Listing, Section, Table, Tile, Verdict, page

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Report = Mapping[str, Any]
MOST_BARS, MOST_ROWS = 30, 200


def set_page(report: Report) -> str:
    """The page for publication: sizes of clusters and chunks, supports and pairs as published."""
    settings = report["settings"]
    sizes = Section(
        "Clusters and chunks",
        "clusters",
        "People are clustered; in a cluster items are parted into chunks, and every combination of up to m items of a "
        "chunk occurs at least k times.",
        tuple(_sizes(report)),
    )
    table = report.get("reassociated")
    supports = Section("What is published", "published", "", (_supports(report["supports"]), *_pairs(table)))
    rows = tuple((name, str(value)) for name, value in settings.items() if value is not None)
    how = Section(
        "Settings",
        "settings",
        "The same input gives the same bytes.",
        (Listing("", Table(("setting", "value"), rows)),),
    )
    return page("Report of a disassociation", [sizes, supports, how], verdict=_verdict(report))


def private_page(private: Report) -> str:
    """The page that needs the original to be known; not for publication."""
    blocks: list[Block] = [_before_after(private["supports_before"], private["supports_after"])]
    if private.get("pairs"):
        blocks.append(_rank_plot(private["pairs"]))
    kept = 100 * float(private["items_kept"])
    verdict = Verdict(
        "note",
        "Not for publication: this page is made from the original.",
        (Tile("Occurrences kept", f"{kept:.1f} %", f"of {private['occurrences']:,}"),),
    )
    return page("What was lost", [Section("Supports before and after", "supports", "", tuple(blocks))], verdict=verdict)


def _verdict(report: Report) -> Verdict:
    settings, people = report["settings"], report["people"]
    open_to_cover = report["clusters_open_to_cover_problem"]
    smallest = min((int(size) for size in report["cluster_sizes"]), default=0)
    rare = (report.get("reassociated") or {}).get("rare_combinations")
    findings = [
        Finding(
            "good",
            f"Whoever knows up to {settings['m']} items has at least {settings['k']} candidates in each chunk.",
        ),
        Finding("note", f"{open_to_cover:,} clusters are open to the cover problem: items may be tied to one person.")
        if open_to_cover
        else Finding("good", "No cluster is open to the cover problem."),
    ]
    if rare is not None:
        told = f"{rare:,} combinations of up to {settings['m']} items are rarer than k in the re-associated table."
        findings.append(Finding("note" if rare else "good", told))
    tiles = (
        Tile("People", f"{people:,}", f"in {report['clusters']:,} clusters"),
        Tile("Smallest cluster", str(smallest), f"k is {settings['k']}, m is {settings['m']}"),
        Tile("Occurrences published", f"{report['occurrences']:,}", f"of {len(report['supports']):,} items"),
    )
    steps = (
        "Check it: federated-anon verify RUN.",
        "Publish the files that manifest.json lists; keep the folder private/.",
    )
    return Verdict(
        "good", f"{people:,} people are published in {report['clusters']:,} clusters.", tiles, tuple(findings), steps
    )


def _sizes(report: Report) -> list[Figure]:
    asked = (
        ("cluster_sizes", "People per cluster", "clusters"),
        ("chunks_per_cluster", "Chunks per cluster", "clusters"),
        ("items_per_chunk", "Items per chunk", "chunks"),
        ("records_per_chunk", "Records per chunk", "chunks"),
    )
    return [_histogram(key, title, what, report[key]) for key, title, what in asked if report[key]]


def _histogram(name: str, title: str, what: str, counts: Mapping[str, int]) -> Figure:
    pairs = sorted((int(size), count) for size, count in counts.items())

    def draw(axes: Axes) -> None:
        axes.bar([size for size, _ in pairs], [count for _, count in pairs], color=BLUE, width=0.8)
        axes.set_xlabel(title.lower())
        axes.set_ylabel(what)
        axes.locator_params(axis="x", integer=True, nbins=8)

    most = max(pairs, key=lambda pair: pair[1])
    says = f"From {pairs[0][0]:,} to {pairs[-1][0]:,}; {most[0]:,} is most frequent ({most[1]:,} {what})."
    return figure(name.replace("_", "-"), title, says, draw, Table((title.lower(), what), tuple(pairs[:MOST_ROWS])))


def _supports(supports: Mapping[str, int]) -> Figure:
    ordered = sorted(supports.items(), key=lambda pair: (-pair[1], pair[0]))

    def draw(axes: Axes) -> None:
        axes.plot(range(1, len(ordered) + 1), [max(count, 0.5) for _, count in ordered], color=BLUE)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("rank of the item")
        axes.set_ylabel("occurrences published")

    unseen = sum(count == 0 for _, count in ordered)
    says = f"{len(ordered):,} items; {unseen:,} of them are published as terms alone, without a count."
    return figure(
        "supports", "Occurrences by rank", says, draw, Table(("item", "occurrences"), tuple(ordered[:MOST_ROWS]))
    )


def _pairs(table: Mapping[str, Any] | None) -> tuple[Listing, ...]:
    if not table or not table["top_pairs"]:
        return ()
    rows = tuple((" + ".join(map(str, one["items"])), one["support"]) for one in table["top_pairs"][:15])
    return (Listing("Most frequent pairs of the re-associated table", Table(("pair", "records"), rows), wide=False),)


def _before_after(before: Mapping[str, int], after: Mapping[str, int]) -> Figure:
    ordered = sorted(before.items(), key=lambda pair: (-pair[1], pair[0]))

    def draw(axes: Axes) -> None:
        places = range(1, len(ordered) + 1)
        axes.scatter(
            places, [max(after.get(name, 0), 0.5) for name, _ in ordered], s=6, color=BLUE, label="after", linewidths=0
        )
        axes.plot(places, [max(count, 0.5) for _, count in ordered], color=SOFT, label="before")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("rank of the item before")
        axes.set_ylabel("occurrences")
        axes.legend(loc="lower left", reverse=True)

    whole = sum(before.values())
    says = f"{100 * sum(after.values()) / max(whole, 1):.1f} % of the occurrences are still counted."
    rows = tuple((name, count, after.get(name, 0)) for name, count in ordered[:MOST_ROWS])
    return figure(
        "supports-before-after", "Occurrences before and after", says, draw, Table(("item", "before", "after"), rows)
    )


def _rank_plot(pairs: Any) -> Figure:
    shown = pairs[:MOST_BARS]

    def draw(axes: Axes) -> None:
        most = max(max(one["rank_before"], one["rank_after"]) for one in shown)
        axes.plot([1, most], [1, most], color=PALE, linewidth=1.5)
        axes.scatter(
            [o["rank_before"] for o in shown],
            [o["rank_after"] for o in shown],
            s=24,
            color=ORANGE,
            edgecolors=INK,
            linewidths=0.4,
        )
        axes.set_xlabel("rank of the pair before")
        axes.set_ylabel("rank after")

    same = sum(one["rank_before"] == one["rank_after"] for one in shown)
    says = f"Of the {len(shown)} most frequent pairs {same} keep their rank; on the line nothing changed."
    rows = tuple(
        (" + ".join(map(str, o["items"])), o["before"], o["after"], o["rank_before"], o["rank_after"]) for o in pairs
    )
    return figure(
        "ranks", "Ranks of pairs", says, draw, Table(("pair", "before", "after", "rank before", "rank after"), rows)
    )
