"""Fit the population of file systems by maximum likelihood (empirical Bayes)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import minimize

from bench.prediction.data import Measured
from strakes.predict.model import Array, Model
from strakes.predict.population import Population

_START = np.log([0.35, 7.0, 0.2])
_LEAST, _MOST = np.array([-4, -1, -4]), np.array([1, 3, 0])
# Mean and standard deviation of the exponents in targets and in files. No data vary these on several systems, so they
# are set by hand from CephFS, Lustre and tables of Zeng et al. (2021), with twice the observed differences.
TARGETS, FILES = (0.4, 0.35), (-0.03, 0.15)
NORMAL = 1.2816


def fit(figures: Sequence[Measured], fixed: Mapping[int, float] | None = None, start: Array = _START) -> Array:
    """Return the fitted parameters. ``fixed``: values of parameters that are not fitted, by index."""
    first: Array = np.clip(start, _LEAST, _MOST)
    for place, value in (fixed or {}).items():
        first[place] = value
    free = [place for place in range(len(first)) if place not in (fixed or {})]

    def cost(values: Array) -> float:
        every = first.copy()
        every[free] = values
        return _cost(every, figures)

    bounds = list(zip(_LEAST[free], _MOST[free], strict=True))
    first[free] = minimize(cost, first[free], method="L-BFGS-B", bounds=bounds).x
    return first


def population_of(values: Array, ends: tuple[tuple[float, float], ...] = ((NORMAL, NORMAL),)) -> Population:
    """Return the population with these parameters."""
    deviation, length, scatter = np.exp(values).tolist()
    return Population(deviation, length, scatter, ends, TARGETS, FILES)


def _cost(values: Array, figures: Sequence[Measured]) -> float:
    population = population_of(values)
    model = Model([], population=population)
    alike = defaultdict(list)
    for figure in figures:
        alike[figure.scales].append(figure)
    total = 0.0
    for scales, group in alike.items():
        mean, covariance = model.prior(scales)
        covariance = covariance + population.scatter**2 * np.eye(len(mean))
        # Use differences from the smallest size, because they do not depend on the system's common factor.
        own = covariance[1:, 1:] - covariance[:1, 1:] - covariance[1:, :1] + covariance[0, 0]
        inverse, size = np.linalg.inv(own), np.linalg.slogdet(own)[1]
        for figure in group:
            rest = np.array(figure.log_values) - mean
            rest = rest[1:] - rest[0]
            total += figure.weight * float(rest @ inverse @ rest + size) / 2
    return total


def render(population: Population) -> str:
    """Return the population as the text of population.toml."""
    ends = ", ".join(f"[{low:.2f}, {high:.2f}]" for low, high in population.ends)
    return f"""# Written by `python -m bench.prediction DATA --fit`; population.py explains the parameters.
# Fitted to systems with several sizes on the IO500 lists (IO500/submission-data, IO500/webpage)
# and to published tables of other systems (bench/prediction/tables.csv).
deviation = {population.deviation:.3f}
length = {population.length:.3f}
scatter = {population.scatter:.3f}
ends = [{ends}]
targets = [{population.targets[0]}, {population.targets[1]}]
files = [{population.files[0]}, {population.files[1]}]
"""
