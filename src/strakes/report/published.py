"""Published values and the values of this run, for the report of a reproduction."""

from __future__ import annotations

from dataclasses import dataclass

from strakes.base.language import gettext
from strakes.model.literature_sources import SOURCES, Source
from strakes.model.literature_tables import beside, scale, statements
from strakes.model.portrait import Portrait
from strakes.report.numbers import show, show_interval
from strakes.report.sources import SOURCES as PAPERS


@dataclass(frozen=True)
class Value:
    """A published value, and our values at the same place of the figure: name, median, interval."""

    figure: str
    at: str
    label: str
    theirs: str
    ours: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Published:
    """The parts of a source that this run reproduces. ``left_out``: other parts, with the reasons."""

    source: str
    paper: str
    scale: tuple[tuple[str, str, str], ...]
    values: tuple[Value, ...]
    statements: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]


def published(portrait: Portrait) -> Published | None:
    """Return the published values for a reproduction, or None for another run."""
    source = _source_of(portrait)
    if source is None:
        return None
    named = gettext("{source}, published: {what}", source=source.name, what="")
    values = tuple(
        Value(
            value.figure,
            value.at,
            value.label.removeprefix(named),
            show(value.published, value.unit),
            tuple((name, show(cell.median, cell.unit), show_interval(cell)) for name, cell in value.own),
        )
        for value in beside(portrait, source.name)
    )
    left_out = tuple(
        (gettext(omission.what), gettext(omission.why))
        for omission in source.left_out(against="against" in portrait.target)
    )
    return Published(
        source.name,
        gettext(PAPERS[source.name]),
        scale(source, [portrait]),
        values,
        statements(portrait, source.name),
        left_out,
    )


def _source_of(portrait: Portrait) -> Source | None:
    if portrait.run.get("kind") != "reproduce":
        return None
    return SOURCES.get(str(portrait.run.get("name", "")).partition(" ")[0])
