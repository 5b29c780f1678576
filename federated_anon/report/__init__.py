"""Reports people look at: one self-contained HTML file per result, drawn from its data alone.

``page(title, sections)`` and ``figure(...)`` serve every page of the product; ``run_page`` is the report of a run.
"""

from federated_anon.report.drawing import canvas_figure, figure
from federated_anon.report.page import Figure, Finding, Listing, Prose, Section, Table, Tile, Verdict, page

__all__ = [
    "Figure",
    "Finding",
    "Listing",
    "Prose",
    "Section",
    "Table",
    "Tile",
    "Verdict",
    "canvas_figure",
    "figure",
    "page",
]
