"""The critical-difference picture of Demšar (2006): methods on a line of mean ranks, bars over those alike."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from federated_anon.report.drawing import BLUE, INK, SOFT, STYLE
from federated_anon.utility.ranking import Ranking, cliques

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_ranks(axes: Axes, found: Ranking) -> None:
    """Best rank on the left; a bar joins methods whose ranks differ by less than the critical difference."""
    ordered = found.best_first
    count = len(ordered)
    half = (count + 1) // 2
    bars = cliques(found)
    bottom = -(len(bars) * 0.35 + half * 0.8 + 0.6)
    axes.set(xlim=(0.2, count + 0.8), ylim=(bottom, 1.6))
    axes.axis("off")
    axes.plot([1, count], [0, 0], color=INK, linewidth=1)
    for tick in range(1, count + 1):
        axes.plot([tick, tick], [0, 0.12], color=INK, linewidth=1)
        axes.text(tick, 0.2, str(tick), ha="center", va="bottom", color=SOFT, fontsize=8)
    for place, (name, mean) in enumerate(ordered):
        is_left = place < half
        level = -(len(bars) * 0.35 + 0.6 + 0.8 * (place if is_left else count - 1 - place))
        end = 0.75 if is_left else count + 0.25
        axes.plot([mean, mean, end], [0, level, level], color=INK, linewidth=0.8)
        told = f"{name}  {mean:.2f}" if is_left else f"{mean:.2f}  {name}"
        axes.text(end, level, told, ha="right" if is_left else "left", va="center", fontsize=8.5)
    means = dict(ordered)
    for number, run in enumerate(bars):
        height = -0.3 - 0.35 * number
        axes.plot([means[run[0]] - 0.05, means[run[-1]] + 0.05], [height, height], color=BLUE, linewidth=3.5)
    axes.plot([1, 1 + found.critical_difference], [1.0, 1.0], color=BLUE, linewidth=2)
    axes.text(1, 1.1, f"critical difference {found.critical_difference:.2f}", va="bottom", fontsize=8, color=SOFT)


def ranks_png(found: Ranking, title: str) -> bytes:
    """The picture as a PNG of its own."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    style: Any = {**STYLE, "figure.facecolor": "white", "savefig.facecolor": "white"}
    with mpl.rc_context(style):
        canvas = Figure(figsize=(8.4, 3.2), layout="constrained")
        FigureCanvasAgg(canvas)
        axes = canvas.subplots()
        axes.set_title(title, color=INK)
        draw_ranks(axes, found)
        sink = io.BytesIO()
        canvas.savefig(sink, format="png", dpi=130, metadata={"Software": None})
    return sink.getvalue()
