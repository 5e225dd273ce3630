"""Forecast all measured quantities of some runs for one system size, as values and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from strakes.base.version import __version__
from strakes.model.cell import DIRECTIONS
from strakes.predict.asked import Asked, Stated, why_unknown
from strakes.predict.inputs import file_system_of
from strakes.predict.levels import PART_NAMES, FigureLevels, Scale
from strakes.predict.model import COVERAGE, Forecast, Model
from strakes.report.facts import heading_of
from strakes.runs.run import Run


@dataclass(frozen=True)
class FigureForecast:
    """Forecast of one measured quantity. If it is impossible, ``forecast`` is None and ``why`` is the reason.

    ``measured``: the largest measured system size, and the value at that size. ``notes``: texts about ignored data.
    """

    figure: FigureLevels
    scale: Scale
    measured: tuple[Scale, float]
    forecast: Forecast | None
    why: str = ""
    notes: tuple[str, ...] = ()


def forecast_figures(figures: Sequence[FigureLevels], asked: Asked, stated: Stated) -> tuple[FigureForecast, ...]:
    """Return one forecast for each measured quantity, in the same order."""
    return tuple(_forecast(figure, asked, stated) for figure in figures)


def _forecast(figure: FigureLevels, asked: Asked, stated: Stated) -> FigureForecast:
    limits, levels, outermost = stated.of(figure.unit), figure.comparable, figure.outermost
    scale = asked.scale(outermost.scale, rank_is_client=figure.rank_is_client or figure.local)
    if figure.local:
        scale = replace(scale, clients=1)
    measured = outermost.scale, math.exp(outermost.log_value)
    unknown = FigureForecast(figure, scale, measured, None)
    if not DIRECTIONS[figure.unit]:
        return replace(unknown, why="only rates and times are forecast")
    if why := why_unknown(levels, scale, limits, ranks_needed=figure.is_time or figure.local):
        return replace(unknown, why=why)
    model = Model(levels, limits, is_time=figure.is_time)
    forecast = model.forecast(scale)
    if not (forecast.low > 0 and forecast.high < math.inf):
        return replace(unknown, why="the forecast is too large or too small for a number")
    return replace(unknown, forecast=forecast, notes=tuple(_notes(figure, model)))


def _notes(figure: FigureLevels, model: Model) -> list[str]:
    evidence = model.evidence
    notes = [
        f"The load of {PART_NAMES[part]} is not used: with it, a measured rate would be impossible."
        for part in evidence.counters
    ]
    notes += [
        f"The limit stated for {PART_NAMES[part]} is not used: a measured rate is higher." for part in evidence.limits
    ]
    if figure.outermost.caution:
        notes.append(f"{heading_of(figure.outermost.caution)}.")
    if model.transient:
        notes.append(
            "Small sizes are not used: after them, rates grow faster than linearly, for example because of a cache."
        )
    if len({level.scale for level in figure.comparable}) - len(model.transient) == 1:
        notes.append("One size does not show how this system grows, so it is assumed to grow like other file systems.")
    return notes


def forecast_document(
    runs: Sequence[Run], asked: Asked, stated: Stated, forecasts: Sequence[FigureForecast], now: datetime | None = None
) -> dict[str, Any]:
    """Return the forecasts and their inputs as JSON."""
    return {
        "schema": 1,
        "created": (now or datetime.now(UTC)).isoformat(timespec="seconds"),
        "strakes": __version__,
        "interval": COVERAGE,
        "asked": dict(asked.counts),
        "stated": [
            {"part": part, "unit": unit, "capacity": capacity} for (part, unit), capacity in stated.capacities.items()
        ],
        "runs": [
            {"id": run.id, "status": run.manifest["status"], "file_system": asdict(file_system_of(run))} for run in runs
        ],
        "figures": [_figure(each) for each in forecasts],
    }


def _figure(each: FigureForecast) -> dict[str, Any]:
    forecast = each.forecast
    ends = None if forecast is None else {name: getattr(forecast, name) for name in ("median", "low", "high")}
    likely = None if forecast is None else forecast.likely
    return {
        "figure": each.figure.name,
        "study": each.figure.study,
        "unit": each.figure.unit,
        "measured": [{**asdict(level), "left_out": level in each.figure.left_out} for level in each.figure.levels],
        "scale": asdict(each.scale),
        "forecast": ends,
        "unknown_because": each.why,
        "notes": list(each.notes),
        "saturates": None if likely is None else {"part": likely[0], "probability": likely[1]},
    }
