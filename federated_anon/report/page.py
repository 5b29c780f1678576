"""A page: sections of sentences, pictures and tables in one HTML file that asks the network for nothing.

``page(title, sections)`` gives the whole file. Everything that comes from outside is escaped; only pictures drawn by
``figure`` enter as they are.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import jinja2
from markupsafe import Markup

TEMPLATES = Path(__file__).parent / "templates"
Tone: TypeAlias = Literal["good", "note", "bad"]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns; figures stand to the right."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Per column: does it hold figures only (a dash stands for one that is not there)?"""
        return tuple(
            bool(self.rows) and all(_is_figure(row[place]) for row in self.rows) for place in range(len(self.columns))
        )


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture, a sentence that says what to see in it, and the table behind it."""

    title: str
    says: str
    picture: Markup
    table: Table
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Prose:
    """Paragraphs."""

    paragraphs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """A table in plain sight."""

    title: str
    table: Table
    wide: bool = True


Block: TypeAlias = Figure | Prose | Listing


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page under its own heading; ``anchor`` names it in the list of contents."""

    title: str
    anchor: str
    intro: str
    blocks: tuple[Block, ...]
    small: bool = False
    """Whether its pictures are small ones, many to a row."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a verdict, and whether it is good news."""

    tone: Tone
    text: str


@dataclass(frozen=True, slots=True)
class Tile:
    """A figure that everybody asks for first."""

    label: str
    value: str
    note: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What stands on top: one sentence, a few figures, findings, and what to do next."""

    tone: Tone
    headline: str
    tiles: tuple[Tile, ...] = ()
    findings: tuple[Finding, ...] = ()
    next_steps: tuple[str, ...] = ()


def page(
    title: str,
    sections: Sequence[Section],
    *,
    verdict: Verdict | None = None,
    subtitle: str = "",
    footer: str = "",
) -> str:
    """The whole HTML file; the same input gives the same bytes."""
    style = Markup((TEMPLATES / "style.css").read_text(encoding="utf-8"))
    return (
        _environment()
        .get_template("page.html")
        .render(title=title, subtitle=subtitle, verdict=verdict, sections=sections, footer=footer, style=style)
    )


def without_pictures(text: str) -> str:
    """A page with each of its pictures taken out, for comparison."""
    return re.sub(r"<svg.*?</svg>", "<svg></svg>", text, flags=re.S)


@functools.cache
def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    made.tests["figure"] = lambda block: isinstance(block, Figure)
    made.tests["prose"] = lambda block: isinstance(block, Prose)
    return made


def _is_figure(value: Any) -> bool:
    """Whether a cell reads as a number, with a sign, a unit of percent or bytes, or none at all."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return True
    text = str(value)
    first, _, unit = text.partition(" ")
    plain = first.replace(",", "").removesuffix("%").lstrip("+-−<")
    return text in ("", "–") or (
        plain.replace(".", "", 1).isdigit() and unit in ("", "%", "bytes", "KiB", "MiB", "GiB")
    )
