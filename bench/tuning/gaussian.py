"""A plain Gaussian process with expected improvement, as Optuna's GP sampler is one (which needs PyTorch).

Matérn 5/2 with a length for each factor, names apart by whether they differ; hyperparameters by what is most probable,
with the priors of Optuna (optuna/_gp/prior.py); ten settings by chance before the first fit, the default first.
"""

from __future__ import annotations

import math
import random

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import ndtr

from bench.tuning.resampled import Draws, OutOfBudgetError, Task
from strakes.tune.space import Point, SearchSpace
from strakes.tune.surrogate import Array

_BY_CHANCE = 10
_LEAST_NOISE = 1e-6


def gaussian(task: Task, sampler: Draws, seed: int) -> Point:
    """One repetition for each of its trials; the best value wins."""
    space, chance = task.space, random.Random(seed)
    apart = _distances(space)
    order = [space.default, *chance.sample(space.points, _BY_CHANCE - 1)]
    numbers: list[int] = []
    values: list[float] = []
    start = np.zeros(len(apart) + 2)
    start[-1] = math.log(0.1)
    try:
        while True:
            if len(numbers) < _BY_CHANCE:
                number = space.numbers[order[len(numbers)]]
            else:
                logs = np.log(np.maximum(values, 1e-12))
                scaled = (logs - logs.mean()) / max(1e-9, float(logs.std()))
                start = _most_probable(apart[:, numbers][:, :, numbers], scaled, start)
                number = int(np.argmax(_improvement(apart, np.array(numbers), scaled, start)))
            values.append(sampler.value(space.points[number]))
            numbers.append(number)
    except OutOfBudgetError:
        pass
    return space.points[numbers[int(np.argmax(values))]]


def _distances(space: SearchSpace) -> Array:
    """Return squared distances by factor (f, n, n): sizes and counts by their place between 0 and 1."""
    result = []
    for which, factor in enumerate(space.factors):
        place = np.array([factor.levels.index(point[which]) for point in space.points], float)
        apart = place[:, None] - place[None, :]
        result.append((apart / max(1, len(factor.levels) - 1)) ** 2 if factor.ordered else (apart != 0).astype(float))
    return np.array(result)


def _kernel(apart: Array, logs: Array) -> Array:
    """Return covariances; ``logs``: of the inverse squared lengths, the variance and that of the noise."""
    distance = np.sqrt(5 * np.tensordot(np.exp(logs[:-2]), apart, axes=1))
    result: Array = np.exp(logs[-2]) * (1 + distance + distance**2 / 3) * np.exp(-distance)
    return result


def _most_probable(apart: Array, values: Array, start: Array) -> Array:
    def loss(logs: Array) -> float:
        covariance = _kernel(apart, logs) + (_LEAST_NOISE + math.exp(logs[-1])) * np.eye(len(values))
        factor = cho_factor(covariance, lower=True)
        fit = 0.5 * values @ cho_solve(factor, values) + np.log(np.diag(factor[0])).sum()
        inverse, variance, noise = np.exp(logs[:-2]), math.exp(logs[-2]), math.exp(logs[-1])
        prior = (0.1 / inverse + 0.1 * inverse).sum() + variance - logs[-2] + 30 * noise - 0.1 * logs[-1]
        return float(fit + prior)

    fits = [
        minimize(loss, first, method="L-BFGS-B", bounds=[(-8, 8)] * len(start), options={"maxiter": 30})
        for first in (start, np.append(np.zeros(len(start) - 1), math.log(0.1)))
    ]
    best: Array = min(fits, key=lambda each: float(each.fun)).x
    return best


def _improvement(apart: Array, numbers: Array, values: Array, logs: Array) -> Array:
    """Return the expected improvement of every setting over the best that was seen."""
    covariance = _kernel(apart[:, numbers][:, :, numbers], logs)
    factor = cho_factor(covariance + (_LEAST_NOISE + math.exp(logs[-1])) * np.eye(len(numbers)), lower=True)
    across = _kernel(apart[:, :, numbers], logs)
    mean = across @ cho_solve(factor, values)
    variance = math.exp(logs[-2]) - (across * cho_solve(factor, across.T).T).sum(axis=1)
    deviation = np.sqrt(np.maximum(variance, 1e-12))
    above = (mean - values.max()) / deviation
    density = np.exp(-(above**2) / 2) / math.sqrt(2 * math.pi)
    result: Array = deviation * (above * ndtr(above) + density)
    return result
