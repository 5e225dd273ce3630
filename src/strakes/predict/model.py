"""Forecast one figure by a power law whose exponent has a prior from a population of file systems (empirical Bayes).

The log rate is a Gaussian process over the log scale. Its mean grows in proportion to the first ranks, and more slowly
with further ranks. Measurements at several scales correct the exponent for the file system at hand.
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
# Probability that a forecast's interval contains the value. At 90 % it would be 1.28 times as wide.
COVERAGE = 0.8
# End of an 80 % interval of a normal distribution, in standard deviations from the median.
_NORMAL_END = 1.2816
# Number of random draws. The ends of an interval then have a standard error of 4 % of the standard deviation.
_DRAWS = 2000
# Tolerance of log rates (1 % of a rate), because tools print results with two or three digits.
_ROUNDING = 0.01
# Correlation length of the scaling exponent in log(ranks): 2 is a factor of 7.4 in ranks. Half or twice the length
# changes forecast errors by about 1 % (cross-validation).
_MEMORY = 2.0
# Report a component as the first to saturate only if it is twice as likely as all others together.
SURE = 0.67


@dataclass(frozen=True)
class Forecast:
    """Median and 80 % interval of a future measurement, in the unit of the figure.

    ``saturates``: component with a counter or a stated limit -> probability that it limits the rate.
    """

    median: float
    low: float
    high: float
    saturates: Mapping[Part, float]

    @property
    def likely(self) -> tuple[Part, float] | None:
        """Return the component that most probably saturates first and its probability, or None below SURE."""
        part = max(self.saturates, key=lambda name: self.saturates[name], default=None)
        return (part, self.saturates[part]) if part is not None and self.saturates[part] >= SURE else None


class Model:
    """Posterior distribution of a figure's growth, given its measurements (``levels``).

    A time is forecast as a rate, work / time (Little's law). Work is the number of files if it varies, else of ranks.
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
        kept = after_transient([level.scale for level in levels], rates) if levels else []
        self._scales = [levels[place].scale for place in kept]
        self._rates = np.array([rates[place] for place in kept])
        self._errors = np.array([levels[place].log_error for place in kept])
        # Small scales that are left out, because growth after them was steeper than linear.
        self.transient = tuple(level for place, level in enumerate(levels) if place not in kept)

    def forecast(self, scale: Scale) -> Forecast:
        """Return the forecast of the figure at a scale."""
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
                mean, deviation = krige(np.array(values) - units[:-1], covariance)
                bounds.append((part, mean + float(units[-1]), deviation))
            elif promised := self.evidence.promised(part):
                bounds.append((part, promised[0] + math.log(scale.units(part)), promised[1]))
        return bounds

    def _concave(self, scale: Scale, generator: np.random.Generator) -> Array:
        """Return random draws of an upper bound of the log rate: growth as in the last step, linear at most."""
        last = self._scales[-1]
        steepest, per_scatter = steepest_of(self._scales, self._rates)
        exponent = np.minimum(
            1.0, steepest + per_scatter * self._population.scatter * generator.standard_normal(_DRAWS)
        )
        distance = math.log(max(1.0, scale.ranks / last.ranks))
        return np.asarray(self._rates[-1] + _linear_growth(last, scale) + (exponent - 1) * distance)

    def _as_rate(self, scale: Scale, log_value: Any) -> Any:
        return log_value if self._work is None else math.log(max(1, getattr(scale, self._work))) - log_value

    def _draw(self, scale: Scale, generator: np.random.Generator) -> Array:
        mean, covariance = self.prior([*self._scales, scale])
        noise = np.append(self._errors**2 + self._population.scatter**2, 0.0)
        middle, deviation = krige(self._rates - mean[:-1], covariance + np.diag(noise))
        sizes = min(len(set(self._scales)), len(self._population.ends))
        low, high = self._population.ends[sizes - 1]
        normal = generator.standard_normal(_DRAWS)
        return np.asarray(mean[-1] + middle + deviation * normal * np.where(normal < 0, low, high) / _NORMAL_END)

    def prior(self, scales: Sequence[Scale]) -> tuple[Array, Array]:
        """Return the prior mean (n) and covariance (n, n) of log rates at n scales, up to a constant common to all."""
        population = self._population
        ranks, mdts, osts, files = np.log([_dimensions(scale) for scale in scales]).T
        mean = -population.length * np.expm1(-ranks / population.length)
        covariance = exponents(ranks, population.deviation)
        for size, (exponent, deviation) in (
            (mdts, population.targets),
            (osts, population.targets),
            (files, population.files),
        ):
            mean = mean + exponent * size
            covariance = covariance + deviation**2 * walk(size)
        return mean, covariance


def exponents(size: Array, deviation: float) -> Array:
    """Return the covariance (n, n) of log rates at n log sizes if exponents differ by an Ornstein-Uhlenbeck process.

    It starts at 0. ``deviation``: standard deviation of the exponents of file systems at large sizes.
    """
    late = 2 - np.exp(-size / _MEMORY)
    near = np.exp(-np.abs(np.subtract.outer(size, size)) / _MEMORY)
    both = 2 * np.minimum.outer(size, size) / _MEMORY + 2 - near - np.outer(late, late)
    return np.asarray((deviation * _MEMORY) ** 2 * both)


def krige(values: Array, covariance: Array) -> tuple[float, float]:
    """Return mean and standard deviation of the next value. ``covariance``: of ``values`` and the next value.

    All values share an unknown constant with a flat prior (universal kriging; Rasmussen and Williams 2006, 2.7).
    """
    inverse = np.linalg.inv(covariance[:-1, :-1])
    cross, ones = covariance[:-1, -1], np.ones(len(values))
    precision = ones @ inverse @ ones
    common = ones @ inverse @ values / precision
    rest = values - common
    mean = common + cross @ inverse @ rest
    variance = covariance[-1, -1] - cross @ inverse @ cross + (1 - ones @ inverse @ cross) ** 2 / precision
    return float(mean), math.sqrt(max(0.0, float(variance)))


def walk(size: Array) -> Array:
    """Return the covariance (n, n) at n log sizes of a random slope (variance 1) plus a random walk (variance size)."""
    return np.asarray(np.outer(size, size) + np.minimum.outer(size, size))


def after_transient(scales: Sequence[Scale], values: Sequence[float] | Array) -> list[int]:
    """Return the indices of the levels after the last step that was steeper than linear.

    Steeper growth is a transient, from caches, a warm-up or a first size below one node.
    """
    order = sorted(range(len(scales)), key=lambda place: _dimensions(scales[place]))
    kept = [order[-1]]
    for place in reversed(order[:-1]):
        steepest = _linear_growth(scales[place], scales[kept[0]])
        if steepest > 0 and values[kept[0]] - values[place] > steepest + _ROUNDING:
            break
        kept.insert(0, place)
    return kept


def steepest_of(scales: Sequence[Scale], rates: Array) -> tuple[float, float]:
    """Return the scaling exponent of the last step that changed only ranks, and its standard error for a scatter of 1.

    A falling rate counts as exponent 0, because it may rise again at the next size.
    """
    last = scales[-1]
    for place in range(len(scales) - 2, -1, -1):
        step = math.log(last.ranks / scales[place].ranks)
        if step > 0 and replace(scales[place], ranks=last.ranks, clients=last.clients) == last:
            return max(0.0, float(rates[-1] - rates[place]) / step), math.sqrt(2) / step
    return 1.0, 0.0


def _linear_growth(small: Scale, large: Scale) -> float:
    names = np.log([_dimensions(small), _dimensions(large)])
    return float(np.maximum(0.0, names[1] - names[0]).sum())


def _dimensions(scale: Scale) -> tuple[float, float, float, float]:
    return scale.ranks, scale.units("mdts"), scale.units("osts"), max(1, scale.files)
