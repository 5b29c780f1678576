"""A profile as it travels: closed to whatever it does not know, and bounded."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from federated_anon.sections import Section

MOST_CORRELATED = 40
MOST_UNITS = 4096

Text = Annotated[str, Field(max_length=200)]
Share = Annotated[float, Field(ge=0, le=1)]
Row = Annotated[tuple[Annotated[float, Field(ge=-1, le=1)], ...], Field(max_length=MOST_CORRELATED)]
Rows = Annotated[tuple[Row, ...], Field(max_length=MOST_CORRELATED)]
People = Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(max_length=64)]


class ColumnProfile(Section):
    """One column: people per bin before and after, and how far it moved as a whole, in deviations."""

    name: str
    labels: Annotated[tuple[Text, ...], Field(min_length=1, max_length=64)]
    edges: Annotated[tuple[Text, ...], Field(max_length=64)]
    before: People
    after: People
    distance: Annotated[float, Field(ge=0)]


class Correlations(Section):
    """Correlations of the holder's own ordered columns, before and after."""

    names: Annotated[tuple[str, ...], Field(max_length=MOST_CORRELATED)]
    before: Rows
    after: Rows


class Linked(Section):
    """Share of people that somebody links who knows all of this holder's columns; with its 95 % interval."""

    value: Share
    low: Share
    high: Share


class Profile(Section):
    """All that a holder tells of its own columns; ``heights`` are of its map's units, row by row."""

    columns: tuple[ColumnProfile, ...]
    correlations: Correlations | None = None
    linked: Linked | None = None
    heights: Annotated[tuple[Annotated[float, Field(ge=0)] | None, ...], Field(max_length=MOST_UNITS)] = ()
