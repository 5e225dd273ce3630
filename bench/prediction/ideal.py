"""What somebody could name who knows how the made-up systems were drawn: the bound for any model.

Bayes' rule with the generator's own distributions, shapes and noise, by sequential Monte Carlo. Nothing that learns
from the same levels can name more parts rightly at the same share of wrong names. Arrays: ``n`` draws, ``p`` parts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from bench.prediction.made_up import CLOSE, COUNTER_ERROR, PARTS, Level, Part, Shape, Size, Task, units_of

Array = NDArray[np.float64]
_DRAWS = 1000
_REACHES = (0.9, 0.6, 0.4, 0.25, 0.12, 0.06)
# Uniform between 0 and 1: the latency, the demands of five parts, how much dearer a lock becomes, the noise.
_UNKNOWNS = 8
_MDTS, _OSTS, _LOCK = PARTS.index("mdts"), PARTS.index("osts"), PARTS.index("lock")


@dataclass(frozen=True)
class Bound:
    """The best that can be named of some systems where at most so many may be named wrong: shares of all."""

    right: float
    wrong: float


def find_bound(tasks: Sequence[Task], probabilities: Sequence[Mapping[Part, float]], most_wrong: float = 0.05) -> Bound:
    """Return what is named right by the best threshold of probability, chosen in hindsight."""
    likeliest = [max(told, key=told.__getitem__) for told in probabilities]
    right = np.array([part in task.scarce for part, task in zip(likeliest, tasks, strict=True)])
    sure = np.array([told[part] for told, part in zip(probabilities, likeliest, strict=True)])
    bounds = [
        Bound(float((right & (sure >= threshold)).mean()), float((~right & (sure >= threshold)).mean()))
        for threshold in np.unique(sure)
    ]
    return max((bound for bound in bounds if bound.wrong <= most_wrong), key=lambda bound: bound.right)


def probable_parts(task: Task, seed: int) -> Mapping[Part, float]:
    """Return how probable it is of each part that it may rightly be named."""
    generator = np.random.default_rng(seed)
    several = any(level.size.mdts > 1 for level in task.levels)
    # As often as the generator draws each shape with, or without, several metadata targets.
    before: dict[Shape, float] = {"caps": 0.4, "queue": 0.4, "retrograde": 0.4, "swap": 1.0}
    shapes = before if several else {**before, "swap": 0.0}
    evidence, named = [], []
    for shape in (shape for shape, often in shapes.items() if often):
        draws, log_evidence = _learn(shape, task.levels, generator)
        _, busy = _rate(shape, draws, task.asked)
        most = busy.max(axis=1)
        named.append(((busy >= most[:, None] - CLOSE) & (most > 0.5)[:, None]).mean(axis=0))
        evidence.append(log_evidence + math.log(shapes[shape]))
    weights = np.exp(np.array(evidence) - max(evidence))
    return dict(zip(PARTS, (weights / weights.sum() @ np.array(named)).tolist(), strict=True))


def _rate(shape: Shape, draws: Array, size: Size) -> tuple[Array, Array]:
    """Return the rates (n) and the busy shares (n, p): what ``MadeUpSystem`` says of one, of many systems at once."""
    latency_s = 10 ** (-3.5 + 1.5 * draws[:, 0])
    low = np.array([-0.5 if part in ("clients", "links") else 0.7 for part in PARTS])
    high = np.array([2.0 if part in ("clients", "links") else 3.2 for part in PARTS])
    demand_s = latency_s[:, None] / 10 ** (low + (high - low) * draws[:, 1:6])
    demand_s[:, _OSTS] *= 4
    if shape == "swap":
        demand_s[:, _OSTS] = 4 * demand_s[:, _MDTS] / (1.2 + 1.8 * draws[:, 1 + _OSTS])
    units = np.array([units_of(size)[part] for part in PARTS], float)
    demands = demand_s / units
    if shape == "retrograde":
        demands[:, _LOCK] *= 1 + 10 ** (-3.5 + 2 * draws[:, 6]) * (size.ranks - 1)
    if shape == "queue":
        # Parts first: arithmetic goes over whole blocks of memory.
        each = np.ascontiguousarray(demands.T)
        queue, rate = np.zeros_like(each), np.zeros(len(draws))
        for customers in range(1, size.ranks + 1):
            queue += 1
            queue *= each
            rate = customers / (latency_s + units @ queue)
            queue *= rate
    else:
        rate = np.minimum(size.ranks / (latency_s + demand_s.sum(axis=1)), (1 / demands).min(axis=1))
    return rate, np.minimum(1.0, rate[:, None] * demands)


def _log_likelihood(shape: Shape, draws: Array, levels: Sequence[Level]) -> Array:
    noise = 0.02 + 0.06 * draws[:, 7]
    fit = np.zeros(len(draws))
    for level in levels:
        rate, busy = _rate(shape, draws, level.size)
        logs = np.log(level.rates)
        squares = ((logs - logs.mean()) ** 2).sum() + len(logs) * (logs.mean() - np.log(rate)) ** 2
        fit -= len(logs) * np.log(noise) + squares / (2 * noise**2)
        for part, told in level.busy.items():
            apart = (told - busy[:, PARTS.index(part)]) / COUNTER_ERROR
            # What would lie outside of 0 to 1 was told as the end.
            inside = -(apart**2) / 2 - math.log(math.sqrt(2 * math.pi))
            fit += log_ndtr(-apart) if told >= 1 else log_ndtr(apart) if told <= 0 else inside
            fit -= math.log(COUNTER_ERROR) if 0 < told < 1 else 0.0
    return fit


def _learn(shape: Shape, levels: Sequence[Level], generator: np.random.Generator) -> tuple[Array, float]:
    """Return draws of what is left (n, unknowns), and the logarithm of the evidence for the shape."""
    draws = generator.random((_DRAWS, _UNKNOWNS))
    fits, taken, evidence = _log_likelihood(shape, draws, levels), 0.0, 0.0
    while taken < 1:
        step = 1 - taken
        while (weights := np.exp(step * (fits - fits.max()))).sum() ** 2 < 0.5 * _DRAWS * (weights**2).sum():
            step *= 0.8
        evidence += float(np.log(weights.mean()) + step * fits.max())
        picked = generator.choice(_DRAWS, _DRAWS, p=weights / weights.sum())
        draws, fits, taken = draws[picked], fits[picked], min(1.0, taken + step) if step < 1 - taken else 1.0
        spread = np.linalg.cholesky(np.cov(draws.T) + 1e-8 * np.eye(_UNKNOWNS))
        for reach in _REACHES:
            # What leaves the range comes back from its edge.
            moved = np.abs(draws + reach * generator.standard_normal(draws.shape) @ spread.T)
            moved = 1 - np.abs(1 - moved)
            inside = (moved >= 0).all(axis=1)
            moved_fits = _log_likelihood(shape, np.clip(moved, 0, 1), levels)
            accepted = inside & (np.log(generator.random(_DRAWS)) < taken * (moved_fits - fits))
            draws[accepted], fits[accepted] = moved[accepted], moved_fits[accepted]
    return draws, evidence
