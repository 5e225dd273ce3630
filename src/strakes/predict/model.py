"""Forecast one measured quantity by a mixture of growth curves: Amdahl's law with different saturation points.

The prior probabilities of the curves are fitted to many file systems (empirical Bayes).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strakes.predict.capacity import evidence_of
from strakes.predict.levels import PARTS, MeasuredLevel, Part, Scale
from strakes.predict.population import Population, fitted

Array = NDArray[np.float64]
# Probability that a forecast's interval contains the value. Intervals of 90 % would be 28 % wider.
COVERAGE = 0.8
# Number of random draws. Each end of an interval has a standard error of 4 % of the posterior's standard deviation.
_DRAWS = 2000
# Tolerance of log rates (1 % of a rate), because benchmarks round rates to two or three digits.
_ROUNDING = 0.01
# Each curve saturates at one of these numbers of ranks. Powers of 2 instead of 4 change forecast errors by 1 %.
BOUNDS = 4.0 ** np.arange(11)
# Sharpness of a curve's bend: 1 is Amdahl's law, infinity a corner. A value of 1 or 3 changes forecast errors by 1 %.
_BEND = 2.0
# Minimum probability for naming a component as the bottleneck. At 67 %, it is twice as probable as all others together.
SURE = 0.67


@dataclass(frozen=True)
class Forecast:
    """Median and 80 % interval of a future measurement.

    ``saturates``: for each component, the probability that it limits the rate.
    """

    median: float
    low: float
    high: float
    saturates: Mapping[Part, float]

    @property
    def likely(self) -> tuple[Part, float] | None:
        """Return the component that probably saturates first, and its probability, or None if it is uncertain."""
        part = max(self.saturates, key=lambda name: self.saturates[name], default=None)
        return (part, self.saturates[part]) if part is not None and self.saturates[part] >= SURE else None


class Model:
    """Posterior distribution of the growth of a measured quantity with the system size.

    A time is forecast by Little's law, as the number of files or ranks divided by a rate.
    """

    def __init__(
        self,
        levels: Sequence[MeasuredLevel],
        stated: Mapping[Part, float] | None = None,
        *,
        is_time: bool = False,
        population: Population | None = None,
    ) -> None:
        self.evidence = evidence_of(levels, {} if is_time else stated or {})
        self._population = population or fitted()
        self._work = None if not is_time else "files" if len({level.scale.files for level in levels}) > 1 else "ranks"
        rates = [self._as_rate(level.scale, level.log_value) for level in levels]
        kept = after_transient([level.scale for level in levels], rates)
        self._scales = [levels[place].scale for place in kept]
        self._rates = np.array([rates[place] for place in kept])
        self._errors = np.array([levels[place].log_error for place in kept])
        self.transient = tuple(level for place, level in enumerate(levels) if place not in kept)

    def forecast(self, scale: Scale) -> Forecast:
        """Return the forecast for a system size."""
        generator = np.random.default_rng(1)
        free = self._draw(scale, generator)
        bounds = [] if self._work else self._bounds(scale)
        caps = [value + error * generator.standard_normal(_DRAWS) for _, value, error in bounds]
        carried = np.array([free, *caps])
        first = carried.argmin(axis=0) - 1
        saturates = {part: float((first == place).mean()) for place, (part, _, _) in enumerate(bounds)}
        rates = np.minimum(carried.min(axis=0), self._concave(scale, generator))
        draws = self._as_rate(scale, rates + self._population.scatter * generator.standard_normal(_DRAWS))
        with np.errstate(over="ignore"):
            low, median, high = np.exp(np.quantile(draws, [(1 - COVERAGE) / 2, 0.5, (1 + COVERAGE) / 2])).tolist()
        return Forecast(median, low, high, saturates)

    def _bounds(self, scale: Scale) -> list[tuple[Part, float, float]]:
        bounds: list[tuple[Part, float, float]] = []
        for part in PARTS:
            if carried := self.evidence.carried(part):
                scales, values, errors = zip(*carried, strict=True)
                units = np.log([each.units(part) for each in (*scales, scale)])
                noise = np.append(np.array(errors) ** 2, 0.0)
                covariance = self._population.targets[1] ** 2 * walk(units) + np.diag(noise)
                mean, deviation = krige(np.array([values]) - units[:-1], covariance)
                bounds.append((part, float(mean[0] + units[-1]), deviation))
            elif promised := self.evidence.promised(part):
                bounds.append((part, promised[0] + math.log(scale.units(part)), promised[1]))
        return bounds

    def _concave(self, scale: Scale, generator: np.random.Generator) -> Array | float:
        last = self._scales[-1]
        for before, rate in zip(self._scales[-2::-1], self._rates[-2::-1], strict=True):
            step = math.log(last.ranks / before.ranks)
            if step > 0 and replace(before, ranks=last.ranks, clients=last.clients) == last:
                noise = math.sqrt(2) / step * self._population.scatter * generator.standard_normal(_DRAWS)
                exponent = np.minimum(1.0, max(0.0, float(self._rates[-1] - rate) / step) + noise)
                distance = math.log(max(1.0, scale.ranks / last.ranks))
                return np.asarray(self._rates[-1] + _linear_growth(last, scale) + (exponent - 1) * distance)
        return math.inf

    def _as_rate(self, scale: Scale, log_value: Any) -> Any:
        return log_value if self._work is None else math.log(max(1, getattr(scale, self._work))) - log_value

    def _draw(self, scale: Scale, generator: np.random.Generator) -> Array:
        means, covariance = prior([*self._scales, scale], self._population)
        covariance += np.diag(np.append(self._errors**2 + self._population.scatter**2, 0.0))
        rest = self._rates - means[:, :-1]
        chances = log_likelihood(rest, covariance[:-1, :-1])
        weights = np.array(self._population.curves) * np.exp(chances - chances.max())
        middle, deviation = krige(rest, covariance)
        curve = np.searchsorted(np.cumsum(weights), weights.sum() * (np.arange(_DRAWS) + 0.5) / _DRAWS)
        return np.asarray((means[:, -1] + middle)[curve] + deviation * generator.standard_normal(_DRAWS))


def prior(scales: Sequence[Scale], population: Population) -> tuple[Array, Array]:
    """Return the prior of log rates at n scales: means (m, n) of m growth curves, their common covariance (n, n)."""
    ranks, mdts, osts, files = np.log([_dimensions(scale) for scale in scales]).T
    means = ranks + (population.exponent - 1) / _BEND * np.log1p((np.exp(ranks) / BOUNDS[:, None]) ** _BEND)
    covariance = population.wander**2 * np.minimum.outer(ranks, ranks)
    for size, (exponent, deviation) in (
        (mdts, population.targets),
        (osts, population.targets),
        (files, population.files),
    ):
        means = means + exponent * size
        covariance = covariance + deviation**2 * walk(size)
    return means, covariance


def log_likelihood(values: Array, covariance: Array) -> Array:
    """Return the log likelihood of each row of ``values``. Each row has an unknown offset."""
    inverse = np.linalg.inv(covariance)
    ones = inverse.sum(axis=0)
    rest = values - (values @ ones / ones.sum())[:, None]
    squares = ((rest @ inverse) * rest).sum(axis=1)
    return np.asarray(-(squares + np.linalg.slogdet(covariance)[1] + math.log(ones.sum())) / 2)


def krige(values: Array, covariance: Array) -> tuple[Array, float]:
    """Return the predicted next value of each row (m, n), and the standard deviation of the predictions.

    ``covariance`` (n + 1, n + 1): covariance of the n values and the predicted value. Method: universal kriging with a
    constant mean (Rasmussen and Williams 2006, 2.7).
    """
    inverse = np.linalg.inv(covariance[:-1, :-1])
    cross, ones = covariance[:-1, -1], inverse.sum(axis=0)
    common = values @ ones / ones.sum()
    means = common + (values - common[:, None]) @ inverse @ cross
    variance = covariance[-1, -1] - cross @ inverse @ cross + (1 - ones @ cross) ** 2 / ones.sum()
    return means, math.sqrt(max(0.0, float(variance)))


def walk(size: Array) -> Array:
    """Return the covariance (n, n) at n logarithms of a random slope (variance 1) plus a walk (variance 1 per unit)."""
    return np.asarray(np.outer(size, size) + np.minimum.outer(size, size))


def after_transient(scales: Sequence[Scale], values: Sequence[float] | Array) -> list[int]:
    """Return the indices of the measurements after the last step in which the rate grew faster than the scale.

    Caches or a warm-up can cause such a step.
    """
    order = sorted(range(len(scales)), key=lambda place: _dimensions(scales[place]))
    kept = [order[-1]]
    for place in reversed(order[:-1]):
        steepest = _linear_growth(scales[place], scales[kept[0]])
        if steepest > 0 and values[kept[0]] - values[place] > steepest + _ROUNDING:
            break
        kept.insert(0, place)
    return kept


def _linear_growth(small: Scale, large: Scale) -> float:
    names = np.log([_dimensions(small), _dimensions(large)])
    return float(np.maximum(0.0, names[1] - names[0]).sum())


def _dimensions(scale: Scale) -> tuple[float, float, float, float]:
    return scale.ranks, scale.units("mdts"), scale.units("osts"), max(1, scale.files)
