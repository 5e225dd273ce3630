"""Write a figure of the report to a file for papers (SVG, PNG, PDF) with matplotlib."""

from __future__ import annotations

import html
import io
import shlex
import sys
from collections.abc import Collection, Mapping
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strakes.base.errors import BadInputError, EnvironmentLacksError, MeasurementError, did_you_mean
from strakes.base.files import write_whole
from strakes.model.portrait import Figure, Portrait
from strakes.report.figures import THEIRS, Drawing, draw
from strakes.report.numbers import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = ("svg", "png", "pdf")

_WIDTH_INCH, _HEIGHT_INCH, _DOTS_PER_INCH = 7.0, 4.2, 200
# Names of dashes and markers in plotly -> their names in matplotlib.
_DASHES: Mapping[str, str | tuple[int, tuple[int, ...]]] = {
    "solid": "-",
    "dash": "--",
    "dot": ":",
    "dashdot": "-.",
    "longdash": (0, (8, 3)),
    "longdashdot": (0, (8, 3, 2, 3)),
}
_MARKERS = {"circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "x": "X", "triangle-down": "v"}
# Category names are horizontal up to this number of names, and up to this number of characters in total.
_MOST_UPRIGHT, _WIDEST_UPRIGHT = 8, 70


def name_figures(portrait: Portrait) -> dict[str, Figure]:
    """Return name -> figure. The figures of the study "nodes" have the names nodes, nodes-2, nodes-3 and so on."""
    names: dict[str, Figure] = {}
    for figure in portrait.figures:
        count = 1 + sum(known.study == figure.study for known in names.values())
        names[figure.study if count == 1 else f"{figure.study}-{count}"] = figure
    return names


def find_figure(portrait: Portrait, name: str) -> Figure:
    """Return the figure with this name. For an unknown name, raises BadInputError that suggests other names."""
    names = name_figures(portrait)
    if name in names:
        return names[name]
    remedy = did_you_mean(name, names) if names else "This run has no figure."
    raise BadInputError(f"no figure {name!r}", where=str(portrait.run["id"]), remedy=remedy)


def write_figure(figure: Figure, portrait: Portrait, path: Path) -> None:
    """Write ``figure`` to the file ``path``. The extension determines the format.

    Raises BadInputError for an unknown format or a figure without points, EnvironmentLacksError without matplotlib,
    MeasurementError if the file cannot be written.
    """
    form = path.suffix.removeprefix(".").lower()
    if form not in FORMATS:
        remedy = f"Let the name end in {', '.join(f'.{form}' for form in FORMATS)}."
        raise BadInputError("the file format for the figure is unknown", where=str(path), remedy=remedy)
    try:
        with chdir("/"):  # matplotlib would read matplotlibrc in the current directory
            from matplotlib import style
            from matplotlib.figure import Figure as Canvas
    except ModuleNotFoundError as error:
        # In a source checkout, strakes is not installed, so pip cannot install its optional packages.
        remedy = f"Install it: {shlex.quote(sys.executable)} -m pip install matplotlib (the extra strakes[figures])"
        raise EnvironmentLacksError("writing figures needs matplotlib", why=str(error), remedy=remedy) from error
    warned = {cell for warning in portrait.warnings for cell in warning.cells}
    drawing = draw(figure, {cell.id: cell for cell in portrait.cells}, warned)
    if drawing is None:
        raise BadInputError("the figure has no points to draw", where=figure.title, remedy="Measure more: --resume.")
    # Ignore the user's matplotlibrc, show "$" in names, keep text as text in SVG, and make the output reproducible.
    with style.context(["default", {"text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": "strakes"}]):
        canvas = Canvas(figsize=(_WIDTH_INCH, _HEIGHT_INCH), layout="constrained")
        axes = canvas.add_subplot()
        for trace in drawing.data:
            _draw(axes, trace)
        _set_axes(axes, drawing, category=figure.x_scale == "category")
        if len(figure.series) > 1 or figure.references:
            axes.legend(fontsize=8, frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3)
        canvas.suptitle(figure.title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        canvas.text(0.01, -0.01, _caption(figure, portrait, warned), va="top", fontsize=7, color=THEIRS)
        try:
            metadata = {"Date": None} if path.suffix == ".svg" else None
            picture = io.BytesIO()
            canvas.savefig(picture, format=form, dpi=_DOTS_PER_INCH, bbox_inches="tight", metadata=metadata)
            write_whole(path, picture.getvalue())
        except OSError as error:
            why, remedy = error.strerror or str(error), "Give a file in a directory that you can write to: -o FILE."
            raise MeasurementError("the figure cannot be written", where=str(path), why=why, remedy=remedy) from error


def _caption(figure: Figure, portrait: Portrait, warned: Collection[str]) -> str:
    parts = ["small points: single runs"]
    confidence = next((cell.confidence for cell in portrait.cells if cell.study == figure.study), None)
    if confidence:
        parts.insert(0, f"bars: {percent(confidence)} intervals of medians")
    if any(point.cell in warned for series in figure.series for point in series.points):
        parts.append("hollow markers: a warning affects them")
    if drawn := [one.source for one in figure.references if one.points or one.x_low is not None]:
        parts.append(f"grey: published by others ({', '.join(dict.fromkeys(drawn))})")
    return "; ".join([*parts, f"strakes run {portrait.run['id']}"])


def _draw(axes: Axes, trace: Mapping[str, Any]) -> None:
    name = html.unescape(trace["name"]) if trace.get("showlegend", True) else None
    x, y = trace["x"], trace["y"]
    if "fill" in trace:
        axes.axvspan(min(x), max(x), color=THEIRS, alpha=0.12, linewidth=0, label=name)
        return
    marker, line, bars = trace["marker"], trace.get("line", {}), trace.get("error_y")
    colour = line.get("color", marker["color"])
    symbol = {"marker": _MARKERS.get(marker["symbol"], "x"), "markersize": 0.65 * marker["size"]}
    dash = _DASHES[line["dash"]] if "lines" in trace["mode"] else ""
    yerr = (bars["arrayminus"], bars["array"]) if bars else None
    alpha = marker.get("opacity")
    axes.errorbar(x, y, yerr, label=name, color=colour, alpha=alpha, linestyle=dash, capsize=3, **symbol)
    fills = marker["color"] if isinstance(marker["color"], list) else []
    if hollow := [(place, value) for place, value, fill in zip(x, y, fills, strict=False) if fill != colour]:
        style = {"markerfacecolor": "white", "markeredgecolor": colour, **symbol}
        axes.plot(*zip(*hollow, strict=True), linestyle="", zorder=3, **style)


def _set_axes(axes: Axes, drawing: Drawing, *, category: bool) -> None:
    x, y = drawing.x, drawing.y
    names = [text for _, text in x.ticks]
    upright = not category or (len(names) <= _MOST_UPRIGHT and sum(map(len, names)) <= _WIDEST_UPRIGHT)
    axes.set_xscale(x.scale)
    axes.set_yscale(y.scale)
    axes.set_xlim(x.low, x.high)
    axes.set_ylim(y.low, y.high)
    axes.set_xticks([place for place, _ in x.ticks], names, rotation=0 if upright else 90)
    axes.set_yticks([place for place, _ in y.ticks], [text for _, text in y.ticks])
    axes.minorticks_off()
    axes.set_xlabel(x.title)
    axes.set_ylabel(y.title)
    axes.grid(visible=True, alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
