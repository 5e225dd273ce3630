"""Truths and noises that were written down before anybody looked at what the rules say of them.

They are unseen no longer: rules were made with surveys of several of them in view, up to two of some.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from bench.truth.noise import Factors, Noise, log_normal
from bench.truth.planted import State, Truth, equal
from strakes.plan import MetadataPhase, Phase, TransferPhase
from strakes.units import KIB, MIB

if TYPE_CHECKING:
    import numpy as np

CHANGED = ("not-stationary", "depends on", "bimodal")
USUAL = log_normal(0.05)
STALL_EVERY, STALL_FROM = 512.0 * MIB, 448.0 * MIB
WARM_FILES = 30_000.0


def unforeseen() -> tuple[tuple[Truth, Noise], ...]:
    """Return servers by directory, short dips, stalls, cliffs and warming caches, and all cells equal under noises of several scales."""
    planted = (
        _while("two kinds of data servers by directory", State(lot=0.5), lambda now: now.lot >= 0.5, _data, 0.55),
        _while(
            "a slow metadata server for 30 % of directories", State(lot=0.7), lambda now: now.lot >= 0.7, _names, 0.4
        ),
        _while("dip of 8 s to 35 %", State(now_s=50.0), lambda now: 50 <= now.now_s < 58, _all, 0.35),
        _while("dip of 6 s to 40 %", State(now_s=31.0), lambda now: 31 <= now.now_s < 37, _all, 0.4),
        _while("dip of metadata of 11 s to 30 %", State(now_s=60.0), lambda now: 60 <= now.now_s < 71, _names, 0.3),
        _while("reads at 60 % from 85 s on", State(now_s=85.0), lambda now: now.now_s >= 85, _reads, 0.6),
        _while(
            "large buffered reads at 160 % from 40 s on", State(now_s=40.0), lambda now: now.now_s >= 40, _ahead, 1.6
        ),
        Truth(
            "writes stall for 64 of each 512 MiB",
            _stalling,
            (State(), State(written_bytes=STALL_FROM + MIB)),
            CHANGED,
            passing=True,
        ),
        Truth("3 s of each 40 s at 8 %", _stopping, (State(), State(now_s=37.0)), CHANGED, passing=True),
        Truth("lookups get faster up to 30,000 files", _warming, (State(), State(made=WARM_FILES)), CHANGED),
        Truth("writes of more than 16 MiB a rank at half", _cliff),
        Truth("one of four ranks on a slow node", _slow_node),
        Truth("unlike metadata operations", _unlike),
    )
    noises = (by_phase(0.9, 0.1), of_operations(0.8, 0.1), of_several_scales(0.06), pink(0.06), clustered(), waiting())
    nothing = Truth("all cells equal")
    return (*((truth, USUAL) for truth in planted), *((nothing, noise) for noise in noises))


def _while(
    name: str, changed: State, when: Callable[[State], bool], of: Callable[[Phase], bool], factor: float
) -> Truth:
    def rate(phase: Phase, ranks: int, state: State) -> float:
        return equal(phase, ranks, state) * (factor if of(phase) and when(state) else 1.0)

    return Truth(name, rate, (State(), changed), CHANGED)


def _all(_: Phase) -> bool:
    return True


def _data(phase: Phase) -> bool:
    return isinstance(phase, TransferPhase)


def _names(phase: Phase) -> bool:
    return isinstance(phase, MetadataPhase)


def _reads(phase: Phase) -> bool:
    return isinstance(phase, TransferPhase) and phase.operation == "read"


def _writes(phase: Phase) -> bool:
    return isinstance(phase, TransferPhase) and phase.operation == "write"


def _ahead(phase: Phase) -> bool:
    return (
        isinstance(phase, TransferPhase)
        and phase.operation == "read"
        and not phase.direct
        and phase.transfer_bytes >= 256 * KIB
    )


def _stalling(phase: Phase, ranks: int, state: State) -> float:
    stalls = _writes(phase) and math.fmod(state.written_bytes, STALL_EVERY) > STALL_FROM
    return equal(phase, ranks, state) * (0.15 if stalls else 1.0)


def _stopping(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.08 if math.fmod(state.now_s, 40) >= 37 else 1.0)


def _warming(phase: Phase, ranks: int, state: State) -> float:
    looks = isinstance(phase, MetadataPhase) and phase.operation not in ("file-create", "file-remove")
    return equal(phase, ranks, state) * (0.4 + 0.6 * min(1.0, state.made / WARM_FILES) if looks else 1.0)


def _cliff(phase: Phase, ranks: int, state: State) -> float:
    far = (
        isinstance(phase, TransferPhase)
        and phase.operation == "write"
        and phase.operations(ranks) * phase.transfer_bytes / ranks > 16 * MIB
    )
    return equal(phase, ranks, state) * (0.5 if far else 1.0)


def _slow_node(phase: Phase, ranks: int, state: State) -> float:
    """All have the same to do, and the slowest is waited for."""
    return equal(phase, ranks, state) * (ranks / 4 * (0.5 if ranks >= 4 else 1.0) if _data(phase) else 1.0)


def _unlike(phase: Phase, ranks: int, state: State) -> float:
    factors = {"file-create": 1.0, "file-remove": 0.2, "file-stat": 3.0}
    factor = factors.get(phase.operation, 1.5) if _names(phase) else 1.3 if _reads(phase) else 1.0
    return equal(phase, ranks, state) * factor


def _next(generator: np.random.Generator, correlation: float, deviation: float, level: float | None) -> float:
    fresh = deviation * float(generator.standard_normal())
    return fresh if level is None else correlation * level + math.sqrt(1 - correlation**2) * fresh


def by_phase(correlation: float, deviation: float) -> Noise:
    """Each phase much like the one before it, whatever they do."""

    def start(generator: np.random.Generator) -> Factors:
        level: float | None = None

        def factors(phases: int, *_: object) -> list[float]:
            nonlocal level
            made = []
            for _phase in range(phases):
                level = _next(generator, correlation, deviation, level)
                made.append(math.exp(level))
            return made

        return factors

    return Noise(f"AR(1) {correlation:g} by phase", start)


def of_operations(correlation: float, deviation: float) -> Noise:
    """The first phases of visits are a series of their own, and so are the second ones, and so on."""

    def start(generator: np.random.Generator) -> Factors:
        levels: dict[int, float] = {}

        def factors(phases: int, *_: object) -> list[float]:
            for place in range(phases):
                levels[place] = _next(generator, correlation, deviation, levels.get(place))
            return [math.exp(levels[place]) for place in range(phases)]

        return factors

    return Noise(f"AR(1) {correlation:g} of each operation", start)


def of_several_scales(deviation: float) -> Noise:
    """Autoregressions over visits of 0.95 and of 0.5, one of 0.6 in each cell, and 3 % of each phase."""

    def start(generator: np.random.Generator) -> Factors:
        levels: dict[str, float] = {}

        def factors(phases: int, _: float, cell: str) -> list[float]:
            for name, correlation in (("slow", 0.95), ("fast", 0.5), (cell, 0.6)):
                levels[name] = _next(generator, correlation, deviation, levels.get(name))
            level = levels["slow"] + levels["fast"] + levels[cell]
            return [math.exp(level + 0.03 * value) for value in generator.standard_normal(phases)]

        return factors

    return Noise("AR(1) 0.95 and 0.5 over visits and 0.6 in each cell", start)


def pink(deviation: float, budget_s: float = 120.0) -> Noise:
    """Wanders with time constants of 0.3, 1, 3 and 10 s together."""

    def start(generator: np.random.Generator) -> Factors:
        levels = dict.fromkeys((0.3, 1.0, 3.0, 10.0), 0.0)
        last_s = 0.0

        def factors(phases: int, passed: float, _: str) -> list[float]:
            nonlocal last_s
            step_s, last_s = max(1e-3, passed * budget_s - last_s), passed * budget_s
            for constant_s, level in levels.items():
                levels[constant_s] = _next(generator, math.exp(-step_s / constant_s), deviation, level)
            level = sum(levels.values())
            return [math.exp(level + 0.03 * value) for value in generator.standard_normal(phases)]

        return factors

    return Noise("pink, 0.3 to 10 s", start)


def clustered() -> Noise:
    """How far phases scatter wanders by itself."""

    def start(generator: np.random.Generator) -> Factors:
        spread = 0.0

        def factors(phases: int, *_: object) -> list[float]:
            nonlocal spread
            spread = _next(generator, 0.95, 0.8, spread)
            return [math.exp(0.06 * math.exp(spread) * value) for value in generator.standard_normal(phases)]

        return factors

    return Noise("scatter that comes and goes", start)


def waiting() -> Noise:
    """Times are a fixed part and a gamma variable of shape 0.5."""

    def start(generator: np.random.Generator) -> Factors:
        return lambda phases, *_: [1 / (0.7 + 0.3 * value) for value in generator.gamma(0.5, 2.0, phases)]

    # The median of that gamma variable is 0.4549.
    return Noise("gamma waits", start, median=1 / (0.7 + 0.3 * 0.4549))
