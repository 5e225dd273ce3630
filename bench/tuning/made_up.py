"""Landscapes that are made up, to search: the search is chosen on these, never on those that were measured.

The logarithm of a value adds up from what each factor does, what pairs of them do together, and a little that is every setting's own; often
there is a ceiling, so that many settings are nearly as good as the best. Repetitions scatter by 3 to 12 %, some are held up by something
else, blocks drift, and with less data everything is a little different.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import numpy as np

from bench.tuning.resampled import OutOfBudgetError
from strakes.tune.space import Factor, Point, Space
from strakes.tune.surrogate import Array

# Settings of a landscape, about as many as a grid has.
_SETTINGS = (300, 420)
# With a quarter of the data the scatter is so many times as large.
_LOW_SCATTER = 1.5


@dataclass(frozen=True)
class MadeUp:
    """Logarithms of the true values, with all data and with ``low_share`` of them. ``held_up``: the share of runs that something slows."""

    space: Space
    full: Array
    low: Array
    scatter: float
    held_up: float
    drift: float
    low_share: float = 0.25


def made_up(seed: int) -> MadeUp:
    """A landscape of 3 to 6 factors."""
    chance = np.random.default_rng([seed, 7])
    shape = _shape(chance)
    ordered = [bool(chance.random() < 0.7) for _ in shape]
    factors = (Factor(f"f{which}", tuple(range(count)), int(chance.integers(count)), ordered[which]) for which, count in enumerate(shape))
    space = Space(tuple(factors))
    levels = np.array(space.points)
    full: Array = np.zeros(len(levels))
    for which, count in enumerate(shape):
        steps = chance.normal(size=count)
        effect = 1.5 * np.cumsum(steps) / math.sqrt(count) if ordered[which] else steps
        full += 0.25 * math.exp(chance.normal(0, 0.8)) * (effect - effect.mean())[levels[:, which]]
    for which in range(len(shape)):
        for other in range(which):
            if chance.random() < 0.4:
                table = chance.normal(size=(shape[which], shape[other]))
                for axis, factor in enumerate((which, other)):
                    table = np.cumsum(table, axis) / math.sqrt(shape[factor]) if ordered[factor] else table
                full += 0.12 * math.exp(chance.normal(0, 0.6)) * table[levels[:, which], levels[:, other]]
    if chance.random() < 0.6:
        ceiling, softness = np.quantile(full, chance.uniform(0.7, 0.98)), chance.uniform(0.03, 0.15)
        full = ceiling - softness * np.logaddexp(0, (ceiling - full) / softness)
    full = full + chance.normal(size=len(full)) * chance.choice([0, 0.02, 0.05])
    low = full + math.log(chance.uniform(0.6, 1.2))
    for which, count in enumerate(shape):
        low = low + 0.08 * chance.normal(size=count)[levels[:, which]]
    scatter, held_up = float(chance.choice([0.03, 0.05, 0.08, 0.12])), float(chance.choice([0, 0.05, 0.1]))
    return MadeUp(space, full, low, scatter, held_up, float(chance.uniform(0, 0.06)))


class MadeUpSampler:
    """Repetitions of a landscape that is made up; a block is a few of them on end."""

    def __init__(self, landscape: MadeUp, seed: int, budget: float) -> None:
        self._landscape, self._random = landscape, random.Random(seed)
        self.budget, self.spent = budget, 0.0
        self._drift, self._left = 0.0, 0

    def value(self, point: Point, *, low: bool = False) -> float:
        """Raises OutOfBudgetError."""
        found, chance = self._landscape, self._random
        cost = found.low_share if low else 1.0
        if self.spent + cost > self.budget + 1e-9:
            raise OutOfBudgetError
        self.spent += cost
        if not self._left:
            self._drift, self._left = chance.gauss(0, found.drift), 6
        self._left -= 1
        error = chance.gauss(0, found.scatter * (_LOW_SCATTER if low else 1))
        if chance.random() < found.held_up:
            error -= chance.expovariate(2)
        return math.exp(float((found.low if low else found.full)[found.space.numbers[point]]) + self._drift + error)

    def share(self, point: Point) -> float:
        """How good a setting really is, as a share of the best."""
        full = self._landscape.full
        return math.exp(float(full[self._landscape.space.numbers[point]] - full.max()))


def _shape(chance: np.random.Generator) -> list[int]:
    while True:
        shape = [int(chance.integers(2, 8)) for _ in range(int(chance.integers(3, 7)))]
        if _SETTINGS[0] <= math.prod(shape) <= _SETTINGS[1]:
            return shape
