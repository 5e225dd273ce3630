"""Split a report into one section per study, with its figures, findings, warnings and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from strakes.base.language import gettext
from strakes.model.literature import SOURCES
from strakes.model.portrait import CellEstimate, Figure, Finding, Portrait
from strakes.report.axes import band, x_axis
from strakes.report.figures import Drawing, draw
from strakes.report.notices import Notice, Omission, omissions, touching
from strakes.report.tables import CellTable, ServerTable, server_table, tables_of

VERDICTS: Mapping[str, str] = {"does-not": "does not hold"}


@dataclass(frozen=True)
class Plot:
    """A figure in a section.

    ``published``: texts about published data, each with its style: "hatched", "marks" or "" (not drawn). ``computed``:
    texts about fitted lines. ``hollow``: whether some markers are hollow because of warnings.
    """

    number: int
    figure: Figure
    drawing: Drawing | None
    published: tuple[tuple[str, str], ...]
    computed: tuple[str, ...]
    notices: tuple[Notice, ...]
    hollow: bool


@dataclass(frozen=True)
class Section:
    """Everything that the report shows about one study."""

    study: str
    plots: list[Plot]
    findings: list[Finding]
    notices: tuple[Notice, ...]
    omissions: tuple[Omission, ...]
    tables: list[CellTable]
    servers: ServerTable | None


def sections(portrait: Portrait) -> list[Section]:
    """Return a section for each study that has content. Figures are numbered consecutively across sections."""
    kinds = (portrait.figures, portrait.cells, portrait.findings, portrait.skipped)
    cells = {cell.id: cell for cell in portrait.cells}
    made: list[Section] = []
    for study in dict.fromkeys(member.study for kind in kinds for member in kind):
        number = 1 + sum(len(section.plots) for section in made)
        own = [cell for cell in portrait.cells if cell.study == study]
        figures = [figure for figure in portrait.figures if figure.study == study]
        undrawn = {cell.id for cell in own}.difference(*map(_cells_of, figures))
        section = Section(
            study,
            [_plot(portrait, figure, index, cells) for index, figure in enumerate(figures, number)],
            [finding for finding in portrait.findings if finding.study == study],
            touching(portrait.warnings, undrawn),
            omissions(cell for cell in portrait.skipped if cell.study == study),
            tables_of(own),
            server_table([count for count in portrait.servers if count.study == study]),
        )
        made.append(section)
    return made


def foremost(findings: Sequence[Finding], most: int) -> tuple[list[Finding], int]:
    """Return up to ``most`` findings in the given order, and the number of omitted findings.

    Every study keeps its first finding before any study keeps a second one.
    """
    turns = [sum(before.study == one.study for before in findings[:n]) for n, one in enumerate(findings)]
    chosen = sorted(sorted(range(len(findings)), key=turns.__getitem__)[:most])
    return [findings[index] for index in chosen], len(findings) - len(chosen)


def _plot(portrait: Portrait, figure: Figure, number: int, cells: Mapping[str, CellEstimate]) -> Plot:
    warned = {cell for warning in portrait.warnings for cell in warning.cells}
    mine = _cells_of(figure)
    drawing = draw(figure, cells, warned)
    published, computed = [], []
    for reference in figure.references:
        if reference.source not in SOURCES:
            computed.append(reference.text)
            continue
        hatched = figure.x_scale != "category" and band(reference, x_axis(figure)) is not None
        drawn = "" if drawing is None else "hatched" if hatched else "marks" if reference.points else ""
        named = reference.text.startswith(reference.source)
        text = reference.text if named else gettext("{source}: {text}", source=reference.source, text=reference.text)
        published.append((text, drawn))
    hollow = drawing is not None and not warned.isdisjoint(mine)
    return Plot(number, figure, drawing, tuple(published), tuple(computed), touching(portrait.warnings, mine), hollow)


def _cells_of(figure: Figure) -> set[str]:
    return {point.cell for series in figure.series for point in series.points}
