"""Forecast systems that are left out of the fit; compare the model with simple rules and with reduced models."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any
from unittest.mock import patch

import numpy as np

from bench.prediction.data import Measured, Task, tasks_of
from bench.prediction.fit import NORMAL, fit, population_of
from strakes.predict import model
from strakes.predict.levels import Scale
from strakes.predict.model import Array, Forecast, Model
from strakes.predict.population import Population

Ends = tuple[tuple[float, float], ...]
_SIZES = 3


@dataclass(frozen=True)
class Result:
    """One forecast and the published value. ``rules``: simple rule -> log error factor of its forecast."""

    task: Task
    forecast: Forecast
    log_truth: float
    rules: Mapping[str, float]

    @property
    def sizes(self) -> int:
        """Return the number of known sizes, at most three."""
        return min(_SIZES, len(self.task.known))

    @property
    def error(self) -> float:
        """Return the error of the forecast: the absolute log ratio of its median to the published value."""
        return abs(self.log_truth - math.log(self.forecast.median))

    @property
    def residual(self) -> float:
        """Return the distance of the published value from the forecast's median, in standard deviations."""
        off = self.log_truth - math.log(self.forecast.median)
        end = self.forecast.high if off > 0 else self.forecast.low
        return NORMAL * off / max(1e-9, abs(math.log(end / self.forecast.median)))

    @property
    def covers(self) -> bool:
        """Return whether the interval of the forecast contains the published value."""
        return self.forecast.low <= math.exp(self.log_truth) <= self.forecast.high

    def is_inside(self, ends: Ends) -> bool:
        """Return whether an interval with these ends (in standard deviations) would contain the published value."""
        low, high = ends[self.sizes - 1]
        return -low <= self.residual <= high


@dataclass(frozen=True)
class Variant:
    """A model without one part: parameters fixed in the fit, data ``sources`` of the fit, and replaced functions."""

    fixed: Mapping[int, float] = field(default_factory=dict)
    replaced: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    sources: tuple[str, ...] = ("IO500", "CubeFS", "other tables")


def _constant(size: Array, deviation: float) -> Array:
    """Return the covariance of growth if a system's exponent is the same at all sizes."""
    return np.asarray(deviation**2 * np.outer(size, size))


WHOLE = "whole model"
VARIANTS: Mapping[str, Variant] = {
    WHOLE: Variant(),
    "no tables of other systems in the population": Variant(sources=("IO500", "CubeFS")),
    "no system with less than 10 clients in the population": Variant(sources=("IO500",)),
    "one exponent for all file systems": Variant({0: -4.0}),
    "difference in exponents that does not wander": Variant(replaced={"exponents": _constant}),
    "exponent in ranks that does not fall from 1": Variant({1: 8.0}),
    "little scatter (3 %)": Variant({2: math.log(0.03)}),
    "growth steeper than linear kept": Variant(replaced={"after_transient": lambda scales, _: [*range(len(scales))]}),
    "growth steeper than in the last step": Variant(replaced={"steepest_of": lambda *_: (1.0, 0.0)}),
}


def leave_out(figures: Sequence[Measured], variant: Variant = VARIANTS[WHOLE]) -> list[Result]:
    """Return forecasts for each owner's figures, from a population fitted to all other owners."""
    with ExitStack() as stack:
        for name, function in variant.replaced.items():
            stack.enter_context(patch.object(model, name, function))
        results = []
        fitted = [figure for figure in figures if figure.source in variant.sources]
        start = fit(fitted, variant.fixed)
        for owner in sorted({figure.owner for figure in figures}):
            others = [figure for figure in fitted if figure.owner != owner]
            population = population_of(fit(others, variant.fixed, start))
            exponents = _exponents(others)
            for figure in figures:
                if figure.owner == owner:
                    results += [forecast(task, population, exponents) for task in tasks_of(figure)]
        return results


def forecast(task: Task, population: Population, exponents: Mapping[str, float] | None = None) -> Result:
    """Return the forecast of a task and of the simple rules."""
    figure = task.figure
    learned = Model(figure.levels(task.known), is_time=figure.is_time, population=population)
    said = learned.forecast(figure.scales[task.asked])
    return Result(task, said, figure.log_values[task.asked], dict(_rules(task, exponents or {})))


def _rules(task: Task, exponents: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    figure, last = task.figure, task.known[-1]
    truth = figure.log_values[task.asked] - figure.log_values[last]
    small, large = figure.scales[last], figure.scales[task.asked]
    amount = _amount(large) - _amount(small)
    yield "constant", abs(truth)
    yield "linear in ranks", abs(truth - amount)
    if figure.source != "series":
        nodes = math.log(large.clients / small.clients) if large.clients != small.clients else amount
        yield "power law of others", abs(truth - exponents.get(figure.kind, exponents.get("", 0.0)) * nodes)
    if len(task.known) > 1:
        sizes = [_amount(figure.scales[place]) for place in (*task.known, task.asked)]
        slope, offset = np.polyfit(sizes[:-1], [figure.log_values[place] for place in task.known], 1)
        yield "its own power law", abs(figure.log_values[task.asked] - offset - slope * sizes[-1])


def _amount(scale: Scale) -> float:
    return math.log(max(scale.ranks * scale.mdts, scale.files))


def _exponents(figures: Sequence[Measured]) -> dict[str, float]:
    """Return IO500 phase ("": all phases) -> median exponent of the rate's growth with the number of nodes."""
    seen = defaultdict(list)
    for figure in figures:
        for task in tasks_of(figure)[:1] if figure.source == "IO500" else ():
            small, large = figure.scales[task.known[0]], figure.scales[task.asked]
            growth = figure.log_values[task.asked] - figure.log_values[task.known[0]]
            for kind in (figure.kind, ""):
                seen[kind].append(growth / math.log(large.clients / small.clients))
    return {kind: median(values) for kind, values in seen.items()}


def ends_of(results: Sequence[Result], without: str = "") -> Ends:
    """Return the ends of 80 % intervals by number of known sizes, from the residuals of all owners but one."""
    ends = []
    for sizes in range(1, _SIZES + 1):
        residuals = [each.residual for each in results if each.sizes == sizes and each.task.figure.owner != without]
        low, high = np.quantile(residuals, [0.1, 0.9]) if residuals else (-NORMAL, NORMAL)
        # Intervals are never narrower than for a normal distribution.
        ends.append((max(NORMAL, float(-low)), max(NORMAL, float(high))))
    return tuple(ends)


@dataclass(frozen=True)
class Summary:
    """Median error factor, mean absolute log error, share of values inside intervals, error factors of simple rules."""

    count: int
    factor: float
    mean: float
    inside: float
    rules: Mapping[str, float]


def summarise(results: Sequence[Result], every: Sequence[Result]) -> Summary:
    """Return the summary of results. An owner's intervals come from the residuals of all other owners in ``every``."""
    ends = {owner: ends_of(every, owner) for owner in {each.task.figure.owner for each in results}}
    return Summary(
        len(results),
        math.exp(median(each.error for each in results)),
        fmean(each.error for each in results),
        fmean(each.is_inside(ends[each.task.figure.owner]) for each in results),
        {name: math.exp(median(each.rules[name] for each in results)) for name in results[0].rules},
    )
