"""Draw a figure of the report for plotly (traces and layout), with an alternative text."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from strakes.base.language import gettext, ngettext
from strakes.model.portrait import CellEstimate, Figure, Reference, Series
from strakes.report.axes import Axis, band, categories, x_axis, y_axis
from strakes.report.numbers import percent, show, show_interval

# Series differ in colour, dash and marker, so that they also differ in a black-and-white print.
COLOURS = ("#0a5c96", "#b5480b", "#3d7a1f", "#7a3e9d", "#8a6d00", "#333333")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "triangle-down")

INK = "#1f2328"
GRID = "#e3e6ea"
THEIRS = "#6b7280"
_OF_OTHERS = {"type": "scatter", "line": {"color": THEIRS, "width": 1, "dash": "dot"}, "legendrank": 2000}

HEIGHT_PIXELS = 400  # Height of a figure in pixels. A screen of 768 pixels cannot show twice this height.

# Maximum horizontal distance between two series at the same x value, as a share of the x axis.
COLUMN_SHARE = 0.014
# Maximum horizontal distance between the bar of an interval and the points of its runs, as a share of the x axis.
ASIDE_SHARE = 0.009
ROOM_SHARE = 0.64  # Width of all series together, as a share of the distance between two x values.

MOST_UPRIGHT = 12  # Maximum number of categories whose names are horizontal. Twice as many names would overlap.


@dataclass(frozen=True)
class Drawing:
    """A plotly figure. ``alternative``: description for screen readers."""

    data: tuple[Mapping[str, Any], ...]
    layout: Mapping[str, Any]
    alternative: str
    x: Axis
    y: Axis


def draw(figure: Figure, cells: Mapping[str, CellEstimate], warned: Collection[str] = ()) -> Drawing | None:
    """Return the drawing of a figure, or None without a finite value. ``warned``: results drawn as hollow markers."""
    names = categories(figure) if figure.x_scale == "category" else ()
    x = x_axis(figure)
    drawn = [_SeriesOf(series, index, names, cells) for index, series in enumerate(figure.series)]
    shown = [cell for series in drawn for _, cell in series.points]
    if not shown:
        return None
    everything = [value for cell in shown for value in (cell.median, cell.low, cell.high, *cell.values)]
    theirs = [y for reference in figure.references for _, y in reference.points]
    y = y_axis(figure, [*(cell.median for cell in shown), *theirs], _finite([*everything, *theirs]))
    column = _column(drawn, x)
    traces = [*_published(figure, x, y), *_published_points(figure, names)]
    for series in drawn:
        traces += series.traces(x, column, column * (series.index - (len(drawn) - 1) / 2), warned)
    alternative = _alternative(figure, drawn, x)
    return Drawing(tuple(traces), _layout(figure, x, y), alternative, x, y)


def _column(drawn: Sequence[_SeriesOf], x: Axis) -> float:
    if len(drawn) == 1:
        return COLUMN_SHARE
    shares = sorted({x.share(place) for series in drawn for place, _ in series.points})
    narrowest = min((right - left for left, right in pairwise(shares)), default=1.0)
    widest = ROOM_SHARE * narrowest / len(drawn)
    return widest if drawn[0].category else min(COLUMN_SHARE, widest)


class _SeriesOf:
    def __init__(self, series: Series, index: int, names: Sequence[str], cells: Mapping[str, CellEstimate]) -> None:
        self.name = series.name
        self.index = index
        self.category = bool(names)
        self.points: list[tuple[float, CellEstimate]] = []
        for point in series.points:
            cell = cells.get(point.cell)
            if cell is None or not math.isfinite(cell.median) or (isinstance(point.x, str) and not self.category):
                continue
            self.points.append((float(names.index(str(point.x))) if self.category else float(point.x), cell))

    def traces(self, x: Axis, column: float, aside: float, warned: Collection[str]) -> list[dict[str, Any]]:
        if not self.points:
            return []
        colour = COLOURS[self.index % len(COLOURS)]
        # There are fewer colours than series, so series of the same colour differ in marker and dash.
        style = self.index + self.index // len(COLOURS)
        symbol, dash = SYMBOLS[style % len(SYMBOLS)], DASHES[style % len(DASHES)]
        common = {
            "type": "scatter",
            "name": _text(self.name),
            "legendgroup": f"series-{self.index}",
            "cliponaxis": False,
        }
        beside = aside + min(ASIDE_SHARE, 0.6 * column)
        runs = [(x.shifted(place, beside), value) for place, cell in self.points for value in _finite(cell.values)]
        raw = common | {
            "mode": "markers",
            "showlegend": False,
            "hoverinfo": "skip",
            "x": [place for place, _ in runs],
            "y": [value for _, value in runs],
            "marker": {"color": colour, "symbol": symbol, "size": 4, "opacity": 0.35},
        }
        cells = [cell for _, cell in self.points]
        median = common | {
            "mode": "markers" if self.category else "lines+markers",
            "x": [x.shifted(place, aside) for place, _ in self.points],
            "y": [cell.median for cell in cells],
            "line": {"color": colour, "width": 2, "dash": dash},
            "marker": {
                "color": ["#ffffff" if cell.id in warned else colour for cell in cells],
                "symbol": symbol,
                "size": 8,
                "line": {"color": colour, "width": 1.8},
            },
            "error_y": {
                "type": "data",
                "symmetric": False,
                "array": [_length(cell.median, cell.high) for cell in cells],
                "arrayminus": [_length(cell.low, cell.median) for cell in cells],
                "color": colour,
                "thickness": 1.4,
                "width": 5,
            },
            "hovertext": [self._hover(cell, place, x) for place, cell in self.points],
            "hoverinfo": "text",
        }
        return [raw, median]

    def _hover(self, cell: CellEstimate, place: float, x: Axis) -> str:
        interval = show_interval(cell)
        if cell.low is not None:
            confidence = percent(cell.confidence)
            interval = gettext("{confidence} interval {interval}", confidence=confidence, interval=interval)
        runs = ngettext("{count} run", "{count} runs", cell.runs)
        lines = [f"{self.name}, {_written(place, x)}", show(cell.median, cell.unit), interval, runs]
        if cell.warnings:
            lines.append(gettext("warning: {codes}", codes=", ".join(cell.warnings)))
        return "<br>".join(map(_text, lines))


def _published(figure: Figure, x: Axis, y: Axis) -> list[dict[str, Any]]:
    return [
        _OF_OTHERS
        | {
            "mode": "lines",
            "name": _text(_theirs(reference)),
            "x": [ends[0], ends[0], ends[1], ends[1], ends[0]],
            "y": [y.low, y.high, y.high, y.low, y.low],
            "fill": "toself",
            "fillcolor": "rgba(107,114,128,0.07)",
            "fillpattern": {"shape": "/", "fgcolor": THEIRS, "fgopacity": 0.35, "size": 9, "solidity": 0.12},
            "hoverinfo": "skip",
        }
        for reference in figure.references
        if figure.x_scale != "category" and (ends := band(reference, x))
    ]


def _published_points(figure: Figure, names: Sequence[str]) -> list[dict[str, Any]]:
    traces: list[dict[str, Any]] = []
    for reference in figure.references:
        if names:
            points = [(float(names.index(x)), y) for x, y in reference.points if isinstance(x, str) and x in names]
        else:
            points = [(float(x), y) for x, y in reference.points if not isinstance(x, str)]
        if points:
            symbol = f"{('star-diamond', 'hexagram', 'pentagon', 'cross')[len(traces) % 4]}-open"
            trace = _OF_OTHERS | {
                "mode": "markers" if names else "lines+markers",
                "name": _text(reference.label or _theirs(reference)),
                "x": [x for x, _ in points],
                "y": [y for _, y in points],
                "marker": {"color": THEIRS, "symbol": symbol, "size": 10, "line": {"width": 1.5, "color": THEIRS}},
                "hovertext": [_text(f"{reference.label}: {show(y, figure.y_unit)}") for _, y in points],
                "hoverinfo": "text",
            }
            traces.append(trace)
    return traces


def _theirs(reference: Reference) -> str:
    return gettext("published by {source}, not measured here", source=reference.source)


def _layout(figure: Figure, x: Axis, y: Axis) -> dict[str, Any]:
    category = figure.x_scale == "category"
    style = {"type": "line", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "line": {"color": GRID, "width": 1}}
    lines = [{**style, "x0": place + 0.5, "x1": place + 0.5} for place, _ in x.ticks[:-1] if category]
    fonts = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif"
    return {
        "height": HEIGHT_PIXELS,
        "margin": {"l": 64, "r": 16, "t": 12, "b": 48},
        "font": {"family": fonts, "size": 13, "color": INK},
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "#ffffff",
        "hovermode": "closest",
        "hoverlabel": {"bgcolor": "#ffffff", "font": {"color": INK, "size": 13}, "align": "left"},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "traceorder": "normal"},
        "shapes": lines,
        "xaxis": {**_axis(x, wrap=category), "showgrid": not category},
        "yaxis": {**_axis(y, wrap=False), "showgrid": True},
    }


def _axis(axis: Axis, *, wrap: bool) -> dict[str, Any]:
    on_end = wrap and len(axis.ticks) > MOST_UPRIGHT
    width = max(8, 90 // (len(axis.ticks) or 1)) if wrap and not on_end else 1000
    return {
        "type": axis.scale,
        "range": list(axis.ends()),
        "tickmode": "array",
        "tickvals": [place for place, _ in axis.ticks],
        "ticktext": ["<br>".join(map(_text, textwrap.wrap(t, width, break_long_words=False))) for _, t in axis.ticks],
        "title": {"text": _text(axis.title), "standoff": 10, "font": {"size": 13}},
        "automargin": True,
        "gridcolor": GRID,
        "zeroline": False,
        "showline": True,
        "linecolor": THEIRS,
        "ticks": "outside",
        "tickcolor": THEIRS,
        "tickangle": -90 if on_end else 0,
    }


def _finite(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None and math.isfinite(value)]


def _length(low: float | None, high: float | None) -> float:
    return 0.0 if low is None or high is None or not math.isfinite(high - low) else high - low


def _text(text: str) -> str:
    return html.escape(text, quote=False)


def _written(place: float, x: Axis) -> str:
    return next((text for where, text in x.ticks if where == place), f"{place:,.6g}")


def _alternative(figure: Figure, drawn: Sequence[_SeriesOf], x: Axis) -> str:
    first, *others = {place for series in drawn for place, _ in series.points}
    message = "{figure}: {quantity} against {factor}." if others else "{figure}: {quantity}; {factor}: {level} only."
    named = {"figure": figure.title, "quantity": figure.y_label, "factor": figure.x_label}
    parts = [gettext(message, **named, level=_written(first, x))]
    for series in (each for each in drawn if each.points):
        cells = sorted((cell for _, cell in series.points), key=lambda cell: cell.median)
        lowest, highest = show(cells[0].median, cells[0].unit), show(cells[-1].median, cells[-1].unit)
        if len(cells) == 1:
            at = _written(series.points[0][0], x)
            parts.append(gettext("{line}: {value} at {level}.", line=series.name, value=lowest, level=at))
        else:
            values = {"line": series.name, "lowest": lowest, "highest": highest, "points": len(cells)}
            parts.append(gettext("{line}: {points} points from {lowest} to {highest}.", **values))
    bands = [reference.source for reference in figure.references if figure.x_scale != "category" and band(reference, x)]
    if bands:
        parts.append(gettext("Hatched areas: published by {sources} for other machines.", sources=", ".join(bands)))
    return " ".join([*parts, gettext("Every value is in the table below.")])
