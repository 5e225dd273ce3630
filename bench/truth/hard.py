"""Truths and noises that were made with the rules in view, to find where these fail."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bench.truth.noise import Factors, Noise, dependent, log_normal
from bench.truth.parts import hardly_met
from bench.truth.planted import State, Truth, equal
from strakes.plan import Phase, TransferPhase

if TYPE_CHECKING:
    import numpy as np

CHANGED = ("not-stationary", "depends on", "bimodal")


def hard() -> tuple[tuple[Truth, Noise], ...]:
    """Return losses for a time that only some settings feel, late changes, and equal systems whose cells differ in noise."""
    nothing = Truth("all cells equal")
    return (
        (
            Truth("half of the processors gone from 40 to 80 s", _fewer, (State(), State(now_s=40.0)), CHANGED),
            log_normal(0.05),
        ),
        (
            Truth("8 and more ranks at half from 70 s on", _many_late, (State(), State(now_s=70.0)), CHANGED),
            log_normal(0.05),
        ),
        (
            Truth("writes at 40 % for 3 s of each 23", _sleeping, (State(), State(now_s=21.0)), CHANGED, passing=True),
            log_normal(0.05),
        ),
        (hardly_met(), log_normal(0.05)),
        (nothing, wandering_cells(0.9, 0.1, 0.5)),
        (nothing, wandering_cells(0.9, 0.05, 1 / 3)),
        (nothing, dependent(0.97)),
        (nothing, rough_first(2, 0.25)),
        (nothing, rough_phases(0.2)),
    )


def _fewer(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * min(ranks, 2 if 40 <= state.now_s < 80 else 4) / 4


def _many_late(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.5 if ranks >= 8 and state.now_s >= 70 else 1.0)


def _sleeping(phase: Phase, ranks: int, state: State) -> float:
    slow = isinstance(phase, TransferPhase) and phase.operation == "write" and math.fmod(state.now_s, 23) >= 20
    return equal(phase, ranks, state) * (0.4 if slow else 1.0)


def wandering_cells(correlation: float, deviation: float, share: float) -> Noise:
    """An autoregression of its own in that share of the cells; 5 % of noise in all others."""

    def start(generator: np.random.Generator) -> Factors:
        states: dict[str, float | None] = {}

        def factors(phases: int, _: float, cell: str) -> list[float]:
            if cell not in states:
                wanders = float(generator.random()) < share
                states[cell] = float(generator.standard_normal()) if wanders else None
            state = states[cell]
            if state is None:
                return [math.exp(0.05 * value) for value in generator.standard_normal(phases)]
            state = correlation * state + math.sqrt(1 - correlation**2) * float(generator.standard_normal())
            states[cell] = state
            return [math.exp(deviation * state + 0.02 * value) for value in generator.standard_normal(phases)]

        return factors

    return Noise(f"AR(1) {correlation:g}, {100 * deviation:.0f} %, in {100 * share:.0f} % of the cells", start)


def rough_first(visits: int, deviation: float) -> Noise:
    """So many visits of each cell scatter more than all later ones, which do by 3 %."""

    def start(generator: np.random.Generator) -> Factors:
        made: dict[str, int] = {}

        def factors(phases: int, _: float, cell: str) -> list[float]:
            made[cell] = made.get(cell, 0) + 1
            scale = deviation if made[cell] <= visits else 0.03
            return [math.exp(scale * value) for value in generator.standard_normal(phases)]

        return factors

    return Noise(f"the first {visits} visits of each cell {100 * deviation:.0f} %, then 3 %", start)


def rough_phases(deviation: float) -> Noise:
    """Every third phase of a cell scatters that much, all others by 2 %."""

    def start(generator: np.random.Generator) -> Factors:
        return lambda phases, *_: [
            math.exp((deviation if number % 3 == 1 else 0.02) * float(value))
            for number, value in enumerate(generator.standard_normal(phases))
        ]

    return Noise(f"every third phase {100 * deviation:.0f} %, others 2 %", start)
