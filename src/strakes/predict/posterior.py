"""What the measured levels leave of a family of curves.

Sequential Monte Carlo: draws from what is plausible before, the likelihood taken in step by step, resampling and
random walks in between (Del Moral, Doucet, Jasra 2006). The common factor of all rates is integrated out. Each draw
misses by something of its own (``misfit``), so that no fit to little scatter makes an interval without width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from strakes.predict.evidence import BUSY_ERROR, STATED
from strakes.predict.families import Array, Family, Scales
from strakes.predict.scale import PARTS, MeasuredLevel, Part

DRAWS = 500
# How far the moves of a walk reach, by the spread of the draws and the root of how many parameters there are.
_REACHES = 1.6 * np.geomspace(1.2, 0.25, 4)
# Natural logarithm of how far a family misses, and its deviation: 1.5 %, within a factor of 2.3.
_MISFIT = (float(np.log(0.015)), 0.8)
# What they are off by costs this on average where a family tells of them as well as they tell of the truth.
_TOLD_AS_WELL = 0.7
# The likelihood is taken in so that this share of the draws still counts.
_KEPT = 0.5


@dataclass(frozen=True)
class Draws:
    """A family after the data, as draws of equal weight.

    ``parameters`` (n, d), ``factor`` (n): logarithm of the common factor, ``misfit`` (n): how far each misses, as a
    standard deviation of the logarithm.
    """

    family: Family
    parameters: Array
    factor: Array
    misfit: Array

    def log_values(self, scales: Scales) -> Array:
        """Return (n, l)."""
        return np.asarray(self.factor[:, None] + self.family.rates(self.parameters, scales)[0])


class Population:
    """Draws (d, n) of a family's parameters with their misfit that take in what was measured.

    ``stated``: what a unit of a part can carry. The same at every call. ``log_evidence``: of the data under the family.
    """

    def __init__(
        self, family: Family, levels: Sequence[MeasuredLevel], stated: Mapping[Part, float], seed: int
    ) -> None:
        """Draw, and walk while the likelihood is taken in."""
        # Draws are columns: arithmetic goes over whole blocks of memory.
        self._family, self._seed = family, seed
        self._means = np.append(family.means, _MISFIT[0])[:, None]
        self._deviations = np.append(family.deviations, _MISFIT[1])[:, None]
        self._least = 1e-6 * np.diag(self._deviations[:, 0] ** 2)
        self._data = _Data(family, levels, stated)
        self._draws = self._means + self._deviations * _noise(seed, len(self._means), 0, 0).first
        self._fits, self._factors = self._data.log_likelihood(self._draws)
        self._taken, self._steps, self.log_evidence = 0.0, 0, 0.0
        while self._taken < 1:
            self._steps += 1
            self._take_in(_noise(seed, len(self._means), self._steps, 0))

    def walk_on(self, walks: int) -> Draws:
        """Return the draws, and with each further walk as many again."""
        kept, kept_factors = [self._draws.copy()], [self._factors.copy()]
        for further in range(walks):
            self._walk(_noise(self._seed, len(self._means), self._steps, further + 1))
            kept.append(self._draws.copy())
            kept_factors.append(self._factors.copy())
        every = np.concatenate(kept, axis=1)
        return Draws(self._family, every[:-1].T, np.concatenate(kept_factors), np.exp(every[-1]))

    def _take_in(self, noise: _Noise) -> None:
        fits = self._fits
        step = _step(fits, 1 - self._taken)
        weights = np.exp(step * (fits - fits.max()))
        self.log_evidence += float(np.log(weights.mean()) + step * fits.max())
        # Systematic resampling: each draw as often as its weight says, but for less than one (Kitagawa 1996).
        places = (np.arange(DRAWS) + noise.place) / DRAWS
        picked = np.minimum(np.searchsorted(np.cumsum(weights / weights.sum()), places), DRAWS - 1)
        self._draws, self._fits, self._factors = (
            np.take(self._draws, picked, axis=1),
            fits[picked],
            self._factors[picked],
        )
        self._taken += step
        self._walk(noise)

    def _walk(self, noise: _Noise) -> None:
        draws, fits, factors = self._draws, self._fits, self._factors
        apart = draws - draws.mean(axis=1, keepdims=True)
        spread = np.linalg.cholesky(apart @ apart.T / (DRAWS - 1) + self._least) / np.sqrt(len(draws))
        priors = self._before(draws)
        for reach, (jumps, luck) in zip(_REACHES, noise.moves, strict=True):
            moved = draws + (reach * spread) @ jumps
            moved_fits, moved_factors = self._data.log_likelihood(moved)
            moved_priors = self._before(moved)
            accepted = luck < self._taken * (moved_fits - fits) + moved_priors - priors
            for each, after in ((draws, moved), (fits, moved_fits), (factors, moved_factors), (priors, moved_priors)):
                np.copyto(each, after, where=accepted)

    def _before(self, draws: Array) -> Array:
        return np.asarray(-0.5 * np.add.reduce(((draws - self._means) / self._deviations) ** 2))


@dataclass(frozen=True)
class _Noise:
    """The random numbers of one walk: ``first`` (d, n), ``place``, and of each move jumps (d, n) and luck (n)."""

    first: Array
    place: float
    moves: Sequence[tuple[Array, Array]]
    state: Mapping[str, Any]


@lru_cache(maxsize=128)
def _noise(seed: int, width: int, steps: int, further: int) -> _Noise:
    """Return what follows so many steps with the likelihood and so many walks after them: the same for all figures."""
    generator = np.random.default_rng(seed)
    if not steps:
        return _Noise(_columns(generator, width), 0.0, (), generator.bit_generator.state)
    last = _noise(seed, width, steps, further - 1) if further else _noise(seed, width, steps - 1, 0)
    generator.bit_generator.state = last.state
    place = 0.0 if further else generator.random()
    moves = [(_columns(generator, width), np.log(generator.random(DRAWS))) for _ in _REACHES]
    return _Noise(last.first, place, moves, generator.bit_generator.state)


def _columns(generator: np.random.Generator, width: int) -> Array:
    return np.ascontiguousarray(generator.standard_normal((DRAWS, width)).T)


def _step(fits: Array, most: float) -> float:
    """Return how much more of the likelihood can be taken in, by halving."""
    below = fits - fits.max()

    def enough(step: float) -> bool:
        weights = np.exp(step * below)
        return bool(np.add.reduce(weights) ** 2 >= _KEPT * len(fits) * (weights @ weights))

    if enough(most):
        return most
    low, high = 1e-9, most
    while high / low > 1.1:
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low


class _Data:
    """The levels as arrays, and how well parameters with a misfit (d, n) fit them."""

    def __init__(self, family: Family, levels: Sequence[MeasuredLevel], stated: Mapping[Part, float]) -> None:
        self._family, self._stated = family, stated
        self._scales = Scales.of([level.scale for level in levels])
        self._values = np.array([[level.log_value] for level in levels])
        self._variances = np.array([[level.log_error**2] for level in levels])
        busy = np.array([[level.busy.get(part, np.nan) for level in levels] for part in PARTS])
        self._told = np.isfinite(busy)
        self._busy = busy[self._told][:, None]

    def log_likelihood(self, draws: Array) -> tuple[Array, Array]:
        """Return the logarithm of the likelihood of each draw (n), and of the common factor that fits best (n).

        The factor is integrated out of the likelihood.
        """
        # A wild draw misses by more than there is; its square must stay finite.
        weights = 1 / (self._variances + np.exp(2 * np.minimum(np.maximum(draws[-1], -12), 3)))
        log_rates, shares = self._family.rates(draws[:-1].T, self._scales)
        apart, total = self._values - log_rates.T, np.add.reduce(weights)
        factor = np.add.reduce(apart * weights) / total
        residuals = apart - factor
        fit = -0.5 * (np.add.reduce(residuals**2 * weights - np.log(weights)) + np.log(total))
        if shares is not None and (len(self._busy) or self._stated):
            astray = (shares.T[self._told] - self._busy) / (2 * BUSY_ERROR)
            # Counters err in ways of their own: far off is not endlessly worse.
            fit -= 2.5 * np.add.reduce(np.log1p(astray**2))
            for part, capacity in self._stated.items():
                fit += self._by_statement(draws, factor, part, capacity)
        elif shares is None:
            # A family without parts is judged by the rates alone: as if it told of counters as well as these tell.
            fit -= _TOLD_AS_WELL * len(self._busy)
        return fit, factor

    def _by_statement(self, draws: Array, factor: Array, part: Part, capacity: float) -> Array:
        """Return what a stated limit says of draws, in place of what would be plausible of the part without it.

        A limit that is unusual speaks neither for nor against a family.
        """
        place = PARTS.index(part)
        carried = factor - np.log(10) * draws[place]
        mean, deviation = self._family.means[place], self._family.deviations[place]
        astray, unusual = (carried - np.log(capacity) - STATED[0]) / STATED[1], (draws[place] - mean) / deviation
        return np.asarray(0.5 * (unusual**2 - astray**2) + np.log(np.log(10) * deviation / STATED[1]))
