"""Noises whose variance comes and goes while the level stays: of all of them nothing but "equal" is true.

Logarithms are symmetrical around zero at every time, so that the median of the factors is 1 whatever the scatter is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from bench.truth.noise import Factors, Noise

if TYPE_CHECKING:
    import numpy as np

BUDGET_S = 120.0
CALM = 0.03
# Storms come at random, after pauses that last this many times as long on average.
PAUSE = 2.0


def unsteady() -> tuple[Noise, ...]:
    """Return storms of several lengths, and scatter that depends on the time, the work, or the visit before."""
    return (
        storms(5.0, 0.25),
        storms(15.0, 0.25),
        storms(40.0, 0.25),
        storms(12.0, 0.15, tails=True),
        storms(10.0, 0.2, whole=True),
        _by_time("scatter that grows from 2 to 30 %", lambda passed: 0.02 + 0.28 * passed),
        _by_time("3 %, from three quarters of the time on 25 %", lambda passed: CALM if passed < 0.75 else 0.25),
        _by_time("30 % at first, 4 % after a quarter of the time", lambda passed: 0.3 if passed < 0.25 else 0.04),
        _by_work(0.02, 0.25),
        _by_visit(0.85, 0.3),
    )


def storms(length_s: float, deviation: float, *, tails: bool = False, whole: bool = False) -> Noise:
    """For ``length_s`` at a time every phase scatters much more; ``whole``: all phases of a visit are off together.

    ``tails``: by a Student variable of 3 degrees of freedom.
    """

    def start(generator: np.random.Generator) -> Factors:
        begins_s = float(generator.exponential(PAUSE * length_s))

        def factors(phases: int, passed: float, _: str) -> list[float]:
            nonlocal begins_s
            now_s = passed * BUDGET_S
            while now_s > begins_s + length_s:
                begins_s += length_s + float(generator.exponential(PAUSE * length_s))
            scale = deviation if now_s >= begins_s else CALM
            values = generator.standard_t(3, phases) if tails else generator.standard_normal(phases)
            return [math.exp(scale * float(value)) for value in ([values[0]] * phases if whole else values)]

        return factors

    how = " with heavy tails" if tails else " of whole visits" if whole else ""
    return Noise(f"storms of {length_s:g} s, {100 * deviation:.0f} %{how}", start)


def _by_time(name: str, scale_at: Callable[[float], float]) -> Noise:
    def start(generator: np.random.Generator) -> Factors:
        def factors(phases: int, passed: float, _: str) -> list[float]:
            scale = scale_at(min(1.0, passed))
            return [math.exp(scale * value) for value in generator.standard_normal(phases)]

        return factors

    return Noise(name, start)


def _by_work(least: float, most: float) -> Noise:
    """Each phase of a cell, a kind of work mostly, scatters by a deviation of its own."""

    def start(generator: np.random.Generator) -> Factors:
        deviations: dict[str, list[float]] = {}

        def factors(phases: int, _: float, cell: str) -> list[float]:
            if cell not in deviations:
                shares = generator.random(phases)
                deviations[cell] = [least * (most / least) ** float(share) for share in shares]
            values = generator.standard_normal(phases)
            return [math.exp(scale * float(value)) for scale, value in zip(deviations[cell], values, strict=True)]

        return factors

    return Noise(f"{100 * least:.0f} to {100 * most:.0f} %, by phase of each cell", start)


def _by_visit(stays: float, deviation: float) -> Noise:
    """Each visit is rough or calm, mostly as the one before."""

    def start(generator: np.random.Generator) -> Factors:
        rough = False

        def factors(phases: int, *_: object) -> list[float]:
            nonlocal rough
            rough = rough if generator.random() < stays else not rough
            scale = deviation if rough else CALM
            return [math.exp(scale * value) for value in generator.standard_normal(phases)]

        return factors

    return Noise(f"rough or calm visits, {100 * deviation:.0f} or {100 * CALM:.0f} %", start)
