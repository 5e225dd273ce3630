"""What the measured levels leave of a family of curves.

Sequential Monte Carlo: draws from what is plausible before, the likelihood taken in step by step, resampling and
random walks in
between (Del Moral, Doucet, Jasra 2006). The common factor of all rates is integrated out. Each draw misses by
something of its own
(``misfit``), so that no fit to little scatter makes an interval without width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from strakes.predict.families import Array, Family, Scales
from strakes.predict.scale import PARTS, MeasuredLevel, Part

DRAWS = 500
_MOVES = 4
_FURTHER = 3
# Natural logarithm of how far a family misses, and its deviation: 1.5 %, within a factor of 2.3.
_MISFIT = (float(np.log(0.015)), 0.8)
# Counters tell a busy share this well.
BUSY_ERROR = 0.045
# With it the density of what they tell (Student's, four degrees of freedom) compares with that of a family without
# parts, to which every share is as probable as any other.
_BUSY_NORM = float(np.log(BUSY_ERROR / 0.375))
# What a part really carries, by what is stated of it: a fifth less, within a factor of 1.35.
_STATED = (-0.2, 0.3)
# The likelihood is taken in so that this share of the draws still counts.
_KEPT = 0.5


@dataclass(frozen=True)
class Draws:
    """A family after the data, as draws of equal weight.

    ``parameters`` (n, d), ``factor`` (n): logarithm of the common factor, ``misfit`` (n): how far each misses, as a
    standard
    deviation of the logarithm. ``log_evidence``: of the data under the family.
    """

    family: Family
    parameters: Array
    factor: Array
    misfit: Array
    log_evidence: float

    def log_values(self, scales: Scales) -> Array:
        """Return (n, l)."""
        return np.asarray(self.factor[:, None] + self.family.rates(self.parameters, scales)[0])


def learn(family: Family, levels: Sequence[MeasuredLevel], stated: Mapping[Part, float], seed: int = 1) -> Draws:
    """Return what is left of the family. ``stated``: what a unit of a part can carry. The same at every call."""
    # Draws are columns: arithmetic goes over whole blocks of memory.
    means = np.append(family.means, _MISFIT[0])[:, None]
    deviations = np.append(family.deviations, _MISFIT[1])[:, None]
    data = _Data(family, levels, stated)
    draws = means + deviations * _noise(seed, len(means), 0, 0).first
    fits, factors = data.log_likelihood(draws)
    taken, evidence, steps = 0.0, 0.0, 0
    least = 1e-6 * np.diag(deviations[:, 0] ** 2)
    reaches = np.geomspace(1.2, 0.25, _MOVES) / np.sqrt(len(means)) * 1.6

    def before(draws: Array) -> Array:
        return np.asarray(-0.5 * np.add.reduce(((draws - means) / deviations) ** 2))

    def walk(noise: _Noise) -> None:
        apart = draws - draws.mean(axis=1, keepdims=True)
        spread = np.linalg.cholesky(apart @ apart.T / (DRAWS - 1) + least)
        priors = before(draws)
        for reach, (jumps, luck) in zip(reaches, noise.moves, strict=True):
            moved = draws + (reach * spread) @ jumps
            moved_fits, moved_factors = data.log_likelihood(moved)
            moved_priors = before(moved)
            accepted = luck < taken * (moved_fits - fits) + moved_priors - priors
            for each, after in ((draws, moved), (fits, moved_fits), (factors, moved_factors), (priors, moved_priors)):
                np.copyto(each, after, where=accepted)

    while taken < 1:
        steps += 1
        noise = _noise(seed, len(means), steps, 0)
        step = _step(fits, 1 - taken)
        weights = np.exp(step * (fits - fits.max()))
        evidence += float(np.log(weights.mean()) + step * fits.max())
        # Systematic resampling: each draw as often as its weight says, but for less than one (Kitagawa 1996).
        places = (np.arange(DRAWS) + noise.place) / DRAWS
        picked = np.minimum(np.searchsorted(np.cumsum(weights / weights.sum()), places), DRAWS - 1)
        draws, fits, factors, taken = np.take(draws, picked, axis=1), fits[picked], factors[picked], taken + step
        walk(noise)
    # Draws that walk on are further ones.
    kept, kept_factors = [draws.copy()], [factors.copy()]
    for further in range(_FURTHER):
        walk(_noise(seed, len(means), steps, further + 1))
        kept.append(draws.copy())
        kept_factors.append(factors.copy())
    every = np.concatenate(kept, axis=1)
    return Draws(family, every[:-1].T, np.concatenate(kept_factors), np.exp(every[-1]), evidence)


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
    moves = [(_columns(generator, width), np.log(generator.random(DRAWS))) for _ in range(_MOVES)]
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
            fit -= 2.5 * np.add.reduce(np.log1p(astray**2)) + _BUSY_NORM * len(self._busy)
            for part, capacity in self._stated.items():
                carried = self._carried(draws, factor, part)
                fit -= 0.5 * ((carried - np.log(capacity) - _STATED[0]) / _STATED[1]) ** 2
        return fit, factor

    def _carried(self, draws: Array, factor: Array, part: Part) -> Array:
        return np.asarray(factor - np.log(10) * draws[PARTS.index(part)])
