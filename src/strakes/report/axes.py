"""Compute the ranges and ticks of axes for all forms of the report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from strakes.base.units import GIB, KIB, MIB, TIB, format_bytes
from strakes.model.portrait import Figure, Reference

# A logarithmic axis with fewer powers of ten gets more ticks between them. Half this number could leave two ticks.
FEWEST_TICKS = 4
MOST_TICKS = 9  # Maximum number of ticks. The labels of twice as many ticks would overlap.

# If a figure also shows published values, the points of this run span at least this share of the x axis.
OUR_SHARE = 0.6

# The y axis is logarithmic if the largest median is more than this many times the smallest.
LOG_FROM_TIMES = 10.0
# Units of axis labels: factor and name, larger units first.
_UNITS = {
    "B/s": [(float(MIB), "MiB/s"), (float(KIB), "KiB/s"), (1.0, "B/s")],
    "s": [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")],
    "B": [(float(TIB), "TiB"), (float(GIB), "GiB"), (float(MIB), "MiB"), (float(KIB), "KiB"), (1.0, "B")],
}


@dataclass(frozen=True)
class Axis:
    """An axis from ``low`` to ``high``, in the unit of the data. ``ticks``: position and label of each tick."""

    scale: Literal["log", "linear"]
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    title: str

    def shifted(self, value: float, share: float) -> float:
        """Return the value at a distance of ``share`` axis lengths to the right of ``value``."""
        if self.scale == "log":
            return float(value * (self.high / self.low) ** share)
        return value + share * (self.high - self.low)

    def share(self, value: float) -> float:
        """Return the position of ``value`` on the axis: 0 is its low end, 1 its high end."""
        if self.scale == "log":
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ends(self) -> tuple[float, float]:
        """Return the ends of the axis for plotly. For a logarithmic axis, plotly needs decimal logarithms."""
        if self.scale == "log":
            return math.log10(self.low), math.log10(self.high)
        return self.low, self.high


def categories(figure: Figure) -> tuple[str, ...]:
    """Return the categories of a figure in order of first appearance."""
    return tuple(dict.fromkeys(str(point.x) for series in figure.series for point in series.points))


def x_axis(figure: Figure) -> Axis:
    """Return the x axis of a figure. Categories have the positions 0, 1, 2 and so on."""
    title = figure.x_label if figure.x_unit in ("", "B", "s") else f"{figure.x_label} ({figure.x_unit})"
    if figure.x_scale == "category":
        names = categories(figure)
        return Axis("linear", -0.5, len(names) - 0.5, tuple((float(i), name) for i, name in enumerate(names)), title)
    ours = {float(point.x) for series in figure.series for point in series.points if not isinstance(point.x, str)}
    theirs = {x for reference in figure.references for x, _ in reference.points if not isinstance(x, str)}
    points = sorted(ours | theirs if ours else ours)
    if not points:
        return Axis("linear", 0.0, 1.0, (), title)
    log = figure.x_scale == "log" and points[0] > 0
    bands = [edge for one in figure.references for edge in (one.x_low, one.x_high) if edge is not None]
    low, high = _widened(points[0], points[-1], bands, log=log)
    wanted = sorted({*points, *(edge for edge in bands if low <= edge <= high)})
    if log:
        pad = (high / low) ** 0.04 if high > low else 2.0
        places = _log_places(wanted, low, high, figure.x_unit)
        low, high = low / pad, high * pad
    else:
        pad = 0.04 * (high - low) or 1.0
        places = wanted if _have_room(wanted) else _nice_places(low, high)
        low, high = low - pad, high + pad
    return Axis("log" if log else "linear", low, high, tuple((at, _tick(at, figure.x_unit)) for at in places), title)


def y_axis(figure: Figure, medians: Sequence[float], drawn: Sequence[float]) -> Axis:
    """Return a y axis that contains all ``drawn`` values. A linear axis begins at zero."""
    factor, unit = _scale_of(figure.y_unit, max(drawn, default=1.0))
    title = f"{figure.y_label} ({unit})" if unit else figure.y_label
    if min([*medians, *drawn], default=0.0) > 0 and max(medians) / min(medians) > LOG_FROM_TIMES:
        pad = max(1.2, (max(drawn) / min(drawn)) ** 0.06)
        low, high = min(drawn) / pad, max(drawn) * pad
        places = _decades(low / factor, high / factor)
        own = figure.y_unit == "s"
        ticks = tuple((at * factor, _tick(at * factor, "s") if own else f"{at:,.10g}") for at in places)
        return Axis("log", low, high, ticks, figure.y_label if own else title)
    high = max([*drawn, 0.0]) * 1.06 or 1.0
    low = min([*drawn, 0.0]) * 1.06
    places = _nice_places(low / factor, high / factor)
    return Axis("linear", low, high, tuple((at * factor, f"{at:,.10g}") for at in places), title)


def band(reference: Reference, axis: Axis) -> tuple[float, float] | None:
    """Return the part of a published x range that lies within the axis, or None if no part does."""
    if reference.x_low is None or reference.x_high is None:
        return None
    low, high = max(reference.x_low, axis.low), min(reference.x_high, axis.high)
    return (low, high) if low < high else None


def _widened(low: float, high: float, edges: Iterable[float], *, log: bool) -> tuple[float, float]:
    place = math.log if log else float
    most = (place(high) - place(low)) / OUR_SHARE
    ends = low, high
    for edge in edges:
        wider = min(ends[0], edge), max(ends[1], edge)
        if (edge > 0 or not log) and place(wider[1]) - place(wider[0]) <= most:
            ends = wider
    return ends


def _log_places(wanted: Sequence[float], low: float, high: float, unit: str) -> Sequence[float]:
    if _have_room([math.log(place) for place in wanted]):
        return wanted
    base = 2.0 if unit == "B" or all(math.log2(place).is_integer() for place in wanted if place > 0) else 10.0
    first, last = math.ceil(math.log(low, base) - 1e-9), math.floor(math.log(high, base) + 1e-9)
    step = max(1, math.ceil((last - first + 1) / MOST_TICKS))
    powers = [base**power for power in range(first, last + 1) if power % step == 0]
    if base == 2 or len(powers) >= FEWEST_TICKS:
        return powers
    between = _decades(low, high)
    return between if len(between) >= FEWEST_TICKS else _nice_places(low, high)


def _have_room(places: Sequence[float]) -> bool:
    gaps = [right - left for left, right in pairwise(places)]
    return len(places) <= MOST_TICKS and (not gaps or min(gaps) >= 0.085 * (places[-1] - places[0]))


def _nice_places(low: float, high: float) -> list[float]:
    rough = (high - low) / 7 or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(nice * power for nice in (1, 2, 2.5, 5, 10) if nice * power >= rough * 0.999)
    return [index * step for index in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _decades(low: float, high: float) -> list[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    span = math.log10(high / low)
    digits = (1, 2, 5) if span < 2.6 else (1, 3) if span < 4 else (1,)
    step = max(1, math.ceil((last - first) / MOST_TICKS))
    places = [digit * 10.0**power for power in range(first, last + 1) if power % step == 0 for digit in digits]
    return [place for place in places if low <= place <= high]


def _scale_of(unit: str, largest: float) -> tuple[float, str]:
    units = _UNITS.get(unit, [(1.0, unit)])
    least = 0.1 if unit == "B/s" else 1.0  # Show 0.5 MiB/s, not 512 KiB/s.
    return next((one for one in units if largest >= least * one[0]), units[-1])


def _tick(value: float, unit: str) -> str:
    if unit == "B":
        return format_bytes(value)
    if unit == "s":
        factor, name = _scale_of("s", value)
        return f"{value / factor:.4g} {name}"
    # The format "g" would write a million with an exponent.
    return f"{value:,.0f}" if 1e6 <= value < 1e12 else f"{value:,.6g}"
