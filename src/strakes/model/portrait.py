"""Results of a run as frozen values.

``schemas/findings.json`` is their JSON form (``dataclasses.asdict`` of Portrait).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from strakes.model.answers import Answer
from strakes.stats.grades import Grade

Setting = str | int | float | bool


@dataclass(frozen=True)
class IntervalOf:
    """An interval of the quantity that ``of`` names, e.g. "ratio of 1 MiB to 4 KiB".

    ``unit`` of both bounds: "times" for a ratio, "share" (shown in %), a unit of measures, or "" for a plain number.
    """

    low: float
    high: float
    confidence: float
    of: str
    unit: str


@dataclass(frozen=True)
class CellEstimate:
    """The result of one cell (a combination of a study's settings) that was measured ``runs`` times.

    ``median``, ``low`` and ``high`` are in ``unit`` (B/s, op/s, s). With too few runs for an interval, ``low`` and
    ``high`` are None. ``values``: single runs in time order. ``pooled``: total work divided by total time, or None if
    the unit is not a rate. ``imported``: the runs are repetitions by another tool. ``fresh``: rate of the first run on
    the file system, if it was far above all later runs.
    """

    id: str
    study: str
    settings: Mapping[str, Setting]
    median: float
    low: float | None
    high: float | None
    confidence: float
    runs: int
    unit: str
    values: tuple[float, ...]
    pooled: float | None = None
    warnings: tuple[str, ...] = ()
    imported: bool = False
    fresh: float | None = None


@dataclass(frozen=True)
class SkippedCell:
    """A cell that the target does not support or that the budget did not allow, with the reason."""

    study: str
    settings: Mapping[str, Setting]
    reason: str


@dataclass(frozen=True)
class Finding:
    """One statement with its verdict.

    ``verdict``: measured (a figure with interval), holds / does-not (a tested claim), forecast (extrapolated),
    inconclusive (too few measurements), unknown (not measured). ``needs``: the missing measurement. ``evidence``: ids
    of cells. ``tone``: good / bad if the interval shows that the file system does this well / badly, else neutral.
    ``grade``: only for a claim.
    """

    id: str
    study: str
    statement: str
    verdict: Literal["measured", "holds", "does-not", "forecast", "inconclusive", "unknown"]
    evidence: tuple[str, ...]
    interval: IntervalOf | None = None
    needs: str = ""
    tone: Literal["good", "bad", "neutral"] = "neutral"
    grade: Grade | None = None


@dataclass(frozen=True)
class RunWarning:
    """A warning as data. ``cells``: ids of the affected cells; empty means the whole run."""

    code: str
    text: str
    remedy: str
    cells: tuple[str, ...] = ()


@dataclass(frozen=True)
class Point:
    """A point of a figure. ``x``: a number (log or linear axis) or a category."""

    x: float | str
    cell: str


@dataclass(frozen=True)
class Series:
    """A named line of points."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Reference:
    """A published result: a range of x, points (x, y), or only a text.

    ``label``: name of the points. A law fitted to our values has the same form; its ``source`` is not a publication.
    """

    source: str
    text: str
    x_low: float | None = None
    x_high: float | None = None
    label: str = ""
    points: tuple[tuple[float | str, float], ...] = ()


@dataclass(frozen=True)
class Figure:
    """One figure of a study. The cells have the y values (unit, median, low, high, values)."""

    study: str
    title: str
    question: str
    x_label: str
    x_unit: str
    x_scale: Literal["log", "linear", "category"]
    y_label: str
    y_unit: str
    series: tuple[Series, ...]
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True)
class Headline:
    """One line of the summary that fits on a screen, with the id of the cell that the line shows."""

    label: str
    cell: str


@dataclass(frozen=True)
class ServerCount:
    """Counters of a storage target or server, summed over all ``visits`` (executions of the plan) of a cell.

    Creating and removing files counts. ``counters``: named as in ``strakes.targets.description.Observation``.
    """

    study: str
    cell: str
    server: str
    visits: int
    counters: Mapping[str, float]


@dataclass(frozen=True)
class Portrait:
    """The content of a report. ``run``, ``target`` and ``environment``: stored facts."""

    run: Mapping[str, Any]
    target: Mapping[str, Any]
    environment: Mapping[str, Any]
    scope: str
    headlines: tuple[Headline, ...]
    cells: tuple[CellEstimate, ...]
    findings: tuple[Finding, ...]
    answers: tuple[Answer, ...]
    figures: tuple[Figure, ...]
    warnings: tuple[RunWarning, ...]
    skipped: tuple[SkippedCell, ...] = ()
    reproduce: tuple[str, ...] = ()
    servers: tuple[ServerCount, ...] = ()
    schema: Literal[1] = field(default=1)
