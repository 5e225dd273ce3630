"""Forecasts as text for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from strakes.predict.forecasts import FigureForecast
from strakes.predict.levels import PART_NAMES, FigureLevels, MeasuredLevel
from strakes.predict.model import Forecast
from strakes.report.numbers import percent, show, show_range


def render(forecasts: Sequence[FigureForecast]) -> str:
    """Return the forecasts as text. Impossible forecasts (UNKNOWN) come last, grouped by reason."""
    lines = []
    for each in forecasts:
        if each.forecast is not None:
            lines += [*_figure_lines(each, each.forecast), ""]
    by_reason: dict[str, list[str]] = {}
    for each in forecasts:
        if each.forecast is None:
            by_reason.setdefault(each.why, []).append(each.figure.name)
    if by_reason:
        lines.append("UNKNOWN")
    for why, names in by_reason.items():
        lines.append(f"  {why}:")
        lines += [f"    {name}" for name in names]
    if not forecasts:
        lines.append("No figure of these runs has a known number of ranks, so no forecast is possible.")
    return "\n".join(lines).rstrip()


def _figure_lines(each: FigureForecast, forecast: Forecast) -> list[str]:
    unit, (scale, value) = each.figure.unit, each.measured
    middle = show(forecast.median, unit)
    lines = [
        each.figure.name,
        f"  {middle} [{show_range(forecast.low, forecast.high, unit, beside=middle)}] with {each.scale.text}",
        f"  measured: {show(value, unit)} with {scale.text}",
        *(f"  {_say_left_out(level, each.figure)}" for level in each.figure.left_out),
        *(f"  {note}" for note in each.notes),
    ]
    if each.figure.local:
        lines.append("  No other node can reach this file system, so its ranks count as clients.")
    if not each.figure.is_time:
        lines.append(f"  {_say_saturates(forecast)}")
    return lines


def _say_saturates(forecast: Forecast) -> str:
    if forecast.likely is None:
        return "It is unknown which part saturates first. Give limits of the parts without a counter: --system FILE."
    part, probability = forecast.likely
    return f"Saturates first: {PART_NAMES[part]} ({percent(round(min(probability, 0.99), 2))} sure)."


def _say_left_out(level: MeasuredLevel, figure: FigureLevels) -> str:
    what = f"{show(math.exp(level.log_value), figure.unit)} with {level.scale.text}"
    return f"not used: {what}: a client cache answered, or the operations did other work than in the largest run."
