"""Noises of a simulated file system: each gives the factors by which one visit's phases are faster or slower."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

# The factor of the next phase, from the generator and from how much of the budget has passed; one for each phase of a visit.
Factors = Callable[[int, float], list[float]]


@dataclass(frozen=True)
class Noise:
    """``start`` makes the factors of one survey, which may depend on each other; ``changes``: the level itself moves."""

    name: str
    start: Callable[[np.random.Generator], Factors]
    changes: bool = False


def log_normal(deviation: float) -> Noise:
    """Every phase by itself."""

    def start(generator: np.random.Generator) -> Factors:
        return lambda phases, _: [math.exp(deviation * value) for value in generator.standard_normal(phases)]

    return Noise(f"log-normal, {100 * deviation:.0f} %", start)


def stalls(scale: float) -> Noise:
    """Rare, long stalls: times are stretched by a Pareto variable of index 1.5."""

    def start(generator: np.random.Generator) -> Factors:
        return lambda phases, _: [1 / (1 + scale * value) for value in generator.pareto(1.5, phases)]

    return Noise(f"Pareto stalls, {scale:g}", start)


def dependent(correlation: float, deviation: float = 0.1) -> Noise:
    """Each visit much like the one before: an autoregression of order 1, of that standard deviation."""

    def start(generator: np.random.Generator) -> Factors:
        level = deviation * float(generator.standard_normal())

        def factors(phases: int, _: float) -> list[float]:
            nonlocal level
            level = correlation * level + deviation * math.sqrt(1 - correlation**2) * float(generator.standard_normal())
            return [math.exp(level + 0.02 * value) for value in generator.standard_normal(phases)]

        return factors

    return Noise(f"AR(1) {correlation:g} over visits", start)


def drifting(change: float, deviation: float = 0.05) -> Noise:
    """Slower and slower, by ``change`` in all."""

    def start(generator: np.random.Generator) -> Factors:
        return lambda phases, passed: [
            (1 - change * min(1.0, passed)) * math.exp(deviation * value) for value in generator.standard_normal(phases)
        ]

    return Noise(f"drift of {100 * change:.0f} %", start, changes=True)


def five() -> tuple[Noise, ...]:
    """The noises on which nothing but "equal" is true."""
    return log_normal(0.03), log_normal(0.1), stalls(0.1), dependent(0.8), drifting(0.3)
