"""How many searches an ideal observer would bring to the aim: one that is told of the landscape more than can be known.

It knows the scatter of a repetition, all the values that the settings have (not which has which), and for each setting
a guess that is wrong by an error of known size. So what it thinks of a setting is exact (Bayes' rule over the values).
It measures by top-two Thompson sampling (Russo, Simple Bayesian algorithms for best-arm identification, 2016) and takes
the setting most likely to be good enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bench.tuning.grids import Grid
from bench.tuning.landscape import Landscape
from bench.tuning.worth import Worth
from strakes.tune.surrogate import Array


@dataclass(frozen=True)
class Reached:
    """Shares of the searches: ``by_measuring``, and ``at_most``: a bound, were every repetition free of scatter.

    ``correlation``: of the guesses with what the settings are worth, by ranks.
    """

    by_measuring: float
    at_most: float
    correlation: float


def truth(grid: Grid, landscape: Landscape) -> Array:
    """Logarithms of what the settings are worth, as shares of the best."""
    worth = Worth(landscape)
    return np.log([worth.share(number) for number in range(len(grid.space.points))])


def observe(values: Array, noise: float, error: float, budget: int, good: float, tries: int, seed: int = 0) -> Reached:
    """Return what ``tries`` searches come to, with guesses that are wrong by ``error`` (standard deviation).

    ``error`` infinite: no guesses at all.
    """
    enough = values >= math.log(good)
    chance = np.random.default_rng([seed, budget])
    reached = possible = 0
    correlations = []
    for _ in range(tries):
        if math.isinf(error):
            guesses, weights = chance.random(len(values)), np.zeros((len(values), len(values)))
        else:
            guesses = values + error * chance.normal(size=len(values))
            weights = -((guesses[:, None] - values[None, :]) ** 2) / (2 * error**2)
        correlations.append(np.corrcoef(_ranks(guesses), _ranks(values))[0, 1])
        sums = np.cumsum(_shares(weights), axis=1)
        probable = _shares(weights) @ enough
        first = np.argsort(-(probable + 1e-9 * chance.random(len(values))))[:budget]
        possible += bool(enough[first].any())
        for _ in range(budget):
            number = _drawn(values, sums, chance)
            if chance.random() < 0.5:
                leader = number
                for _again in range(20):
                    number = _drawn(values, sums, chance)
                    if number != leader:
                        break
            seen = values[number] + noise * chance.normal()
            weights[number] -= (seen - values) ** 2 / (2 * noise**2)
            share = _shares(weights[number : number + 1])
            sums[number], probable[number] = np.cumsum(share), float((share @ enough)[0])
        reached += bool(enough[int(np.argmax(probable + 1e-9 * chance.random(len(values))))])
    return Reached(reached / tries, possible / tries, float(np.mean(correlations)))


def _drawn(values: Array, sums: Array, chance: np.random.Generator) -> int:
    places = (sums < chance.random((len(values), 1))).sum(axis=1)
    drawn = values[np.minimum(places, len(values) - 1)]
    return int(np.argmax(drawn + 1e-9 * chance.random(len(values))))


def _shares(weights: Array) -> Array:
    powers = np.exp(weights - weights.max(axis=1, keepdims=True))
    result: Array = powers / powers.sum(axis=1, keepdims=True)
    return result


def _ranks(values: Array) -> Array:
    result: Array = np.argsort(np.argsort(values)).astype(np.float64)
    return result
