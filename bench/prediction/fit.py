"""Fit the population of file systems by maximum likelihood (empirical Bayes)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import fmin

from bench.prediction.data import PHASES, Measured
from strakes.predict.model import BOUNDS, Array, log_likelihood, prior
from strakes.predict.population import Population

# Rates grow as powers of the numbers of targets and of files: mean and standard deviation of these exponents, from
# CephFS, Lustre and Zeng et al. (2021). The standard deviations are twice the observed differences.
TARGETS, FILES = (0.4, 0.35), (-0.03, 0.15)
_START = Population((), 0.1, 0.15, 0.25, TARGETS, FILES)
# Steps of expectation maximisation. With twice as many, forecast errors change by less than 1 %.
_STEPS = 50


def fit(figures: Sequence[Measured]) -> Population:
    """Return the population that gives the figures the highest likelihood."""
    weights = np.array([figure.weight for figure in figures])

    def solve(values: Array) -> tuple[Population, float]:
        exponent, scatter, wander = np.exp(values).tolist()
        population = replace(_START, exponent=exponent, scatter=scatter, wander=wander)
        chances, cost = _mixture(_likelihoods(figures, population), weights)
        return replace(population, curves=tuple(chances.tolist())), cost

    def cost(values: Array) -> float:
        return solve(values)[1]

    first: Array = np.log([_START.exponent, _START.scatter, _START.wander])
    simplex: Array = first + 0.3 * np.eye(4, 3)
    # Stop when steps are below 2 % and change the log likelihood by less than 0.1 (Nelder and Mead).
    found = fmin(cost, first, xtol=0.02, ftol=0.1, disp=False, initial_simplex=simplex)
    return solve(found)[0]


def _mixture(likelihoods: Array, weights: Array) -> tuple[Array, float]:
    """Return the probabilities of curves (m), and the negative log likelihood.

    ``likelihoods``: log likelihoods (figures, m). The prior is a Dirichlet distribution that counts as one IO500
    system.
    """
    most = likelihoods.max(axis=1, keepdims=True)
    relative = np.exp(likelihoods - most)
    chances = uniform = np.full(len(BOUNDS), 1 / len(BOUNDS))
    for _ in range(_STEPS):
        shares = relative * chances
        chances = weights @ (shares / shares.sum(axis=1, keepdims=True)) + len(PHASES) * uniform
        chances = chances / chances.sum()
    return chances, -float(weights @ (np.log(relative @ chances) + most[:, 0]))


def _likelihoods(figures: Sequence[Measured], population: Population) -> Array:
    alike = defaultdict(list)
    for place, figure in enumerate(figures):
        alike[figure.scales].append(place)
    likelihoods = np.empty((len(figures), len(BOUNDS)))
    for scales, places in alike.items():
        means, covariance = prior(scales, population)
        covariance = covariance + population.scatter**2 * np.eye(len(scales))
        values = np.array([figures[place].log_values for place in places])
        rest = (values[:, None] - means).reshape(-1, len(scales))
        likelihoods[places] = log_likelihood(rest, covariance).reshape(len(places), -1)
    return likelihoods


def render(population: Population) -> str:
    """Return the population as the text of population.toml."""
    curves = ", ".join(f"{each:.3f}" for each in population.curves)
    return f"""# Written by `python -m bench.prediction DATA --fit`; population.py explains the parameters.
# Fitted to systems with several sizes on the IO500 lists (IO500/submission-data, IO500/webpage)
# and to published tables of other systems (bench/prediction/tables.csv).
curves = [{curves}]
exponent = {population.exponent:.3f}
scatter = {population.scatter:.3f}
wander = {population.wander:.3f}
targets = [{population.targets[0]}, {population.targets[1]}]
files = [{population.files[0]}, {population.files[1]}]
"""
