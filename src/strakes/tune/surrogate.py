"""What is known of all settings after some were measured: a Gaussian process over the logarithms of the rates.

The covariance of two settings is a part that adds up over the factors (main effects), a part that is a product over them (what they do
together), and a part of each setting alone, that no neighbour tells of; every factor has a length of its own, so one that does not matter
is found to be long (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, 5.1; Duvenaud et al., Additive Gaussian
Processes, 2011). Runs of one block share an error, which takes out drift as pairs do. A run with a share of the data tells of the same
setting too, less a difference that is smooth in the settings, and scatters as such runs do (Kennedy and
O'Hagan, Biometrika 87 (2000) 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from strakes.tune.space import Space

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

# Where the search for the hyperparameters begins, and how far from there they are thought to be: factors of e^1, half of the spread.
_SPREAD = 1.0
_STEPS = (0.8, 0.4, 0.2)
_JITTER = 1e-9


@dataclass(frozen=True)
class Run:
    """One repetition: the number of its setting, its value (larger is better) and its block; ``low``: with a share of the data."""

    setting: int
    value: float
    block: int
    low: bool = False


@dataclass(frozen=True)
class _Scales:
    """Hyperparameters. ``lengths``: one for each factor, in levels; the others are standard deviations of logarithms."""

    lengths: tuple[float, ...]
    main: float = 0.4
    joint: float = 0.3
    own: float = 0.08
    noise: float = 0.1
    block: float = 0.05
    low: float = 0.15
    noise_low: float = 0.15

    def logarithms(self) -> Array:
        return np.log([*self.lengths, self.main, self.joint, self.own, self.noise, self.block, self.low, self.noise_low])

    @classmethod
    def of(cls, logarithms: Array) -> _Scales:
        values = [float(value) for value in np.exp(logarithms)]
        return cls(tuple(values[:-7]), *values[-7:])


class Geometry:
    """Distances between the levels of the factors, for a whole space; made once."""

    def __init__(self, space: Space) -> None:
        places = [[factor.levels.index(level) for factor, level in zip(space.factors, point, strict=True)] for point in space.points]
        self.levels: Numbers = np.array(places, dtype=np.int64)
        self.distances: list[Array] = []
        for factor in space.factors:
            place = np.arange(len(factor.levels), dtype=np.float64)
            apart = np.abs(place[:, None] - place[None, :])
            self.distances.append(apart if factor.ordered else np.minimum(apart, 1.0) * 2.0)

    def start(self) -> _Scales:
        return _Scales(tuple(3.0 for _ in self.distances))

    def covariance(self, scales: _Scales, a: Numbers, b: Numbers) -> tuple[Array, Array]:
        """Of settings ``a`` with settings ``b``: all parts together, and the product alone with variance 1."""
        total: Array = np.zeros((len(a), len(b)))
        joint: Array = np.ones((len(a), len(b)))
        for factor, distance in enumerate(self.distances):
            table = np.exp(-distance / scales.lengths[factor])
            one = table[np.ix_(self.levels[a, factor], self.levels[b, factor])]
            total += one
            joint *= one
        total *= scales.main**2 / max(1, len(self.distances))
        return total + scales.joint**2 * joint + scales.own**2 * (a[:, None] == b[None, :]), joint


class Surrogate:
    """Fitted to runs. Raises ValueError without a run, or for a value that is not positive."""

    def __init__(self, geometry: Geometry, runs: Sequence[Run]) -> None:
        if not runs or min(run.value for run in runs) <= 0:
            raise ValueError("a surrogate needs runs, and positive values")
        self._geometry = geometry
        self._settings: Numbers = np.array([run.setting for run in runs], dtype=np.int64)
        self._low: Array = np.array([float(run.low) for run in runs])
        blocks = np.array([run.block for run in runs])
        self._same_block: Array = (blocks[:, None] == blocks[None, :]).astype(np.float64)
        self._both_low: Array = self._low[:, None] * self._low[None, :]
        logs: Array = np.log([run.value for run in runs])
        full = logs[self._low == 0]
        self._centre = float(np.median(full if len(full) else logs))
        # A share of the data may be slower or faster as a whole.
        self._shift = float(np.median(logs[self._low == 1])) - self._centre if len(full) and self._low.any() else 0.0
        self._logs = logs - self._centre - self._shift * self._low
        self.scales = self._fitted()
        self._factor, self._weights, _ = self._solved(self.scales)

    def mean(self, settings: Numbers | None = None) -> Array:
        """Expected logarithm of the value at full fidelity, for each setting."""
        chosen = self._all if settings is None else settings
        result: Array = self._cross(chosen) @ self._weights + self._centre
        return result

    def joint(self, settings: Numbers) -> tuple[Array, Array]:
        """Mean and covariance of several settings."""
        cross = self._cross(settings)
        prior, _ = self._geometry.covariance(self.scales, settings, settings)
        half = np.linalg.solve(self._factor, cross.T)
        return cross @ self._weights + self._centre, prior - half.T @ half

    def samples(self, settings: Numbers, count: int, generator: np.random.Generator) -> Array:
        """``count`` functions drawn from what is known, one row each."""
        mean, covariance = self.joint(settings)
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        result: Array = mean + generator.standard_normal((count, len(settings))) @ root.T
        return result

    @cached_property
    def _all(self) -> Numbers:
        return np.arange(len(self._geometry.levels))

    def _cross(self, settings: Numbers) -> Array:
        return self._geometry.covariance(self.scales, settings, self._settings)[0]

    def _solved(self, scales: _Scales) -> tuple[Array, Array, float]:
        """Cholesky factor, weights, and the logarithm of the likelihood."""
        covariance, joint = self._geometry.covariance(scales, self._settings, self._settings)
        covariance += scales.block**2 * self._same_block
        covariance += self._both_low * scales.low**2 * joint
        # Less data scatter more: what cheap runs differ by says nothing of the others.
        covariance[np.diag_indices_from(covariance)] += np.where(self._low == 1, scales.noise_low, scales.noise) ** 2 + _JITTER
        factor = np.linalg.cholesky(covariance)
        half = np.linalg.solve(factor, self._logs)
        weights = np.linalg.solve(factor.T, half)
        return np.asarray(factor, np.float64), np.asarray(weights, np.float64), float(-0.5 * half @ half - np.log(np.diag(factor)).sum())

    def _fitted(self) -> _Scales:
        """The most probable hyperparameters near the usual ones: one after the other, in ever smaller steps."""
        usual = self._geometry.start().logarithms()
        # With no run of low fidelity its scales change nothing.
        searched = range(len(usual) - (0 if self._low.any() else 2))

        def goodness(place: Array) -> float:
            return self._solved(_Scales.of(place))[2] - 0.5 * float(((place - usual) ** 2).sum()) / _SPREAD**2

        place = usual
        best = goodness(place)
        for step in _STEPS:
            for which in searched:
                for direction in (step, -step):
                    tried = place.copy()
                    tried[which] += direction
                    value = goodness(tried)
                    if value > best:
                        place, best = tried, value
                        break
        return _Scales.of(place)
