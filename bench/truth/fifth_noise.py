"""Noises for :mod:`bench.truth.fifth`: levels of scatter, tails, dependence, scatter that comes and goes, coarse clocks, stalls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

Factors = Callable[[int, float, str], "Sequence[float]"]


def _listed(values: np.ndarray[Any, Any]) -> list[float]:
    return [float(value) for value in values]


@dataclass(frozen=True)
class Disturbance:
    """``begin`` starts the noise of one survey; ``median`` is what its factors have for a median.

    ``wanders`` says that visits resemble the ones before, so that a warning that says so is true.
    """

    name: str
    begin: Callable[[np.random.Generator], Factors]
    everyday: bool
    median: float = 1.0
    wanders: bool = False
    two_levels: bool = False
    tick_s: float = 0.0

    def start(self, random: np.random.Generator) -> Factors:
        return self.begin(random)


def _plain(sigma: float) -> Callable[[np.random.Generator], Factors]:
    def begin(random: np.random.Generator) -> Factors:
        return lambda count, _at, _plan: _listed(np.exp(random.normal(0.0, sigma, count)))

    return begin


def _queues(random: np.random.Generator) -> Factors:
    """Each phase waits in a queue, of 12 % on average, exponentially; two in a hundred wait five times as long."""

    def factors(count: int, _at: float, _plan: str) -> list[float]:
        waits = random.exponential(0.12, count) * np.where(random.random(count) < 0.02, 5.0, 1.0)
        return _listed(np.exp(random.normal(0.0, 0.02, count)) / (1.0 + waits))

    return factors


def _comes_and_goes(random: np.random.Generator) -> Factors:
    """Scatter of 2 % or of 16 %, each for twelve visits on average."""
    loud = bool(random.random() < 0.5)

    def factors(count: int, _at: float, _plan: str) -> list[float]:
        nonlocal loud
        loud ^= bool(random.random() < 1 / 12)
        return _listed(np.exp(random.normal(0.0, 0.16 if loud else 0.02, count)))

    return factors


def _wanders(random: np.random.Generator) -> Factors:
    """Three wanderings with memories of 1.5, 8 and 40 visits, 4 % each, that all phases of a visit share, and 3 % of each phase."""
    memory = np.exp(-1.0 / np.array([1.5, 8.0, 40.0]))
    level = random.normal(0.0, 0.04, 3)

    def factors(count: int, _at: float, _plan: str) -> list[float]:
        nonlocal level
        level = memory * level + np.sqrt(1 - memory**2) * random.normal(0.0, 0.04, 3)
        return _listed(np.exp(level.sum() + random.normal(0.0, 0.03, count)))

    return factors


def _stalls(random: np.random.Generator) -> Factors:
    """Scatter of 4 %; one visit of fifty stalls, and one of its phases takes 4 to 40 times as long."""

    def factors(count: int, _at: float, _plan: str) -> list[float]:
        values = np.exp(random.normal(0.0, 0.04, count))
        if random.random() < 0.02:
            values[int(random.integers(count))] /= float(np.exp(random.uniform(np.log(4), np.log(40))))
        return _listed(values)

    return factors


def _own_scatter(random: np.random.Generator) -> Factors:
    """Each plan has its own scatter, 1.5 to 25 %."""
    sigmas: dict[str, float] = {}

    def factors(count: int, _at: float, plan: str) -> list[float]:
        sigma = sigmas.setdefault(plan, float(np.exp(random.uniform(np.log(0.015), np.log(0.25)))))
        return _listed(np.exp(random.normal(0.0, sigma, count)))

    return factors


def _whole_visits(random: np.random.Generator) -> Factors:
    """All phases of a visit share 11 %, with fat tails (Student, 3), and have 2 % of their own."""

    def factors(count: int, _at: float, _plan: str) -> list[float]:
        shared = 0.11 * float(np.clip(random.standard_t(3) / np.sqrt(3), -6, 6))
        return _listed(np.exp(shared + random.normal(0.0, 0.02, count)))

    return factors


def noises() -> tuple[Disturbance, ...]:
    """All of them. The first five are everyday."""
    return (
        Disturbance("calm, 2 %", _plain(0.02), everyday=True),
        Disturbance("usual, 7 %", _plain(0.07), everyday=True),
        Disturbance("queues, 12 % of waiting", _queues, everyday=True, median=0.92),
        Disturbance("rare stalls, 4 %", _stalls, everyday=True),
        Disturbance("wandering, 7 % with long memory", _wanders, everyday=True, wanders=True),
        Disturbance("scatter comes and goes, 2 or 16 %", _comes_and_goes, everyday=False),
        Disturbance("own scatter of each plan, 1.5 to 25 %", _own_scatter, everyday=False),
        Disturbance("whole visits, 11 % with fat tails, clock of 4 ms", _whole_visits, everyday=False, tick_s=0.004),
    )


def noise_named(name: str) -> Disturbance:
    return next(noise for noise in noises() if noise.name == name)
