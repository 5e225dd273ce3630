"""All forecasts of some runs: each figure at the scale asked for, the way there, and what would help."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from strakes.predict.asked import Asked, Stated, link_factor, not_bounded
from strakes.predict.families import Typical
from strakes.predict.figure_levels import FigureLevels
from strakes.predict.model import Forecast, Model
from strakes.predict.processes import map_in_processes
from strakes.predict.scale import Part, Scale

# What could be added to a system, with the part that it relieves.
_HELP: Sequence[tuple[str, Part]] = (
    ("one more metadata target", "mdts"),
    ("half as many data targets again", "osts"),
    ("links of twice the speed", "links"),
)
_POINTS = 12
# A further process pays where it has as many figures to forecast.
_WORTH_A_PROCESS = 20


@dataclass(frozen=True)
class CurvePoint:
    """A scale on the way from what was measured to what is asked for, with its forecast."""

    scale: Scale
    forecast: Forecast


@dataclass(frozen=True)
class Help:
    """What an addition would bring: ``gain`` is a factor with the ends of its 80 % interval."""

    what: str
    gain: Forecast


@dataclass(frozen=True)
class FigureForecast:
    """One figure: ``forecast`` is None where it is UNKNOWN, and ``why`` says so.

    ``measured``: the outermost level, as scale and value. ``families``: how much each family of curves counts.
    """

    figure: FigureLevels
    scale: Scale
    measured: tuple[Scale, float]
    forecast: Forecast | None
    why: str = ""
    curve: tuple[CurvePoint, ...] = ()
    help: tuple[Help, ...] = ()
    families: Mapping[str, float] | None = None


def forecast_figures(
    figures: Sequence[FigureLevels], asked: Asked, stated: Stated, *, curves: bool = True, processes: int | None = None
) -> tuple[FigureForecast, ...]:
    """Return one for each figure, in their order, with or without the way there.

    Many figures are shared among ``processes``, as many as there are processors; the forecasts are the same. Raises
    BadInputError where the question lacks something.
    """
    forecast = partial(_forecast, asked=asked, stated=stated, link=link_factor(asked, stated), curve=curves)
    if processes is None:
        processes = min(len(os.sched_getaffinity(0)), len(figures) // _WORTH_A_PROCESS)
    return map_in_processes(forecast, figures, processes)


def _forecast(figure: FigureLevels, asked: Asked, stated: Stated, link: float, *, curve: bool) -> FigureForecast:
    limits = stated.of(figure.unit)
    outermost, levels = figure.outermost, figure.comparable
    measured = outermost.scale, math.exp(outermost.log_value)
    scale = asked.scale(outermost.scale, link, rank_is_client=figure.rank_is_client)
    if figure.local:
        scale = replace(scale, clients=1)
    if figure.unit not in ("op/s", "B/s", "s"):
        return FigureForecast(figure, scale, measured, None, "figures of this kind are not forecast")
    if why := not_bounded(levels, scale, limits):
        return FigureForecast(figure, scale, measured, None, why)
    if len({level.scale for level in levels}) < 2 and not limits:
        return FigureForecast(figure, scale, measured, None, "measured with one scale only")
    way = _way(figure, scale)
    model = Model(levels, Typical(same=figure.rank_is_client), limits, is_time=figure.is_time)
    return FigureForecast(
        figure,
        scale,
        measured,
        model.forecast(scale),
        curve=tuple(map(CurvePoint, way, model.curve(way))) if curve else (),
        help=() if figure.is_time else tuple(_helps(figure, model, scale, limits)),
        families=model.families,
    )


def _helps(figure: FigureLevels, model: Model, scale: Scale, stated: Mapping[Part, float]) -> list[Help]:
    additions = {
        "mdts": replace(scale, mdts=scale.mdts + 1),
        "osts": replace(scale, osts=max(scale.osts + 1, round(scale.osts * 1.5))),
        "links": replace(scale, link=scale.link * 2),
    }
    told = {part for level in figure.comparable for part in level.busy} | set(stated)
    varied = {name for name in ("mdts", "osts") if len({getattr(level.scale, name) for level in figure.comparable}) > 1}
    return [Help(what, model.gain(scale, additions[part])) for what, part in _HELP if part in told or part in varied]


def _way(figure: FigureLevels, scale: Scale) -> list[Scale]:
    """Return scales from the smallest measured one to the one asked for, in steps of one factor."""
    smallest = min(figure.comparable, key=lambda level: (level.scale.ranks, level.scale.mdts, level.scale.files)).scale
    points = []
    for step in range(_POINTS + 1):
        share = step / _POINTS

        def between(name: str, share: float = share) -> int:
            low, high = max(1, getattr(smallest, name)), max(1, getattr(scale, name))
            return round(low * (high / low) ** share) if getattr(scale, name) else 0

        ranks = between("ranks")
        points.append(
            Scale(
                min(between("clients"), ranks),
                ranks,
                between("mdts"),
                between("osts"),
                between("files"),
                scale.link**share,
                scale.undivided,
            )
        )
    return list(dict.fromkeys(points))
