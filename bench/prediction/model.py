"""The model of strakes on the three yardsticks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from bench.prediction import io500, made_up, series, small
from strakes.predict.families import Typical
from strakes.predict.gather import TYPICAL_SCATTER, level_from, settle_errors
from strakes.predict.model import Forecast, Model
from strakes.predict.scale import MeasuredLevel, Part, Scale

# How many pairs the common exponent is worth beside a phase's own.
# Submissions of one system on different days, with as many nodes and ranks, differ by 7 % in the median.
_SUBMISSION_SCATTER = 0.07
_SHRINK = 40
# Intervals are judged at these shares, too.
OTHER_SHARES = (0.5, 0.9)
_PARTS: Mapping[made_up.Part, Part] = {
    "clients": "clients",
    "links": "links",
    "mdts": "mdts",
    "osts": "osts",
    "lock": "shared",
}


def typical_of(pairs: Sequence[io500.Pair], phase: str) -> Typical:
    """Return the exponent of the rate in the number of ranks that is typical of a phase, over pairs of small and large.

    Its deviation is that of single phases of single systems.
    """
    exponents = [
        (
            name,
            math.log(pair.large.rates[name] / pair.small.rates[name]) / math.log(pair.large.tasks / pair.small.tasks),
        )
        for pair in pairs
        for name in pair.phases
    ]
    every = [exponent for _, exponent in exponents]
    own = [exponent for name, exponent in exponents if name == phase]
    typical = median(own or every)
    mean = (len(own) * typical + _SHRINK * median(every)) / (len(own) + _SHRINK)
    within = sorted(abs(exponent - mean) for exponent in every)[round(0.8 * (len(every) - 1))] / 1.2816
    return Typical(clients=(mean, within), ranks_each=(mean, within), same=True)


def learn_io500(pairs: Sequence[io500.Pair]) -> io500.Forecaster:
    """Take what is typical from the pairs, and the one level that a small submission is."""

    def forecast(
        small: io500.Submission, nodes: int, tasks: int, phases: Sequence[str]
    ) -> Mapping[str, io500.Forecast]:
        forecasts = {}
        for phase in phases:
            level = MeasuredLevel(
                Scale(clients=small.nodes, ranks=small.tasks), math.log(small.rates[phase]), _SUBMISSION_SCATTER
            )
            said = Model([level], typical_of(pairs, phase)).forecast(Scale(clients=nodes, ranks=tasks))
            forecasts[phase] = io500.Forecast(said.median, *_ends(said))
        return forecasts

    return forecast


@dataclass(frozen=True)
class Judged:
    """A forecast beside the truth. ``named``: what saturates first, right (True), wrong, or not at all (None).

    ``inside``: whether intervals made for other shares than 80 % hold the truth, by that share.
    """

    name: str
    forecast: Forecast
    truth: float
    named: bool | None = None
    inside: Mapping[float, bool] = field(default_factory=dict)

    @property
    def factor(self) -> float:
        """How many times too large or too small, at least 1."""
        return math.exp(abs(math.log(self.forecast.median / self.truth)))

    @property
    def covered(self) -> bool:
        """Whether the interval holds the truth."""
        return self.forecast.low <= self.truth <= self.forecast.high


def judge_made_up(task: made_up.Task, sheet: Mapping[made_up.Part, float] | None = None) -> Judged:
    """Forecast a made-up system from what was measured of it, and what a data sheet states beside."""
    stated = {_PARTS[part]: capacity for part, capacity in (sheet or {}).items()}
    model, scale = Model(_levels(task.levels), stated=stated), _scale(task.asked)
    forecast, truth = model.forecast(scale), task.system.rate(task.asked)
    named = None if forecast.saturates is None else forecast.saturates in parts_of(task.scarce)
    others = {share: model.forecast(scale, share) for share in OTHER_SHARES}
    inside = {share: other.low <= truth <= other.high for share, other in others.items()}
    return Judged(task.system.shape, forecast, truth, named, inside)


def parts_of(parts: Iterable[made_up.Part]) -> set[Part]:
    """Return them as the model calls them."""
    return {_PARTS[part] for part in parts}


def judge_small(task: small.SmallTask) -> list[Judged]:
    """Forecast a made-up system of which very little was measured, at every size asked for."""
    levels = _levels(task.levels)
    model = Model([replace(level, scale=replace(level.scale, undivided=True)) for level in levels])
    return [
        Judged(task.system.shape, model.forecast(replace(_scale(size), undivided=True)), truth)
        for size, truth in task.asked
    ]


def judge_series(one: series.Series) -> Judged:
    """Forecast the outermost value of a published series."""
    is_time = one.unit in ("s", "minutes")
    # A time for a fixed amount of work is a rate seen from behind; a time that grows with the scale is one of waiting.
    inverse = is_time and one.scale == "mds"
    sign = -1 if inverse else 1
    levels = [MeasuredLevel(_along(one.scale, x), sign * math.log(value), TYPICAL_SCATTER) for x, value in one.shown]
    said = Model(levels, is_time=is_time and not inverse).forecast(_along(one.scale, one.left_out[0]))
    low, high = _ends(said)
    if inverse:
        forecast = Forecast(1 / said.median, 1 / high, 1 / low, {})
    else:
        forecast = Forecast(said.median, low, high, {})
    return Judged(one.name, forecast, one.left_out[1])


def _ends(forecast: Forecast) -> tuple[float, float]:
    """Return the interval for a measurement: what is published was measured."""
    assert forecast.measurement is not None
    return forecast.measurement


def _along(scale: str, x: float) -> Scale:
    number = round(x)
    if scale == "mds":
        return Scale(clients=8, ranks=8, mdts=number)
    if scale == "files":
        return Scale(files=number)
    return Scale(ranks=number) if scale == "processes" else Scale(clients=number, ranks=number)


def _scale(size: made_up.Size) -> Scale:
    return Scale(clients=size.clients, ranks=size.ranks, mdts=round(size.mdts), osts=size.osts)


def _levels(levels: Sequence[made_up.Level]) -> tuple[MeasuredLevel, ...]:
    """Return them as runs would give them."""
    return settle_errors([_level(level) for level in levels])


def _level(level: made_up.Level) -> MeasuredLevel:
    busy = {_PARTS[part]: share for part, share in level.busy.items()}
    return level_from([math.log(rate) for rate in level.rates], _scale(level.size), busy)
