"""Pictures as SVG inside the page: the same data give the same bytes, and text stays text.

Colours are those of Okabe & Ito (2008), "Color Universal Design", told apart by readers with any colour vision.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from federated_anon.report.page import Figure, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7"
INK, SOFT, PALE = "#1f2a37", "#6b7785", "#c3cad3"
PARTIES = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION)
"""One colour per party, in the order of the roster; from the seventh on they come again."""

MEDIUM, SMALL, WIDE = (4.2, 2.75), (3.3, 1.9), (9.6, 3.0)
"""Sizes in inches; on a phone a medium picture fills the width and its text stays readable."""

STYLE: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "axes.edgecolor": PALE,
    "axes.labelcolor": SOFT,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.unicode_minus": True,
    "grid.color": "#e6e9ed",
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "lines.linewidth": 2.0,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.fonttype": "none",
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}

_REFERENCE = re.compile(r'(id="|href="#|url\(#)([A-Za-z][A-Za-z0-9_-]*)')
_GROUP = re.compile(r'<g id="[^"]*"')


def figure(
    name: str,
    title: str,
    says: str,
    draw: Callable[[Axes], None],
    table: Table,
    *,
    size: tuple[float, float] = MEDIUM,
    wide: bool = False,
) -> Figure:
    """A picture of one pair of axes; ``name`` must be the only one of its kind on the page."""

    def on_canvas(canvas: Canvas) -> None:
        draw(canvas.subplots())

    return canvas_figure(name, title, says, on_canvas, table, size=size, wide=wide)


def canvas_figure(
    name: str,
    title: str,
    says: str,
    draw: Callable[[Canvas], None],
    table: Table,
    *,
    size: tuple[float, float] = MEDIUM,
    wide: bool = False,
) -> Figure:
    """A picture for which ``draw`` lays out the axes itself."""
    return Figure(title, says, drawn(name, f"{title}. {says}", draw, size), table, wide)


def drawn(name: str, label: str, draw: Callable[[Canvas], None], size: tuple[float, float]) -> Markup:
    """The SVG of a picture, with ids that no other picture of the page has, and no date in it."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    style: Any = {**STYLE, "svg.hashsalt": name}
    with matplotlib.rc_context(style):
        canvas = Canvas(figsize=size, layout="constrained")
        draw(canvas)
        sink = io.StringIO()
        canvas.savefig(sink, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return Markup(_embedded(sink.getvalue(), name, label))


def _embedded(svg: str, name: str, label: str) -> str:
    """An SVG file as a part of a page: without its head, its size left to the page, its ids its own."""
    body = svg[svg.index("<svg") :]
    start, rest = body.split(">", 1)
    box = re.search(r'viewBox="([^"]*)"', start)
    rest = re.sub(r"<metadata>.*?</metadata>", "", rest, flags=re.S)
    rest = _REFERENCE.sub(rf"\g<1>{name}-\g<2>", _GROUP.sub("<g", rest))
    view = box.group(1) if box else "0 0 1 1"
    return f'<svg viewBox="{view}" role="img" aria-label="{escape(label)}">{rest.strip()}'
