"""Choose the setting to confirm: the application's own one, except for changes whose effect the runs show."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from strakes.stats.grades import GOOD_ENOUGH
from strakes.tuning.tune_space import Point, SearchSpace
from strakes.tuning.tune_surrogate import Surrogate

# Number of posterior samples: at an error of 0.2 % for each level, eight of them are in the tail.
_DRAWS = 4000
# A change that is not shown to matter is kept if, with this probability (80 %), its loss is over GOOD_ENOUGH. On
# simulated searches 90 % loses up to 17 % of the best rate.
_KEEP_PROBABILITY = 0.8


@dataclass(frozen=True)
class Winner:
    """The setting to confirm. ``separated``: the model shows the effect of each change by itself."""

    point: Point
    separated: bool


def changes(space: SearchSpace, point: Point) -> int:
    """Return the number of factors in which a setting differs from the default."""
    return sum(level != default for level, default in zip(point, space.default, strict=True))


def one_less(space: SearchSpace, point: Point) -> list[Point]:
    """Return the allowed settings that undo one of the changes of a setting. There may be fewer than changes."""
    undone = ((*point[:at], level, *point[at + 1 :]) for at, level in enumerate(space.default) if point[at] != level)
    return [fewer for fewer in undone if fewer in space.numbers]


def winner_of(space: SearchSpace, best: Point, model: Surrogate, confidence: float, seed: int) -> Winner:
    """Return the best setting without the changes that are not shown to matter.

    The setting has the fewest changes among those that are good enough and whose changes are all shown to matter. If
    there is none, it has the fewest changes that are good enough and shown to matter together.
    """
    levels = (dict.fromkeys(pair) for pair in zip(space.default, best, strict=True))
    points = [point for point in product(*levels) if point in space.numbers]
    numbers = np.array([space.numbers[point] for point in points])
    drawn = dict(zip(points, model.samples(numbers, _DRAWS, np.random.default_rng([seed, 2])).T, strict=True))

    # The search chose among all levels, so they share the error (Bonferroni).
    error = (1 - confidence) / 2 / sum(len(factor.levels) for factor in space.factors)

    def better(one: Point, other: Point) -> bool:
        return bool(np.quantile(drawn[one] - drawn[other], error) > 0)

    def enough(point: Point) -> bool:
        return bool(np.quantile(drawn[best] - drawn[point], 1 - _KEEP_PROBABILITY) <= np.log(GOOD_ENOUGH))

    def order(point: Point) -> tuple[int, float]:
        return changes(space, point), -float(drawn[point].mean())

    good = [point for point in points if point != space.default and enough(point)]
    shown = [
        point
        for point in good
        if sum(better(point, fewer) for fewer in one_less(space, point)) == changes(space, point)
    ]
    if shown:
        return Winner(min(shown, key=order), separated=True)
    together = [point for point in good if better(point, space.default)] or good or [best]
    return Winner(min(together, key=order), separated=False)
