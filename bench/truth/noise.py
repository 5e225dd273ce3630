"""Noises of a simulated file system: each gives the factors by which one visit's phases are faster or slower."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

# The factors of the phases of the next visit: from how many there are, how much of the budget has passed, and which cell it is.
Factors = Callable[[int, float, str], list[float]]


@dataclass(frozen=True)
class Noise:
    """``start`` makes the factors of one survey, which may depend on each other.

    ``changes``: the level itself moves. ``median``: of the factors, which is what figures are medians of. ``tick_s``: the clock
    of the engine knows no shorter times.
    """

    name: str
    start: Callable[[np.random.Generator], Factors]
    changes: bool = False
    median: float = 1.0
    tick_s: float = 0.0


def log_normal(deviation: float) -> Noise:
    """Every phase by itself."""

    def start(generator: np.random.Generator) -> Factors:
        return lambda phases, *_: [math.exp(deviation * value) for value in generator.standard_normal(phases)]

    return Noise(f"log-normal, {100 * deviation:.0f} %", start)


def stalls(scale: float) -> Noise:
    """Rare, long stalls: times are stretched by a Pareto variable of index 1.5."""

    def start(generator: np.random.Generator) -> Factors:
        return lambda phases, *_: [1 / (1 + scale * value) for value in generator.pareto(1.5, phases)]

    # The median of a Pareto variable of that index, beyond 1.
    return Noise(f"Pareto stalls, {scale:g}", start, median=1 / (1 + scale * (2 ** (1 / 1.5) - 1)))


def dependent(correlation: float, deviation: float = 0.1) -> Noise:
    """Each visit much like the one before: an autoregression of order 1, of that standard deviation."""

    def start(generator: np.random.Generator) -> Factors:
        level = deviation * float(generator.standard_normal())

        def factors(phases: int, *_: object) -> list[float]:
            nonlocal level
            level = correlation * level + deviation * math.sqrt(1 - correlation**2) * float(generator.standard_normal())
            return [math.exp(level + 0.02 * value) for value in generator.standard_normal(phases)]

        return factors

    return Noise(f"AR(1) {correlation:g} over visits", start)


def dependent_cells(correlation: float, deviation: float = 0.05) -> Noise:
    """Each visit of a cell much like the cell's visit before it."""

    def start(generator: np.random.Generator) -> Factors:
        levels: dict[str, float] = {}

        def factors(phases: int, _: float, cell: str) -> list[float]:
            fresh = deviation * float(generator.standard_normal())
            before = levels.get(cell)
            level = fresh if before is None else correlation * before + math.sqrt(1 - correlation**2) * fresh
            levels[cell] = level
            return [math.exp(level)] * phases

        return factors

    return Noise(f"AR(1) {correlation:g} in each cell", start)


def drifting(change: float, deviation: float = 0.05) -> Noise:
    """Slower and slower, by ``change`` in all."""

    def start(generator: np.random.Generator) -> Factors:
        return lambda phases, passed, _: [
            (1 - change * min(1.0, passed)) * math.exp(deviation * value) for value in generator.standard_normal(phases)
        ]

    return Noise(f"drift of {100 * change:.0f} %", start, changes=True)


def five() -> tuple[Noise, ...]:
    """The noises on which nothing but "equal" is true."""
    return log_normal(0.03), log_normal(0.1), stalls(0.1), dependent(0.8), drifting(0.3)


def two_modes(share: float, slow: float) -> Noise:
    """Most phases fast, ``share`` of them at ``slow`` of that, both with 3 % of noise."""

    def start(generator: np.random.Generator) -> Factors:
        return lambda phases, *_: [
            (slow if generator.random() < share else 1.0) * math.exp(0.03 * value)
            for value in generator.standard_normal(phases)
        ]

    quantile = NormalDist().inv_cdf(1 - 0.5 / (1 - share))
    name = f"two modes, {100 * share:.0f} % at {slow:g}"
    return Noise(name, start, median=math.exp(0.03 * quantile))


def heavy_tails(scale: float) -> Noise:
    """Far off in both directions now and then: the logarithm is a Student variable of 3 degrees of freedom."""

    def start(generator: np.random.Generator) -> Factors:
        return lambda phases, *_: [math.exp(scale * value) for value in generator.standard_t(3, phases)]

    return Noise(f"log of Student t3, {scale:g}", start)


def bursts(every: float, slow: float) -> Noise:
    """Whole visits in a row are slow, a share of ``every`` of all: a neighbour who comes and goes at random."""

    def start(generator: np.random.Generator) -> Factors:
        busy = False

        def factors(phases: int, *_: object) -> list[float]:
            nonlocal busy
            busy = bool(generator.random() < (0.8 if busy else 0.2 * every / (1 - every)))
            return [(slow if busy else 1.0) * math.exp(0.03 * value) for value in generator.standard_normal(phases)]

        return factors

    return Noise(f"bursts, {100 * every:.0f} % of visits at {slow:g}", start, median=1.0 - 0.03 * every, changes=True)


def quantised(tick_s: float) -> Noise:
    """5 % of noise, measured with a clock of that resolution."""
    usual = log_normal(0.05)
    return Noise(f"clock of {1000 * tick_s:g} ms, 5 %", usual.start, tick_s=tick_s)


def more_noises() -> tuple[Noise, ...]:
    """Others than those that the survey was made with in mind."""
    return (
        two_modes(0.3, 0.7),
        heavy_tails(0.1),
        bursts(0.15, 0.6),
        quantised(0.004),
        dependent(0.5),
        dependent_cells(0.5),
        dependent_cells(0.8),
    )


def uneven(least: float, most: float) -> Noise:
    """Each cell scatters by a deviation of its own."""

    def start(generator: np.random.Generator) -> Factors:
        deviations: dict[str, float] = {}

        def factors(phases: int, _: float, cell: str) -> list[float]:
            deviation = deviations.setdefault(cell, float(generator.uniform(least, most)))
            return [math.exp(deviation * value) for value in generator.standard_normal(phases)]

        return factors

    return Noise(f"{100 * least:.0f} to {100 * most:.0f} %, by cell", start)


def whole_visits(deviation: float) -> Noise:
    """All phases of a visit are fast or slow together, each visit by itself."""

    def start(generator: np.random.Generator) -> Factors:
        return lambda phases, *_: [math.exp(deviation * float(generator.standard_normal()))] * phases

    return Noise(f"visits as a whole, {100 * deviation:.0f} %", start)


def two_modes_of_visits(share: float, slow: float) -> Noise:
    """Whole visits are slow, ``share`` of them, whatever the one before was."""

    def start(generator: np.random.Generator) -> Factors:
        def factors(phases: int, *_: object) -> list[float]:
            level = slow if generator.random() < share else 1.0
            return [level * math.exp(0.03 * value) for value in generator.standard_normal(phases)]

        return factors

    quantile = NormalDist().inv_cdf(1 - 0.5 / (1 - share))
    return Noise(f"{100 * share:.0f} % of visits at {slow:g}", start, median=math.exp(0.03 * quantile))


def swinging(period_s: float, depth: float, budget_s: float = 120.0) -> Noise:
    """A background load that comes and goes as a sine, and takes up to ``depth``."""

    def start(generator: np.random.Generator) -> Factors:
        offset = float(generator.uniform(0, 2 * math.pi))

        def factors(phases: int, passed: float, _: str) -> list[float]:
            level = 1 - depth * (1 + math.sin(offset + 2 * math.pi * passed * budget_s / period_s)) / 2
            return [level * math.exp(0.03 * value) for value in generator.standard_normal(phases)]

        return factors

    return Noise(f"a sine of {period_s:g} s, {100 * depth:.0f} % deep", start, changes=True)


def random_walk(step: float) -> Noise:
    """Each visit is as fast as the one before but for a step that stays."""

    def start(generator: np.random.Generator) -> Factors:
        level = 0.0

        def factors(phases: int, *_: object) -> list[float]:
            nonlocal level
            level += step * float(generator.standard_normal())
            return [math.exp(level + 0.02 * value) for value in generator.standard_normal(phases)]

        return factors

    return Noise(f"random walk, steps of {100 * step:g} %", start, changes=True)


def freezes(share: float, times: float) -> Noise:
    """Now and then a phase takes many times as long."""

    def start(generator: np.random.Generator) -> Factors:
        return lambda phases, *_: [
            math.exp(0.05 * value) / (times if generator.random() < share else 1.0)
            for value in generator.standard_normal(phases)
        ]

    quantile = NormalDist().inv_cdf(1 - 0.5 / (1 - share))
    return Noise(f"{100 * share:.0f} % of phases frozen", start, median=math.exp(0.05 * quantile))


def cold_first(slow: float) -> Noise:
    """The first visit of each cell is slow, with 5 % of noise."""

    def start(generator: np.random.Generator) -> Factors:
        seen: set[str] = set()

        def factors(phases: int, _: float, cell: str) -> list[float]:
            level = 1.0 if cell in seen else slow
            seen.add(cell)
            return [level * math.exp(0.05 * value) for value in generator.standard_normal(phases)]

        return factors

    return Noise(f"first visits of cells at {slow:g}", start, changes=True)


def later_noises() -> tuple[Noise, ...]:
    """Made when the rules were; no threshold was chosen by them."""
    coarse = log_normal(0.1)
    return (
        uneven(0.02, 0.2),
        whole_visits(0.1),
        two_modes_of_visits(0.4, 0.75),
        swinging(7.3, 0.3),
        random_walk(0.015),
        freezes(0.03, 8.0),
        cold_first(0.6),
        dependent(-0.6),
        log_normal(0.25),
        Noise("clock of 15 ms, 10 %", coarse.start, tick_s=0.015),
    )


def noise_named(name: str) -> Noise:
    """Raises StopIteration for a name that none has."""
    # Not above: what was made later is made of these.
    from bench.truth.hard import hard
    from bench.truth.second import second
    from bench.truth.unforeseen import unforeseen
    from bench.truth.unsteady import unsteady

    later = (noise for _, noise in (*unforeseen(), *second(), *hard()))
    every = (
        *later,
        *five(),
        *more_noises(),
        *later_noises(),
        *unsteady(),
        log_normal(0.05),
        stalls(0.3),
        drifting(0.1),
    )
    return next(noise for noise in every if noise.name == name)
