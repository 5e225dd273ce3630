"""Simulated landscapes for the development of the search. The published results use other seeds.

Even seeds give additive effects: the log value of a setting is the sum of main effects, interactions of pairs and a
small random term. Often a ceiling makes many settings nearly as good as the best. Odd seeds give costs: the time is a
sum of costs, which are functions of one to three factors with cliffs. Some settings are far slower. Repetitions scatter
by 3 to 20 %, other load delays some of them, and blocks drift.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bench.tuning.resampled import OutOfBudgetError
from strakes.tuning.tune_space import Factor, Point, SearchSpace
from strakes.tuning.tune_surrogate import Array, Numbers

# Minimum and maximum number of settings of a landscape, as in the real grids.
_SETTINGS = (300, 420)


@dataclass(frozen=True)
class MadeUp:
    """A simulated landscape. ``full``: logarithms of the true values.

    ``scatter``, ``drift``: standard deviations of repetitions and of blocks. ``held_up``: share of delayed runs.
    """

    space: SearchSpace
    full: Array
    scatter: float
    held_up: float
    drift: float


def made_up(seed: int) -> MadeUp:
    """Return a random landscape with 3 to 6 factors."""
    chance = np.random.default_rng([seed, 7])
    shape = _shape(chance)
    ordered = [bool(chance.random() < 0.7) for _ in shape]
    factors = (
        Factor(f"f{which}", tuple(range(count)), int(chance.integers(count)), ordered[which])
        for which, count in enumerate(shape)
    )
    space = SearchSpace(tuple(factors))
    levels = np.array(space.points)
    full = (_effects if seed % 2 == 0 else _costs)(chance, levels, shape, ordered)
    scatter, held_up = float(chance.choice([0.03, 0.05, 0.08, 0.12, 0.2])), float(chance.choice([0, 0.05, 0.1]))
    return MadeUp(space, full, scatter, held_up, float(chance.uniform(0, 0.06)))


def _effects(chance: np.random.Generator, levels: Numbers, shape: Sequence[int], ordered: Sequence[bool]) -> Array:
    full: Array = np.zeros(len(levels))
    for which, count in enumerate(shape):
        full += 0.25 * math.exp(chance.normal(0, 0.8)) * _one(chance, count, ordered[which])[levels[:, which]]
    for which in range(len(shape)):
        for other in range(which):
            if chance.random() < 0.4:
                full += 0.12 * math.exp(chance.normal(0, 0.6)) * _two(chance, levels, shape, ordered, (which, other))
    if chance.random() < 0.6:
        ceiling, softness = np.quantile(full, chance.uniform(0.7, 0.98)), chance.uniform(0.03, 0.15)
        full = ceiling - softness * np.logaddexp(0, (ceiling - full) / softness)
    result: Array = full + chance.normal(size=len(full)) * chance.choice([0, 0.02, 0.05])
    return result


def _costs(chance: np.random.Generator, levels: Numbers, shape: Sequence[int], ordered: Sequence[bool]) -> Array:
    times: Array = np.zeros(len(levels))
    for _ in range(int(chance.integers(2, 5))):
        by = [
            int(which)
            for which in chance.choice(len(shape), size=min(len(shape), int(chance.integers(1, 4))), replace=False)
        ]
        cost: Array = np.full(len(levels), chance.normal(0, 0.7))
        for which in by:
            cost += 0.6 * math.exp(chance.normal(0, 0.5)) * _one(chance, shape[which], ordered[which])[levels[:, which]]
        if len(by) > 1 and chance.random() < 0.6:
            cost += 0.5 * math.exp(chance.normal(0, 0.5)) * _two(chance, levels, shape, ordered, (by[0], by[1]))
        for _ in range(int(chance.integers(0, 3))):
            cost = cost + _some(chance, levels, shape, ordered, 3) * chance.normal(0.2, 0.6)
        times += np.exp(cost)
    if chance.random() < 0.7:
        for _ in range(int(chance.integers(1, 4))):
            slow = np.where(_some(chance, levels, shape, ordered, 2), math.exp(chance.uniform(1, 4.5)), 1.0)
            times = times * slow
    result: Array = -np.log(times) + chance.normal(size=len(levels)) * chance.choice([0, 0.02, 0.05])
    return result


def _one(chance: np.random.Generator, count: int, ordered: bool) -> Array:
    steps: Array = chance.normal(size=count)
    effect = 1.5 * np.cumsum(steps) / math.sqrt(count) if ordered else steps
    result: Array = effect - effect.mean()
    return result


def _two(
    chance: np.random.Generator, levels: Numbers, shape: Sequence[int], ordered: Sequence[bool], which: tuple[int, int]
) -> Array:
    table: Array = chance.normal(size=(shape[which[0]], shape[which[1]]))
    for axis, factor in enumerate(which):
        table = np.cumsum(table, axis) / math.sqrt(shape[factor]) if ordered[factor] else table
    result: Array = table[levels[:, which[0]], levels[:, which[1]]]
    return result


def _some(
    chance: np.random.Generator, levels: Numbers, shape: Sequence[int], ordered: Sequence[bool], most: int
) -> npt.NDArray[np.bool_]:
    chosen: npt.NDArray[np.bool_] = np.ones(len(levels), dtype=np.bool_)
    for which in chance.choice(len(shape), size=min(len(shape), int(chance.integers(1, most + 1))), replace=False):
        count = shape[which]
        if ordered[which]:
            first, last = sorted(chance.integers(0, count, 2))
            last = last - 1 if (first, last) == (0, count - 1) else last
            mine = (np.arange(count) >= first) & (np.arange(count) <= last)
        else:
            mine = chance.random(count) < chance.uniform(0.2, 0.6)
            mine[chance.integers(count)] = True
        chosen &= mine[levels[:, which]]
    return chosen


class MadeUpSampler:
    """Draws repetitions of a simulated landscape. Six successive repetitions form a block with a random drift."""

    def __init__(self, landscape: MadeUp, seed: int, budget: float) -> None:
        self._landscape, self._random = landscape, random.Random(seed)
        self.budget, self.spent = budget, 0.0
        self._drift, self._left = 0.0, 0

    def value(self, point: Point) -> float:
        """Return the value of one repetition. Raises OutOfBudgetError if the budget is spent."""
        landscape, chance = self._landscape, self._random
        if self.spent + 1 > self.budget + 1e-9:
            raise OutOfBudgetError
        self.spent += 1
        if not self._left:
            self._drift, self._left = chance.gauss(0, landscape.drift), 6
        self._left -= 1
        error = chance.gauss(0, landscape.scatter)
        if chance.random() < landscape.held_up:
            error -= chance.expovariate(2)
        return math.exp(float(landscape.full[landscape.space.numbers[point]]) + self._drift + error)

    def share(self, point: Point) -> float:
        """Return the true value of a setting / the best true value."""
        full = self._landscape.full
        return math.exp(float(full[self._landscape.space.numbers[point]] - full.max()))


def _shape(chance: np.random.Generator) -> list[int]:
    while True:
        shape = [int(chance.integers(2, 8)) for _ in range(int(chance.integers(3, 7)))]
        if _SETTINGS[0] <= math.prod(shape) <= _SETTINGS[1]:
            return shape
