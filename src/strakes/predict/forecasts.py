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
from strakes.predict.scale import PART_NAMES, Part, Scale
from strakes.predict.way import way_to

# What could be added to a system, with the part that it relieves.
_HELP: Sequence[tuple[str, Part]] = (
    ("one more metadata target", "mdts"),
    ("half as many data targets again", "osts"),
    ("links of twice the speed", "links"),
)
# A further process pays where it has as many figures to forecast. More than some are unfriendly on a shared node.
_WORTH_A_PROCESS, _MOST_PROCESSES = 20, 8


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
    ``notes``: what was not believed of counters and data sheets, and what else has to be known, as sentences.
    """

    figure: FigureLevels
    scale: Scale
    measured: tuple[Scale, float]
    forecast: Forecast | None
    why: str = ""
    curve: tuple[CurvePoint, ...] = ()
    help: tuple[Help, ...] = ()
    families: Mapping[str, float] | None = None
    notes: tuple[str, ...] = ()


def forecast_figures(
    figures: Sequence[FigureLevels], asked: Asked, stated: Stated, *, curves: bool = True, processes: int | None = None
) -> tuple[FigureForecast, ...]:
    """Return one for each figure, in their order, with or without the way there.

    Many figures are shared among ``processes``, by default as many as there are processors; the forecasts are the same.
    Raises BadInputError where the question lacks something.
    """
    forecast = partial(_forecast, asked=asked, stated=stated, link=link_factor(asked, stated), curve=curves)
    if processes is None:
        processes = min(len(os.sched_getaffinity(0)), len(figures) // _WORTH_A_PROCESS, _MOST_PROCESSES)
    return map_in_processes(forecast, figures, processes)


def _forecast(figure: FigureLevels, asked: Asked, stated: Stated, link: float, *, curve: bool) -> FigureForecast:
    limits = stated.of(figure.unit)
    outermost, levels = figure.outermost, figure.comparable
    measured = outermost.scale, math.exp(outermost.log_value)
    scale = asked.scale(outermost.scale, link, rank_is_client=figure.rank_is_client or figure.local)
    if figure.local:
        scale = replace(scale, clients=1)
    if figure.unit not in ("op/s", "B/s", "s"):
        return FigureForecast(figure, scale, measured, None, "figures of this kind are not forecast")
    if why := not_bounded(levels, scale, limits):
        return FigureForecast(figure, scale, measured, None, why)
    if len({level.scale for level in levels}) < 2 and not limits:
        return FigureForecast(figure, scale, measured, None, "measured at one size only")
    way = way_to(figure, scale)
    model = Model(levels, Typical(same=figure.rank_is_client), limits, is_time=figure.is_time)
    return FigureForecast(
        figure,
        scale,
        measured,
        model.forecast(scale),
        curve=tuple(map(CurvePoint, way, model.curve(way))) if curve else (),
        help=() if figure.is_time else tuple(_helps(figure, model, scale)),
        families=model.families,
        notes=tuple(_notes(figure, model, scale)),
    )


def _notes(figure: FigureLevels, model: Model, scale: Scale) -> list[str]:
    notes = [
        f"Left out: how busy {PART_NAMES[part]} were. More was measured than that allows."
        for part in model.sifted.counters
    ]
    if model.sifted.always_busy:
        notes.append(
            "Left out: how busy the clients' processors were. That was so with every number of clients, and programs "
            "that wait can keep them busy, too."
        )
    notes += [
        f"Left out: the limit stated for {PART_NAMES[part]}. More than that was measured."
        for part in model.sifted.limits
    ]
    if figure.room_for_files and scale.files > figure.room_for_files:
        notes.append(f"The measured file system has room for {figure.room_for_files:,} files only.")
    return notes


def _helps(figure: FigureLevels, model: Model, scale: Scale) -> list[Help]:
    additions = {
        "mdts": replace(scale, mdts=scale.mdts + 1),
        "osts": replace(scale, osts=max(scale.osts + 1, round(scale.osts * 1.5))),
        "links": replace(scale, link=scale.link * 2),
    }
    # How many data targets are more than some is known only where that some is.
    told = model.told if scale.osts else model.told - {"osts"}
    varied = {name for name in ("mdts", "osts") if len({getattr(level.scale, name) for level in figure.comparable}) > 1}
    return [Help(what, model.gain(scale, additions[part])) for what, part in _HELP if part in told or part in varied]
