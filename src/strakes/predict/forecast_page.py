"""Forecasts as one HTML page that needs nothing else: each figure's way from measured to forecast, with its band."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from strakes.predict.asked import Asked
from strakes.predict.forecast_text import say_forecast, say_record, say_scarce
from strakes.predict.forecasts import FigureForecast
from strakes.predict.scale import MeasuredLevel, Scale
from strakes.predict.sealed import Record
from strakes.report.html import render_page
from strakes.report.numbers import show

_WIDTH, _HEIGHT = 640.0, 220.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 84.0, 14.0, 10.0, 30.0
# The dimension along which the way is drawn: the first of these that changes.
_AXES = (
    ("clients", "clients"),
    ("ranks", "ranks"),
    ("files", "files"),
    ("mdts", "metadata targets"),
    ("osts", "data targets"),
    ("link", "speed of the links"),
)


@dataclass(frozen=True)
class _Drawing:
    """One figure's plot: points as the texts of SVG attributes."""

    band: str
    middle: str
    measured: tuple[tuple[float, float], ...]
    axis: str
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class _PageSection:
    name: str
    forecast: str
    scale: str
    measured: str
    scarce: str
    drawing: _Drawing
    helps: tuple[str, ...]


def render_forecast_page(asked: Asked, forecasts: Sequence[FigureForecast], record: Record) -> str:
    """Return the page as the text of one file, to be written as UTF-8."""
    unknown: dict[str, list[str]] = {}
    for each in forecasts:
        if each.forecast is None:
            unknown.setdefault(each.why, []).append(each.figure.name)
    return render_page(
        "forecast.html.j2",
        asked=asked.text,
        parts=[_part(each) for each in forecasts if each.forecast is not None],
        unknown=unknown,
        record=say_record(record),
        width=_WIDTH,
        height=_HEIGHT,
        edge=(_LEFT, _WIDTH - _RIGHT, _TOP, _HEIGHT - _BOTTOM),
    )


def _part(each: FigureForecast) -> _PageSection:
    assert each.forecast is not None
    unit = each.figure.unit
    scale, value = each.measured
    helps = tuple(
        f"{addition.what}: {addition.gain.median:.2f} times [{addition.gain.low:.2f} to {addition.gain.high:.2f}]"
        for addition in each.help
    )
    return _PageSection(
        each.figure.name,
        say_forecast(each.forecast, unit),
        each.scale.text,
        f"{show(value, unit)} with {scale.text}",
        "" if each.figure.is_time else say_scarce(each.forecast),
        _draw(each),
        helps,
    )


def _draw(each: FigureForecast) -> _Drawing:
    """Draw on logarithmic axes."""
    points, levels = each.curve, each.figure.comparable
    name, axis = next(
        (pair for pair in _AXES if len({getattr(point.scale, pair[0]) for point in points}) > 1), _AXES[0]
    )
    shown = [level for level in levels if _beside(level, each)]
    across = [_of(point.scale, name) for point in points] + [_of(level.scale, name) for level in shown]
    up = [value for point in points for value in (point.forecast.low, point.forecast.high)]
    up += [math.exp(level.log_value) for level in shown]

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * _share(x, min(across), max(across)), 1),
            round(_HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * _share(y, min(up), max(up)), 1),
        )

    def path(pairs: Sequence[tuple[float, float]]) -> str:
        return " ".join("{},{}".format(*place(x, y)) for x, y in pairs)

    lows = [(_of(point.scale, name), point.forecast.low) for point in points]
    highs = [(_of(point.scale, name), point.forecast.high) for point in points]
    middles = [(_of(point.scale, name), point.forecast.median) for point in points]
    ends = (min(across), math.sqrt(min(across) * max(across)), max(across))
    return _Drawing(
        path(lows + highs[::-1]),
        path(middles),
        tuple(place(_of(level.scale, name), math.exp(level.log_value)) for level in shown),
        axis,
        tuple((place(x, min(up))[0], f"{x:,.0f}") for x in dict.fromkeys(ends)),
        tuple((place(min(across), y)[1], show(y, each.figure.unit)) for y in dict.fromkeys((min(up), max(up)))),
    )


def _beside(level: MeasuredLevel, each: FigureForecast) -> bool:
    """Whether the level has as many targets as the way begins with: others would lie off the line."""
    start = each.curve[0].scale
    return (level.scale.mdts, level.scale.osts) == (start.mdts, start.osts) or len(each.figure.comparable) < 3


def _of(scale: Scale, name: str) -> float:
    return float(max(1, getattr(scale, name)))


def _share(value: float, low: float, high: float) -> float:
    return math.log(value / low) / math.log(high / low) if high > low else 0.5
