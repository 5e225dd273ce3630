"""The results of a run, as reports show them.

``schemas/findings.json`` defines the JSON form, which is ``dataclasses.asdict`` of a Portrait.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from strakes.model.answers import Answer
from strakes.stats.grades import Grade

Setting = str | int | float | bool


@dataclass(frozen=True)
class IntervalOf:
    """A confidence interval of a quantity.

    ``of``: the quantity as text. "ratio of 1 MiB to 4 KiB" is the ratio of the rates with these request sizes.
    ``unit``: "times" (ratio), "share" (shown in %), "" (number), or a unit such as B/s.
    """

    low: float
    high: float
    confidence: float
    of: str
    unit: str


@dataclass(frozen=True)
class CellEstimate:
    """The result of a cell (a combination of a study's settings) that was measured ``runs`` times.

    ``low``, ``high``: bounds of the interval, or None if there are too few runs. ``values``: single runs in time order.
    ``pooled``: for rates, total work divided by total time. ``imported``: measured by another tool. ``fresh``: rate of
    the first run, if it is far above all others.
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
    """A combination of settings that was not measured. ``reason``: for example, the time budget or the file system."""

    study: str
    settings: Mapping[str, Setting]
    reason: str


@dataclass(frozen=True)
class Finding:
    """A statement with its verdict.

    ``verdict``: "measured", "forecast" (extrapolated), "inconclusive" (too few measurements), "unknown" (not measured);
    for a claim, "holds" or "does-not". ``needs``: the missing measurement. ``evidence``: ids of measurements. ``tone``:
    whether ``interval`` shows a strength or a weakness. ``grade``: certainty of the verdict on a claim.
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
    """A warning about measurements. ``cells``: ids of these measurements; empty for the whole run."""

    code: str
    text: str
    remedy: str
    cells: tuple[str, ...] = ()


@dataclass(frozen=True)
class Point:
    """A point of a figure. ``x``: number or category. ``cell``: id of the measurement that gives the y value."""

    x: float | str
    cell: str


@dataclass(frozen=True)
class Series:
    """A named line of points."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Reference:
    """A published result or a fitted law in a figure, as x range, points (x, y) or text.

    ``label``: name of the result or law in the figure.
    """

    source: str
    text: str
    x_low: float | None = None
    x_high: float | None = None
    label: str = ""
    points: tuple[tuple[float | str, float], ...] = ()


@dataclass(frozen=True)
class Figure:
    """A figure of a study. Each point is a measurement, and its y value is the result."""

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
    """A line of the one-screen summary: a label, and the id of the measurement whose result it shows."""

    label: str
    cell: str


@dataclass(frozen=True)
class ServerCount:
    """Counters of a server or storage target, summed over the ``visits`` executions of a cell's plan.

    The counters include the creation and removal of files. Their names: ``strakes.targets.description.Observation``.
    """

    study: str
    cell: str
    server: str
    visits: int
    counters: Mapping[str, float]


@dataclass(frozen=True)
class Portrait:
    """The content of a report. ``run``, ``target``, ``environment``: properties of run, file system, machine."""

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

    @cached_property
    def warned(self) -> Mapping[str, tuple[str, ...]]:
        """Return the id of each cell with warnings -> codes of these warnings."""
        return {cell.id: tuple(cell.warnings) for cell in self.cells if cell.warnings}
