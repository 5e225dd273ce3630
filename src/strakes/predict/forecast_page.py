"""Forecasts as one HTML page that needs nothing else: each figure's way from measured to forecast, with its band."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from strakes.predict.asked import Asked
from strakes.predict.forecast_text import say_figure, say_record
from strakes.predict.forecasts import FigureForecast
from strakes.predict.scale import MeasuredLevel, Scale
from strakes.predict.sealed import Record
from strakes.predict.way import axis_of, is_on_way, say_off_way
from strakes.report.html import render_page
from strakes.report.numbers import show, show_range

_WIDTH, _HEIGHT = 640.0, 240.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 84.0, 48.0, 12.0, 36.0
_AXES = {
    "clients": "clients",
    "ranks": "ranks",
    "files": "files",
    "mdts": "metadata targets",
    "osts": "data targets",
    "link": "speed of the links, beside today's",
}
# The marks of measured points that do not belong to the line; further kinds share the last.
_MARKS = ("□", "△", "◇")
# Fewer lines than this along an axis, and its ends are written instead.
_FEWEST_TICKS = 3
_MOST_TICKS = 7
# Ticks that differ by a smaller factor than this overlap.
_APART = 1.4


@dataclass(frozen=True)
class _Point:
    """A measured median: where it is drawn, with which mark."""

    x: float
    y: float
    mark: str


@dataclass(frozen=True)
class _Drawing:
    """One figure's plot: points as the texts of SVG attributes. ``asked``: x, and the y of low, median and high."""

    band: str
    middle: str
    asked: tuple[float, float, float, float]
    points: tuple[_Point, ...]
    others: tuple[tuple[str, str], ...]
    axis: str
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class _Row:
    """One line of the table."""

    name: str
    measured: str
    forecast: str
    interval: str
    scale: str


@dataclass(frozen=True)
class _PageSection:
    """One figure: what the terminal says of it, and its plot."""

    row: _Row
    lines: tuple[str, ...]
    drawing: _Drawing


def render_forecast_page(asked: Asked, forecasts: Sequence[FigureForecast], record: Record) -> str:
    """Return the page as the text of one file, to be written as UTF-8."""
    unknown: dict[str, list[str]] = {}
    for each in forecasts:
        if each.forecast is None:
            unknown.setdefault(each.why, []).append(each.figure.name)
    return render_page(
        "forecast.html.j2",
        asked=asked.words,
        parts=[_part(each) for each in forecasts if each.forecast is not None],
        unknown=unknown,
        record=say_record(record).split("\n"),
        width=_WIDTH,
        height=_HEIGHT,
        edge=(_LEFT, _WIDTH - _RIGHT, _TOP, _HEIGHT - _BOTTOM),
    )


def _part(each: FigureForecast) -> _PageSection:
    assert each.forecast is not None
    unit = each.figure.unit
    middle = show(each.forecast.median, unit)
    row = _Row(
        each.figure.name,
        show(each.measured[1], unit),
        middle,
        show_range(each.forecast.low, each.forecast.high, unit, beside=middle),
        each.scale.text,
    )
    return _PageSection(row, tuple(line.strip() for line in say_figure(each)[1:]), _draw(each))


def _draw(each: FigureForecast) -> _Drawing:
    """Draw on logarithmic axes."""
    assert each.forecast is not None
    points, levels = each.curve, each.figure.comparable
    name = axis_of(each.figure, each.scale)
    across = [_of(scale, name) for scale in (*(point.scale for point in points), *(level.scale for level in levels))]
    up = [value for point in points for value in (point.forecast.low, point.forecast.high)]
    up += [math.exp(level.log_value) for level in levels] + [each.forecast.low, each.forecast.high]
    # No line lies on the edge.
    bottom, top = min(up) / 1.05, max(up) * 1.05

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * _share(x, min(across), max(across)), 1),
            round(_HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * _share(y, bottom, top), 1),
        )

    def path(pairs: Sequence[tuple[float, float]]) -> str:
        return " ".join("{},{}".format(*place(x, y)) for x, y in pairs)

    lows = [(_of(point.scale, name), point.forecast.low) for point in points]
    highs = [(_of(point.scale, name), point.forecast.high) for point in points]
    middles = [(_of(point.scale, name), point.forecast.median) for point in points]
    others = _others(levels, each.scale, name)
    x = _of(each.scale, name)
    low, middle, high = (place(x, y) for y in (each.forecast.low, each.forecast.median, each.forecast.high))
    return _Drawing(
        path(lows + highs[::-1]),
        path(middles),
        (middle[0], low[1], middle[1], high[1]),
        tuple(
            _Point(*place(_of(level.scale, name), math.exp(level.log_value)), mark)
            for level in levels
            for mark in [others.get(say_off_way(level, each.scale, name), _MARKS[-1])]
        ),
        tuple((mark, words) for words, mark in others.items() if words),
        _AXES[name],
        tuple((place(each, bottom)[0], _say_tick(each)) for each in _with(_ticks(across), x)),
        tuple((place(min(across), y)[1], show(y, each.figure.unit)) for y in _ticks([bottom, top])),
    )


def _others(levels: Sequence[MeasuredLevel], scale: Scale, axis: str) -> dict[str, str]:
    """Return the mark of each kind of levels by what it differs in; those of the line by the empty text."""
    kinds = dict.fromkeys(say_off_way(level, scale, axis) for level in levels if not is_on_way(level, scale, axis))
    return {"": "●", **{words: _MARKS[min(place, len(_MARKS) - 1)] for place, words in enumerate(kinds)}}


def _ticks(values: Sequence[float]) -> list[float]:
    """Return round numbers between the least and the most of them, as far apart as on a logarithmic axis.

    >>> _ticks([1.0, 64.0]), _ticks([41.0, 44.0])
    ([1.0, 2.0, 5.0, 10.0, 20.0, 50.0], [41.0, 44.0])
    """
    low, high = min(values), max(values)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 2, 5), (1,)):
        ticks = [step * 10.0**decade for decade in decades for step in steps if low <= step * 10.0**decade <= high]
        if _FEWEST_TICKS <= len(ticks) <= _MOST_TICKS:
            return ticks
    return list(dict.fromkeys((low, high)))


def _with(ticks: Sequence[float], asked: float) -> list[float]:
    """Return the ticks with that of the size asked for, none so close to it that they overlap."""
    return sorted([asked, *(tick for tick in ticks if not 1 / _APART < tick / asked < _APART)])


def _say_tick(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 and value == round(value) else f"{value:.3g}"


def _of(scale: Scale, name: str) -> float:
    return scale.link if name == "link" else float(max(1, getattr(scale, name)))


def _share(value: float, low: float, high: float) -> float:
    return math.log(value / low) / math.log(high / low) if high > low else 0.5
