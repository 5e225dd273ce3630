"""The portrait by study: figures, findings, warnings and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from strakes.base.language import gettext
from strakes.model.literature import SOURCES
from strakes.model.portrait import CellEstimate, Figure, Finding, Portrait, Reference
from strakes.report.axes import band, x_axis
from strakes.report.figures import Drawing, draw
from strakes.report.notices import Notice, Omission, omissions, touching
from strakes.report.numbers import show_bounds, show_interval_of
from strakes.report.servers import ServerTable, server_table
from strakes.report.tables import CellTable, tables_of

VERDICTS: Mapping[str, str] = {"does-not": "does not hold"} | {
    verdict: verdict for verdict in ("measured", "holds", "forecast", "inconclusive", "unknown")
}


@dataclass(frozen=True)
class Statement:
    """A finding as text. ``bounds``: only the ends of its interval."""

    verdict: str
    badge: str
    text: str
    bounds: str
    interval: str
    needs: str
    study: str
    tone: str


@dataclass(frozen=True)
class PublishedText:
    """A published result, beginning with the name of its source. ``drawn``: its marks in the figure."""

    text: str
    drawn: Literal["", "hatched", "marks"]


@dataclass(frozen=True)
class Plot:
    """A figure with its texts. ``computed``: texts on lines fitted to its points.

    ``hollow``: some markers are hollow because of a warning.
    """

    number: int
    title: str
    question: str
    drawing: Drawing | None
    published: tuple[PublishedText, ...]
    computed: tuple[str, ...]
    notices: tuple[Notice, ...]
    hollow: bool


@dataclass(frozen=True)
class Section:
    """All parts of the report on one study."""

    study: str
    plots: tuple[Plot, ...]
    statements: tuple[Statement, ...]
    notices: tuple[Notice, ...]
    omissions: tuple[Omission, ...]
    tables: tuple[CellTable, ...]
    servers: ServerTable | None = None


def sections(portrait: Portrait) -> tuple[Section, ...]:
    """Return a section for each study with content. Figures are numbered across studies."""
    kinds = (portrait.figures, portrait.cells, portrait.findings, portrait.skipped)
    studies = list(dict.fromkeys(member.study for kind in kinds for member in kind))
    figures = sorted(portrait.figures, key=lambda figure: studies.index(figure.study))
    numbers = {id(figure): number for number, figure in enumerate(figures, start=1)}
    return tuple(_section(portrait, study, numbers) for study in studies)


def statement(finding: Finding) -> Statement:
    """Return a finding as text."""
    bounds, interval = "", ""
    if finding.interval is not None:
        bounds, interval = show_bounds(finding.interval), show_interval_of(finding.interval)
    badge = gettext(VERDICTS[finding.verdict])
    text, needs = finding.statement, finding.needs
    return Statement(finding.verdict, badge, text, bounds, interval, needs, finding.study, finding.tone)


def foremost(statements: Sequence[Statement], most: int) -> tuple[tuple[Statement, ...], int]:
    """Return up to ``most`` of the statements in their order, and the number of others.

    The first statements of all studies come before second ones.
    """
    seen: Counter[str] = Counter()
    turns = []
    for index, finding in enumerate(statements):
        seen[finding.study] += 1
        turns.append((seen[finding.study], index))
    chosen = sorted(index for _, index in sorted(turns)[:most])
    return tuple(statements[index] for index in chosen), len(statements) - len(chosen)


def _section(portrait: Portrait, study: str, numbers: Mapping[int, int]) -> Section:
    cells = {cell.id: cell for cell in portrait.cells}
    own = [cell for cell in portrait.cells if cell.study == study]
    figures = [figure for figure in portrait.figures if figure.study == study]
    drawn = {cell for figure in figures for cell in _cells_of(figure)}
    return Section(
        study=study,
        plots=tuple(_plot(portrait, figure, numbers[id(figure)], cells) for figure in figures),
        statements=tuple(statement(finding) for finding in portrait.findings if finding.study == study),
        notices=touching(portrait.warnings, {cell.id for cell in own} - drawn),
        omissions=omissions(cell for cell in portrait.skipped if cell.study == study),
        tables=tables_of(own),
        servers=server_table([count for count in portrait.servers if count.study == study]),
    )


def _plot(portrait: Portrait, figure: Figure, number: int, cells: Mapping[str, CellEstimate]) -> Plot:
    warned = {cell for warning in portrait.warnings for cell in warning.cells}
    mine = _cells_of(figure)
    drawing = draw(figure, cells, warned)
    return Plot(
        number=number,
        title=figure.title,
        question=figure.question,
        drawing=drawing,
        published=tuple(
            _published(reference, figure, drawing) for reference in figure.references if reference.source in SOURCES
        ),
        computed=tuple(reference.text for reference in figure.references if reference.source not in SOURCES),
        notices=touching(portrait.warnings, mine),
        hollow=drawing is not None and not warned.isdisjoint(mine),
    )


def _published(reference: Reference, figure: Figure, drawing: Drawing | None) -> PublishedText:
    hatched = figure.x_scale != "category" and band(reference, x_axis(figure)) is not None
    drawn: Literal["", "hatched", "marks"] = ""
    if drawing is not None:
        drawn = "hatched" if hatched else "marks" if reference.points else ""
    named = reference.text.startswith(reference.source)
    text = reference.text if named else gettext("{source}: {text}", source=reference.source, text=reference.text)
    return PublishedText(text, drawn)


def _cells_of(figure: Figure) -> set[str]:
    return {point.cell for series in figure.series for point in series.points}
