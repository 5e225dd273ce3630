"""Noise models of a simulated file system: factors on the rates of phases in each trial (visit)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

# (number of phases, spent share of the budget) -> factors for the phases of the next trial.
Factors = Callable[[int, float], list[float]]


@dataclass(frozen=True)
class Noise:
    """A noise model. ``start``: returns the function that draws the factors of one survey."""

    name: str
    start: Callable[[np.random.Generator], Factors]


def log_normal(deviation: float) -> Noise:
    """Return log-normal noise, independent for each phase."""

    def start(generator: np.random.Generator) -> Factors:
        return lambda phases, _: [math.exp(deviation * value) for value in generator.standard_normal(phases)]

    return Noise(f"{100 * deviation:.0f} %", start)


def autoregressive(correlation: float, deviation: float) -> Noise:
    """Return noise whose logarithm is an AR(1) process over trials with this standard deviation."""

    def start(generator: np.random.Generator) -> Factors:
        level = deviation * float(generator.standard_normal())

        def factors(phases: int, _: float) -> list[float]:
            nonlocal level
            level = correlation * level + deviation * math.sqrt(1 - correlation**2) * float(generator.standard_normal())
            return [math.exp(level + 0.03 * value) for value in generator.standard_normal(phases)]

        return factors

    return Noise(f"AR(1) {correlation:g}, {100 * deviation:.0f} %", start)


def heavy_tails(scale: float) -> Noise:
    """Return noise whose logarithm has Student's t distribution with 3 degrees of freedom."""

    def start(generator: np.random.Generator) -> Factors:
        return lambda phases, _: [math.exp(scale * value) for value in generator.standard_t(3, phases)]

    return Noise(f"Student t3, scale {100 * scale:.0f} %", start)


def neighbour(share: float, slow: float, deviation: float = 0.05) -> Noise:
    """Return bimodal noise: about ``share`` of the trials, in groups, have ``slow`` times the rate."""

    def start(generator: np.random.Generator) -> Factors:
        busy = False

        def factors(phases: int, _: float) -> list[float]:
            nonlocal busy
            busy = bool(generator.random() < (0.8 if busy else 0.2 * share / (1 - share)))
            return [
                (slow if busy else 1.0) * math.exp(deviation * value) for value in generator.standard_normal(phases)
            ]

        return factors

    return Noise(f"neighbour, {100 * share:.0f} % of visits at {slow:g}", start)


def level_shift(factor: float, deviation: float = 0.05) -> Noise:
    """Return noise with a level shift: after half of the budget, rates are multiplied by ``factor``."""

    def start(generator: np.random.Generator) -> Factors:
        return lambda phases, passed: [
            (factor if passed > 0.5 else 1.0) * math.exp(deviation * value)
            for value in generator.standard_normal(phases)
        ]

    return Noise(f"level shift to {factor:g}", start)


def disturbances() -> tuple[Noise, ...]:
    """Return the noise models for which error rates are published."""
    return (
        log_normal(0.05),
        log_normal(0.15),
        autoregressive(0.5, 0.15),
        heavy_tails(0.1),
        neighbour(0.3, 0.5),
        level_shift(0.5),
    )
