"""A figure of the portrait as a file for papers (SVG, PNG, PDF), drawn by matplotlib with the axes of the report."""

from __future__ import annotations

import io
import math
import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from strakes.base.errors import BadInputError, EnvironmentLacksError, MeasurementError, nearest_word
from strakes.base.files import write_whole
from strakes.model.portrait import CellEstimate, Figure, Portrait
from strakes.report.axes import Axis, band, categories, x_axis, y_axis
from strakes.report.figures import COLOURS, THEIRS
from strakes.report.numbers import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = ("svg", "png", "pdf")

_WIDTH_INCH, _HEIGHT_INCH, _DOTS_PER_INCH = 7.0, 4.2, 200
# As in the report, series differ in dash and marker as well as in colour.
_DASHES: tuple[str | tuple[int, tuple[int, ...]], ...] = ("-", "--", ":", "-.", (0, (8, 3)), (0, (8, 3, 2, 3)))
_MARKERS = ("o", "s", "D", "^", "X", "v")
# Most categories with horizontal names, and the most characters of these names.
_MOST_UPRIGHT, _WIDEST_UPRIGHT = 8, 70


def name_figures(portrait: Portrait) -> dict[str, Figure]:
    """Return the figures by name: the study, with a number for the second and later figures of a study."""
    names: dict[str, Figure] = {}
    for figure in portrait.figures:
        count = 1 + sum(known.study == figure.study for known in names.values())
        names[figure.study if count == 1 else f"{figure.study}-{count}"] = figure
    return names


def find_figure(portrait: Portrait, name: str) -> Figure:
    """Return the figure with this name. Raises BadInputError with the nearest name, or with all names."""
    names = name_figures(portrait)
    if name in names:
        return names[name]
    near = nearest_word(name, names)
    remedy = f"Did you mean {near}?" if near else f"One of: {', '.join(names)}." if names else "This run has no figure."
    raise BadInputError(f"no figure {name!r}", where=str(portrait.run["id"]), remedy=remedy)


def write_figure(figure: Figure, portrait: Portrait, path: Path) -> None:
    """Draw ``figure`` into the file ``path``, in the format of its extension.

    Raises BadInputError for an unknown format or a figure without points, EnvironmentLacksError without matplotlib,
    MeasurementError if the file cannot be written.
    """
    form = path.suffix.removeprefix(".").lower()
    if form not in FORMATS:
        remedy = f"Let the name end in {', '.join(f'.{form}' for form in FORMATS)}."
        raise BadInputError("the format of the figure is not known", where=str(path), remedy=remedy)
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure as Canvas
    except ModuleNotFoundError as error:
        # Name this Python, because the strakes of a checkout cannot be installed as a package with an extra.
        remedy = f"Install it: {shlex.quote(sys.executable)} -m pip install matplotlib"
        raise EnvironmentLacksError("figures in files need matplotlib", why=str(error), remedy=remedy) from error
    # Keep text as text in SVG, and make the output reproducible.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "strakes"}):
        canvas = Canvas(figsize=(_WIDTH_INCH, _HEIGHT_INCH), layout="constrained")
        warned = {cell for warning in portrait.warnings for cell in warning.cells}
        _draw(canvas.add_subplot(), figure, {cell.id: cell for cell in portrait.cells}, warned)
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
    confidence = next((cell.confidence for cell in portrait.cells if cell.study == figure.study), None)
    intervals = f"bars: {percent(confidence)} intervals of medians; " if confidence else ""
    drawn = [
        reference.source
        for reference in figure.references
        if reference.points or reference.x_low is not None or reference.x_high is not None
    ]
    theirs = f"grey: published by others ({', '.join(dict.fromkeys(drawn))}); " if drawn else ""
    hollow = any(point.cell in warned for series in figure.series for point in series.points)
    told = "hollow markers: a warning affects them; " if hollow else ""
    return f"{intervals}small points: single runs; {told}{theirs}strakes run {portrait.run['id']}"


def _draw(axes: Axes, figure: Figure, cells: Mapping[str, CellEstimate], warned: Collection[str]) -> None:
    names = categories(figure) if figure.x_scale == "category" else ()
    points = [
        [
            (float(names.index(str(point.x))) if names else float(point.x), cells[point.cell])
            for point in series.points
            if point.cell in cells
            and math.isfinite(cells[point.cell].median)
            and (names or not isinstance(point.x, str))
        ]
        for series in figure.series
    ]
    shown = [cell for line in points for _, cell in line]
    if not shown:
        raise BadInputError("the figure has no point", where=figure.title, remedy="Measure more: --resume.")
    theirs = [y for reference in figure.references for _, y in reference.points]
    everything = [value for cell in shown for value in (cell.median, cell.low, cell.high, *cell.values)]
    finite = [value for value in everything if value is not None and math.isfinite(value)]
    x, y = x_axis(figure), y_axis(figure, [*(cell.median for cell in shown), *theirs], [*finite, *theirs])
    _set_axes(axes, x, y, upright=len(names) <= _MOST_UPRIGHT and sum(map(len, names)) <= _WIDEST_UPRIGHT)
    _draw_published(axes, figure, names, x)
    for index, (series, line) in enumerate(zip(figure.series, points, strict=True)):
        if line:
            aside = 0.014 * (index - (len(points) - 1) / 2)
            moved = [(x.shifted(place, aside), cell) for place, cell in line]
            _draw_series(axes, index, series.name, moved, bool(names), warned)
    if len(figure.series) > 1 or figure.references:
        axes.legend(fontsize=8, frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3)


def _draw_series(
    axes: Axes,
    index: int,
    name: str,
    line: Sequence[tuple[float, CellEstimate]],
    category: bool,
    warned: Collection[str],
) -> None:
    colour = COLOURS[index % len(COLOURS)]
    style = index + index // len(COLOURS)
    runs = [(place, value) for place, cell in line for value in cell.values if math.isfinite(value)]
    axes.plot(
        [place for place, _ in runs],
        [value for _, value in runs],
        linestyle="",
        marker=".",
        markersize=3,
        color=colour,
        alpha=0.35,
    )
    below = [cell.median - cell.low if cell.low is not None else 0.0 for _, cell in line]
    above = [cell.high - cell.median if cell.high is not None else 0.0 for _, cell in line]
    axes.errorbar(
        [place for place, _ in line],
        [cell.median for _, cell in line],
        yerr=(below, above),
        label=name,
        color=colour,
        marker=_MARKERS[style % len(_MARKERS)],
        markersize=5,
        linestyle="" if category else _DASHES[style % len(_DASHES)],
        linewidth=1.5,
        capsize=3,
    )
    hollow = [(place, cell.median) for place, cell in line if cell.id in warned]
    if hollow:
        axes.plot(
            *zip(*hollow, strict=True),
            linestyle="",
            marker=_MARKERS[style % len(_MARKERS)],
            markersize=5,
            markerfacecolor="white",
            markeredgecolor=colour,
            zorder=3,
        )


def _draw_published(axes: Axes, figure: Figure, names: Sequence[str], x: Axis) -> None:
    for reference in figure.references:
        if (ends := band(reference, x)) is not None:
            axes.axvspan(*ends, color=THEIRS, alpha=0.12, linewidth=0)
        places = [
            (float(names.index(str(place))) if names else float(place), value)
            for place, value in reference.points
            if not names or str(place) in names
        ]
        if places:
            label = f"{reference.source}: {reference.label}" if reference.label else reference.source
            axes.plot(*zip(*places, strict=True), linestyle="", marker="x", color=THEIRS, label=label)


def _set_axes(axes: Axes, x: Axis, y: Axis, *, upright: bool) -> None:
    axes.set_xscale(x.scale)
    axes.set_yscale(y.scale)
    axes.set_xlim(x.low, x.high)
    axes.set_ylim(y.low, y.high)
    axes.set_xticks([place for place, _ in x.ticks], [text for _, text in x.ticks], rotation=0 if upright else 90)
    axes.set_yticks([place for place, _ in y.ticks], [text for _, text in y.ticks])
    axes.minorticks_off()
    axes.set_xlabel(x.title)
    axes.set_ylabel(y.title)
    axes.grid(visible=True, alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
