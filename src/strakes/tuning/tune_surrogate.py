"""Model of the rate as a function of the settings: a Gaussian process over the logarithm of the rate.

The covariance has an additive part (main effects), a product part (interactions) and an independent part. Every factor
has a length scale (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, 5.1; Duvenaud et al.,
Additive Gaussian Processes, 2011). Runs of a block share a random error. Errors follow Student's t-distribution, so
outliers count less (Lange, Little and Taylor, JASA 84 (1989) 881). Before the fit, low rates are compressed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strakes.tuning.tune_space import SearchSpace

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

# Prior standard deviation of log hyperparameters. At twice this standard deviation, a few runs can mislead the fit.
_SPREAD = 1.0
# Number of optimisation steps in each round of the fit. After a round, the weights of runs are updated.
_ROUNDS = (14, 8, 8)
# Rprop (Riedmiller and Braun, ICNN 1993, 586): first step, limits of steps, factors if the slope keeps or changes sign.
_FIRST_STEP, _STEPS, _FASTER, _SLOWER = 0.3, (0.01, 0.6), 1.3, 0.5
# Degrees of freedom of the errors (Lange, Little and Taylor, 1989).
_TAIL = 4.0
# Log rates below the 0.9 quantile are compressed: a distance of 1 from this quantile becomes log(2) = 0.69.
_FAR, _GOOD = 1.0, 0.9
# Largest exponent, against overflow of exp. No measured rate is e^30 times as high as another rate.
_DEEPEST = 30.0
_JITTER = 1e-9  # Variance that is added to each run to make the matrix invertible. It is far below any measured noise.


@dataclass(frozen=True)
class Evaluation:
    """One trial: index of the setting, measured value (larger is better), and number of the block."""

    setting: int
    value: float
    block: int


@dataclass(frozen=True)
class _Scales:
    """Hyperparameters of the Gaussian process: length scales of the factors, and standard deviations of log rates."""

    lengths: tuple[float, ...]
    main: float = 0.4
    joint: float = 0.3
    own: float = 0.08
    noise: float = 0.1
    block: float = 0.05

    def logarithms(self) -> Array:
        return np.log([*self.lengths, self.main, self.joint, self.own, self.noise, self.block])

    @classmethod
    def of(cls, logarithms: Array) -> _Scales:
        values = [float(value) for value in np.exp(logarithms)]
        return cls(tuple(values[:-5]), *values[-5:])


class Geometry:
    """Distances between the values of each factor, computed once for all fits of the Gaussian process."""

    def __init__(self, space: SearchSpace) -> None:
        numbers = [{level: number for number, level in reversed([*enumerate(one.levels)])} for one in space.factors]
        places = [[own[level] for own, level in zip(numbers, point, strict=True)] for point in space.points]
        self.levels: Numbers = np.array(places, dtype=np.int64)
        self.distances: list[Array] = []
        for factor in space.factors:
            place = np.arange(len(factor.levels), dtype=np.float64)
            apart = np.abs(place[:, None] - place[None, :])
            self.distances.append(apart if factor.ordered else np.minimum(apart, 1.0) * 2.0)

    def apart(self, a: Numbers, b: Numbers) -> list[Array]:
        """Return the distances between the settings ``a`` and ``b``, one matrix for each factor."""
        return [
            distance[np.ix_(self.levels[a, which], self.levels[b, which])]
            for which, distance in enumerate(self.distances)
        ]

    def covariance(self, scales: _Scales, a: Numbers, b: Numbers) -> Array:
        """Return the covariance of settings ``a`` with settings ``b``."""
        singles = [np.exp(-apart / length) for apart, length in zip(self.apart(a, b), scales.lengths, strict=True)]
        joint: Array = np.prod(singles, axis=0)
        main: Array = np.mean(singles, axis=0)
        result: Array = scales.main**2 * main + scales.joint**2 * joint + scales.own**2 * (a[:, None] == b[None, :])
        return result


class Surrogate:
    """Gaussian process fitted to measured rates. Raises ValueError without rates, or if a rate is not positive."""

    def __init__(self, geometry: Geometry, runs: Sequence[Evaluation]) -> None:
        if not runs or min(run.value for run in runs) <= 0:
            raise ValueError("a surrogate model needs at least one run, and positive values")
        self._geometry = geometry
        self._settings: Numbers = np.array([run.setting for run in runs], dtype=np.int64)
        logs: Array = np.log([run.value for run in runs])
        self._good, self._worst = float(np.quantile(logs, _GOOD)), float(logs.min())
        nearer = _nearer(logs - self._good)
        self._centre = float(np.median(nearer))
        pairs = _Pairs(geometry.apart(self._settings, self._settings), runs)
        usual = _Scales((3.0,) * len(geometry.distances))
        self.scales, self._inverse, self._weights = _fitted(pairs, nearer - self._centre, usual)

    def mean(self, settings: Numbers | None = None) -> Array:
        """Return the expected logarithm of the rate of each setting."""
        chosen = np.arange(len(self._geometry.levels)) if settings is None else settings
        return self._told(self._cross(chosen) @ self._weights)

    def samples(self, settings: Numbers, count: int, generator: np.random.Generator) -> Array:
        """Return ``count`` posterior samples of the log values of the settings, one sample per row."""
        cross = self._cross(settings)
        prior = self._geometry.covariance(self.scales, settings, settings)
        values, vectors = np.linalg.eigh(prior - cross @ self._inverse @ cross.T)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return self._told(cross @ self._weights + generator.standard_normal((count, len(settings))) @ root.T)

    def _told(self, fitted: Array) -> Array:
        return np.asarray(np.maximum(_back(fitted + self._centre) + self._good, self._worst - _FAR))

    def _cross(self, settings: Numbers) -> Array:
        return self._geometry.covariance(self.scales, settings, self._settings)


def _nearer(logs: Array) -> Array:
    return np.where(logs < 0, -_FAR * np.log1p(np.maximum(-logs, 0) / _FAR), logs)


def _back(nearer: Array) -> Array:
    return np.where(nearer < 0, -_FAR * np.expm1(np.minimum(-nearer / _FAR, _DEEPEST)), nearer)


class _Pairs:
    def __init__(self, apart: Sequence[Array], runs: Sequence[Evaluation]) -> None:
        self.apart = apart
        labels = (np.array([run.setting for run in runs]), np.array([run.block for run in runs]))
        self.setting, self.block = ((label[:, None] == label[None, :]).astype(np.float64) for label in labels)

    def noise(self, scales: _Scales, counts: Array) -> Array:
        return np.asarray(scales.noise**2 / counts + _JITTER)

    def inverse(self, scales: _Scales, counts: Array) -> tuple[Array, list[Array], list[Array]]:
        singles = [np.exp(-distance / length) for distance, length in zip(self.apart, scales.lengths, strict=True)]
        product: Array = np.prod(singles, axis=0)
        together = scales.joint**2 * product
        main = [scales.main**2 / len(singles) * single for single in singles]
        parts = [np.sum(main, axis=0), together, scales.own**2 * self.setting, scales.block**2 * self.block]
        inverse = np.asarray(np.linalg.inv(np.sum(parts, axis=0) + np.diag(self.noise(scales, counts))), np.float64)
        return inverse, parts, [single + together for single in main]


def _fitted(pairs: _Pairs, logs: Array, usual: _Scales) -> tuple[_Scales, Array, Array]:
    start, counts = usual.logarithms(), np.ones(len(logs))

    def slope(place: Array) -> Array:  # equation 5.9 of Rasmussen and Williams
        scales = _Scales.of(place)
        inverse, parts, of_lengths = pairs.inverse(scales, counts)
        weights = inverse @ logs
        inner = np.outer(weights, weights) - inverse
        main, joint, own, block = (float((inner * part).sum()) for part in parts)
        noise = inner.diagonal() * pairs.noise(scales, counts)
        lengths = [
            float((inner * part * distance).sum()) / (2 * length)
            for part, distance, length in zip(of_lengths, pairs.apart, scales.lengths, strict=True)
        ]
        steep = [*lengths, main, joint, own, float(noise.sum()), block]
        return np.asarray(np.array(steep) - (place - start) / _SPREAD**2)

    place = start
    for steps in _ROUNDS:
        sizes, before = np.full(len(place), _FIRST_STEP), np.zeros(len(place))
        for _ in range(steps):
            now = slope(place)
            agree = np.sign(now * before)
            sizes = np.clip(np.where(agree > 0, sizes * _FASTER, np.where(agree < 0, sizes * _SLOWER, sizes)), *_STEPS)
            place, before = place + np.sign(now) * sizes, now
        scales = _Scales.of(place)
        inverse = pairs.inverse(scales, counts)[0]
        noise = pairs.noise(scales, counts)
        errors = noise * (inverse @ logs)
        squares = errors**2 + noise - noise**2 * inverse.diagonal()
        counts = (_TAIL + 1) / (_TAIL + squares / pairs.noise(scales, np.ones(len(logs))))
    inverse = pairs.inverse(scales, counts)[0]
    return scales, inverse, inverse @ logs
