"""Forecasts of all figures of some runs at one scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from strakes.predict.asked import Asked, Stated, why_unknown
from strakes.predict.figure_levels import FigureLevels
from strakes.predict.model import Forecast, Model
from strakes.predict.population import kind_of
from strakes.predict.scale import PART_NAMES, Scale


@dataclass(frozen=True)
class FigureForecast:
    """One figure: ``forecast`` is None where it is UNKNOWN, and ``why`` is the reason.

    ``measured``: the outermost level, as scale and value. ``notes``: counters and limits that were left out, and other
    cautions, as sentences.
    """

    figure: FigureLevels
    scale: Scale
    measured: tuple[Scale, float]
    forecast: Forecast | None
    why: str = ""
    notes: tuple[str, ...] = ()


def forecast_figures(figures: Sequence[FigureLevels], asked: Asked, stated: Stated) -> tuple[FigureForecast, ...]:
    """Return one forecast for each figure, in their order."""
    return tuple(_forecast(figure, asked, stated) for figure in figures)


def _forecast(figure: FigureLevels, asked: Asked, stated: Stated) -> FigureForecast:
    limits, levels, outermost = stated.of(figure.unit), figure.comparable, figure.outermost
    scale = asked.scale(outermost.scale, rank_is_client=figure.rank_is_client or figure.local)
    if figure.local:
        scale = replace(scale, clients=1)
    measured = outermost.scale, math.exp(outermost.log_value)
    unknown = FigureForecast(figure, scale, measured, None)
    if figure.unit not in ("op/s", "B/s", "s"):
        return replace(unknown, why="figures of this kind are not forecast")
    if why := why_unknown(levels, scale, limits, is_time=figure.is_time):
        return replace(unknown, why=why)
    model = Model(levels, kind_of(figure.operation, figure.unit), limits, is_time=figure.is_time)
    forecast = model.forecast(scale)
    if not (forecast.low > 0 and forecast.high < math.inf):
        return replace(unknown, why="the forecast is too large or too small for a number")
    return replace(unknown, forecast=forecast, notes=tuple(_notes(figure, model, scale)))


def _notes(figure: FigureLevels, model: Model, scale: Scale) -> list[str]:
    evidence = model.evidence
    notes = [
        f"Left out: how busy {PART_NAMES[part]} were. More was measured than that allows." for part in evidence.counters
    ]
    notes += [
        f"Left out: the limit stated for {PART_NAMES[part]}. More than that was measured." for part in evidence.limits
    ]
    if model.transient:
        notes.append(
            "Left out: sizes before growth steeper than linear, which comes from caches or a warm-up and ends."
        )
    if len({level.scale for level in figure.comparable}) - len(model.transient) == 1:
        notes.append("One size tells nothing of the growth of this system: the growth is that of other file systems.")
    if figure.room_for_files and scale.files > figure.room_for_files:
        notes.append(f"The measured file system has room for {figure.room_for_files:,} files only.")
    return notes
