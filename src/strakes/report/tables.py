"""Cells as tables: common settings are listed once above, settings that vary become columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from strakes.model.portrait import CellEstimate, Setting
from strakes.report.numbers import label_of, level_of, percent, show, show_interval, show_range


@dataclass(frozen=True)
class Row:
    """One cell as text. ``levels``: in the order of the table's ``factors``; ``wraps``: without interval."""

    cell: str
    levels: tuple[str, ...]
    median: str
    interval: str
    runs: int
    span: str
    pooled: str
    warnings: tuple[str, ...]
    wraps: bool


@dataclass(frozen=True)
class CellTable:
    """Rows of one study. ``shared``: settings with the same level in all rows."""

    study: str
    shared: tuple[tuple[str, str], ...]
    factors: tuple[str, ...]
    rows: tuple[Row, ...]
    confidence: str
    has_pooled: bool
    has_warnings: bool


def tables_of(cells: Sequence[CellEstimate]) -> tuple[CellTable, ...]:
    """Return a table for each study and set of factors among the cells, in their order."""
    groups: dict[tuple[str, frozenset[str]], list[CellEstimate]] = {}
    for cell in cells:
        groups.setdefault((cell.study, frozenset(cell.settings)), []).append(cell)
    return tuple(_table(study, members) for (study, _), members in groups.items())


def shared_and_varying(settings: Sequence[Mapping[str, Setting]]) -> tuple[dict[str, Setting], list[str]]:
    """Return the common settings, and the names of the others in order of first appearance.

    >>> shared_and_varying([{"ranks": 2, "direct": False}, {"ranks": 4, "direct": False}])
    ({'direct': False}, ['ranks'])
    """
    keys = list(dict.fromkeys(key for cell in settings for key in cell))
    absent = object()
    shared = {key: settings[0][key] for key in keys if len({cell.get(key, absent) for cell in settings}) == 1}
    return shared, [key for key in keys if key not in shared]


def _table(study: str, cells: Sequence[CellEstimate]) -> CellTable:
    shared, varying = shared_and_varying([cell.settings for cell in cells])
    confidences = {cell.confidence for cell in cells}
    return CellTable(
        study=study,
        shared=tuple((label_of(key), level_of(key, value)) for key, value in shared.items()),
        factors=tuple(label_of(key) for key in varying),
        rows=tuple(_row(cell, varying) for cell in cells),
        confidence=percent(confidences.pop()) if len(confidences) == 1 else "",
        has_pooled=any(cell.pooled is not None for cell in cells),
        has_warnings=any(cell.warnings for cell in cells),
    )


def _row(cell: CellEstimate, varying: Sequence[str]) -> Row:
    median = show(cell.median, cell.unit)
    return Row(
        cell=cell.id,
        levels=tuple(level_of(key, cell.settings[key]) if key in cell.settings else "" for key in varying),
        median=median,
        interval=show_interval(cell),
        runs=cell.runs,
        span=show_range(min(cell.values), max(cell.values), cell.unit, beside=median) if cell.values else "",
        pooled="" if cell.pooled is None else show(cell.pooled, cell.unit),
        warnings=cell.warnings,
        wraps=cell.low is None or cell.high is None,
    )
