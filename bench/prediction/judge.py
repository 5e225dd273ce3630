"""Forecast systems that are left out of the fit; compare the model with simple rules and with reduced models."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np

from bench.prediction.data import Measured, Task, tasks_of
from bench.prediction.fit import fit
from strakes.predict.levels import Scale
from strakes.predict.model import Forecast, Model
from strakes.predict.population import Population

_SIZES = 3


@dataclass(frozen=True)
class Result:
    """One forecast and the published value.

    ``rules``: log error of each simple rule. ``growth``: log of published value / value at the largest known size.
    ``amount``: log of forecast size / largest known size.
    """

    task: Task
    forecast: Forecast
    log_truth: float
    growth: float
    amount: float
    rules: Mapping[str, float]

    @property
    def sizes(self) -> int:
        return min(_SIZES, len(self.task.known))

    @property
    def error(self) -> float:
        """Return the error of the forecast: the absolute log ratio of its median to the published value."""
        return abs(self.log_truth - math.log(self.forecast.median))

    @property
    def covers(self) -> bool:
        return self.forecast.low <= math.exp(self.log_truth) <= self.forecast.high


WHOLE = "whole model"
# Variant of the model -> publications from which its population of systems is taken.
VARIANTS: Mapping[str, tuple[str, ...]] = {
    WHOLE: ("IO500", "CubeFS", "other tables"),
    "no tables of other systems in the population": ("IO500", "CubeFS"),
    "no system with less than 10 clients in the population": ("IO500",),
}


def leave_out(figures: Sequence[Measured], sources: Sequence[str] = VARIANTS[WHOLE]) -> list[Result]:
    """Return forecasts for each owner's figures, from a population fitted to all other owners."""
    results = []
    fitted = [figure for figure in figures if figure.source in sources]
    for owner in sorted({figure.owner for figure in figures}):
        others = [figure for figure in fitted if figure.owner != owner]
        population, exponents = fit(others), _exponents(others)
        for figure in figures:
            if figure.owner == owner:
                results += [forecast(task, population, exponents) for task in tasks_of(figure)]
    return results


def forecast(task: Task, population: Population, exponents: Mapping[str, float] | None = None) -> Result:
    """Return the forecast of a task and of the simple rules."""
    figure, last = task.figure, task.known[-1]
    learned = Model(figure.levels(task.known), is_time=figure.is_time, population=population)
    said = learned.forecast(figure.scales[task.asked])
    growth = figure.log_values[task.asked] - figure.log_values[last]
    amount = _amount(figure.scales[task.asked]) - _amount(figure.scales[last])
    return Result(
        task, said, figure.log_values[task.asked], growth, amount, dict(_rules(task, growth, amount, exponents))
    )


def _rules(
    task: Task, growth: float, amount: float, exponents: Mapping[str, float] | None
) -> Iterator[tuple[str, float]]:
    figure, small, large = task.figure, task.figure.scales[task.known[-1]], task.figure.scales[task.asked]
    yield "constant", abs(growth)
    yield "linear in ranks", abs(growth - amount)
    if exponents is not None:
        nodes = math.log(large.clients / small.clients) if large.clients != small.clients else amount
        yield "power law of others", abs(growth - exponents.get(figure.kind, exponents.get("", 0.0)) * nodes)
    if len(task.known) > 1:
        sizes = [_amount(figure.scales[place]) for place in (*task.known, task.asked)]
        slope, offset = np.polyfit(sizes[:-1], [figure.log_values[place] for place in task.known], 1)
        yield "its own power law", abs(figure.log_values[task.asked] - offset - slope * sizes[-1])


def _amount(scale: Scale) -> float:
    return math.log(max(scale.ranks * scale.mdts, scale.files))


def _exponents(figures: Sequence[Measured]) -> dict[str, float]:
    seen = defaultdict(list)
    for figure in figures:
        for task in tasks_of(figure)[:1] if figure.source == "IO500" else ():
            small, large = figure.scales[task.known[0]], figure.scales[task.asked]
            growth = figure.log_values[task.asked] - figure.log_values[task.known[0]]
            for kind in (figure.kind, ""):
                seen[kind].append(growth / math.log(large.clients / small.clients))
    return {kind: median(values) for kind, values in seen.items()}


@dataclass(frozen=True)
class Summary:
    """Errors of forecasts: median factor, mean absolute log error, share inside intervals, and factors of simple rules.

    ``hindsight``: error factor of the best exponent for these results, which no forecast could know.
    """

    count: int
    factor: float
    mean: float
    inside: float
    rules: Mapping[str, float]
    hindsight: float


def summarise(results: Sequence[Result]) -> Summary:
    """Return the summary of results, with the rules that apply to all of them."""
    growths, amounts = np.array([(each.growth, each.amount) for each in results]).T
    exponents = np.linspace(-0.5, 1.5, 201)
    return Summary(
        len(results),
        math.exp(median(each.error for each in results)),
        fmean(each.error for each in results),
        fmean(each.covers for each in results),
        {
            name: math.exp(median(each.rules[name] for each in results))
            for name in results[0].rules
            if all(name in each.rules for each in results)
        },
        math.exp(min(np.median(abs(growths - exponent * amounts)) for exponent in exponents)),
    )
