"""Noises of a stranger, for :mod:`bench.truth.fourth`: each keeps its slow part, which is part of what is true."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench.truth.noise import Factors, Noise

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Told(Noise):
    """A noise that remembers its slow part: the level of each visit, in order. That is part of what is true of it."""

    levels: list[float] = field(default_factory=list, compare=False)


def long_memory(deviation: float) -> Told:
    """Like 1/f: five processes that forget within 1 to 256 visits, together of that standard deviation."""
    levels: list[float] = []

    def start(generator: np.random.Generator) -> Factors:
        levels.clear()
        keeps = [math.exp(-1 / 4**power) for power in range(5)]
        parts = [float(value) for value in generator.standard_normal(5)]

        def factors(phases: int, *_: object) -> list[float]:
            for index, keep in enumerate(keeps):
                parts[index] = keep * parts[index] + math.sqrt(1 - keep**2) * float(generator.standard_normal())
            level = math.exp(deviation * sum(parts) / math.sqrt(5))
            levels.append(level)
            return [level * math.exp(0.02 * value) for value in generator.standard_normal(phases)]

        return factors

    return Told(f"long memory, {100 * deviation:.0f} %", start, changes=True, levels=levels)


def finite_tail(most: float) -> Told:
    """Times are stretched by up to ``most``, mostly by little: a cubed uniform variable."""
    levels: list[float] = []

    def start(generator: np.random.Generator) -> Factors:
        def factors(phases: int, *_: object) -> list[float]:
            levels.append(1.0)
            return [1 / (1 + most * float(value) ** 3) for value in generator.random(phases)]

        levels.clear()
        return factors

    return Told(f"times stretched by up to {most:g}", start, median=1 / (1 + most / 8), levels=levels)


def volatile(calm: float, stormy: float) -> Told:
    """Visits scatter little for a while, then much."""
    levels: list[float] = []

    def start(generator: np.random.Generator) -> Factors:
        levels.clear()
        storm = False

        def factors(phases: int, *_: object) -> list[float]:
            nonlocal storm
            storm = storm != bool(generator.random() < 0.05)
            levels.append(1.0)
            return [math.exp((stormy if storm else calm) * value) for value in generator.standard_normal(phases)]

        return factors

    return Told(f"calm {100 * calm:.0f} %, storms of {100 * stormy:.0f} %", start, levels=levels)


def regimes(mean_s: float, budget_s: float = 120.0) -> Told:
    """Neighbours' jobs begin and end: one of three levels, for so long on average."""
    levels: list[float] = []

    def start(generator: np.random.Generator) -> Factors:
        levels.clear()
        level, until_s = 1.0, float(generator.exponential(mean_s))

        def factors(phases: int, passed: float, _: str) -> list[float]:
            nonlocal level, until_s
            while passed * budget_s > until_s:
                level = float(generator.choice([one for one in (1.0, 0.85, 1.12) if one != level]))
                until_s += float(generator.exponential(mean_s))
            levels.append(level)
            return [level * math.exp(0.03 * value) for value in generator.standard_normal(phases)]

        return factors

    return Told(f"three levels, {mean_s:g} s each", start, changes=True, levels=levels)


def two_paths(apart: float) -> Told:
    """Every other visit goes by the slower path."""
    levels: list[float] = []

    def start(generator: np.random.Generator) -> Factors:
        levels.clear()

        def factors(phases: int, *_: object) -> list[float]:
            level = math.exp(apart / 2 * (-1) ** len(levels))
            levels.append(level)
            return [level * math.exp(0.03 * value) for value in generator.standard_normal(phases)]

        return factors

    return Told(f"two paths in turn, {100 * apart:.0f} % apart", start, changes=True, levels=levels)


def rough_beginning(first: float, later: float) -> Told:
    """The first phase of each visit scatters much more than the others."""
    levels: list[float] = []

    def start(generator: np.random.Generator) -> Factors:
        levels.clear()

        def factors(phases: int, *_: object) -> list[float]:
            levels.append(1.0)
            values = generator.standard_normal(phases)
            return [math.exp((later if index else first) * value) for index, value in enumerate(values)]

        return factors

    return Told(f"first phases {100 * first:.0f} %, others {100 * later:.0f} %", start, levels=levels)


def fourth_noises() -> tuple[Told, ...]:
    """Those of the equal systems."""
    return (
        long_memory(0.08),
        finite_tail(0.8),
        volatile(0.02, 0.18),
        regimes(15.0),
        two_paths(0.16),
        rough_beginning(0.2, 0.03),
    )


def usual(deviation: float = 0.05) -> Told:
    """Every phase by itself."""
    levels: list[float] = []

    def start(generator: np.random.Generator) -> Factors:
        levels.clear()

        def factors(phases: int, *_: object) -> list[float]:
            levels.append(1.0)
            return [math.exp(deviation * value) for value in generator.standard_normal(phases)]

        return factors

    return Told(f"every phase by itself, {100 * deviation:.0f} %", start, levels=levels)


def planted_noises() -> tuple[Told, ...]:
    """Those of the planted truths, chosen before any survey of them was made."""
    return usual(0.05), volatile(0.02, 0.18)
