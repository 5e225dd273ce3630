"""A second set of truths and noises, committed before a survey of any of them was made."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from bench.truth.noise import Factors, Noise, log_normal
from bench.truth.planted import Rate, State, Truth, equal
from strakes.plan import MetadataPhase, Phase, TransferPhase
from strakes.units import GIB, KIB, MIB

if TYPE_CHECKING:
    import numpy as np

CHANGED = ("not-stationary", "depends on", "bimodal")
USUAL = log_normal(0.05)
# Heat: of so many bytes without a pause; hot parts work at half until they were left alone for so long.
HOT_BYTES, COOLING_S = 3.0 * GIB, 6.0
CREDITS, REFILLED = 60_000.0, 2_000.0
FULL_BYTES, COLLECTING_S = 1.5 * GIB, 2.0
SNAPSHOT_EVERY_S, COPIED_BYTES = 30.0, 512.0 * MIB
SLEEPS_AFTER_S, WAKES_IN_S = 0.5, 0.3
REMOVED_FILES = 40_000.0
FLUSH_S = 0.06
CALLS = 4_000.0
KNOWN_NAMES = 500
VISITS_OF_NEIGHBOUR = ((7.0, 9.0), (18.0, 23.0), (41.0, 42.0), (60.0, 71.0), (90.0, 93.0), (104.0, 106.0))


def second() -> tuple[tuple[Truth, Noise], ...]:
    """Return heat, credits, collections, snapshots, sleep, lost processors and others, and all cells equal under three noises."""
    planted = (
        _remembering("thermal throttle that recovers slowly", _hot, State(memory=1.0), _heat),
        _remembering("credits of metadata, refilled in idle time", _spent, State(memory=CREDITS), _spend),
        Truth("one slow directory of eight", _slow_directory, (State(), State(lot=0.875)), CHANGED, passing=True),
        Truth("lookups get slower with age", _ageing, (State(), State(now_s=100.0)), (*CHANGED, "drift")),
        _remembering("2 s of collection after each 1.5 GiB written", _collects, State(memory=1.0), _fill),
        Truth("calls over 512 KiB are cut", _cut_calls),
        Truth("removals get faster up to 40,000", _removals, (State(), State(removed=REMOVED_FILES)), CHANGED),
        Truth(
            "half of the processors gone from 40 to 80 s", _processors, (State(now_s=1.0), State(now_s=40.0)), CHANGED
        ),
        _remembering(
            "first 512 MiB after each snapshot at 40 %", _copied_first, State(memory=COPIED_BYTES), _since_snapshot
        ),
        Truth("reads wait 60 ms for what was written", _flushed),
        Truth("4,000 calls a second from 50 s on", _limited_calls, (State(), State(now_s=50.0)), CHANGED),
        Truth("rebuild takes more and more from 20 to 100 s", _rebuilding, (State(), State(now_s=99.0)), CHANGED),
        Truth("metadata fails over at 45 s, 70 % from then on", _fails_over, (State(), State(now_s=48.0)), CHANGED),
        Truth(
            "three kinds of data servers by directory",
            _three_kinds,
            (State(), State(lot=0.4), State(lot=0.7)),
            CHANGED,
        ),
        Truth("lookups of the first 500 names are remembered", _remembered_names),
        _remembering("device sleeps after 0.5 s without data", _asleep, State(memory=SLEEPS_AFTER_S), _doze),
        Truth("irregular neighbour, six visits", _irregular, (State(), State(now_s=7.0)), CHANGED, passing=True),
    )
    nothing = Truth("all cells equal")
    noises = (rounded(0.06), paying_back(0.12), rough_start())
    return (*((truth, USUAL) for truth in planted), *((nothing, noise) for noise in noises))


def _remembering(
    name: str, rate: Rate, other: State, remember: Callable[[State, Phase | None, float, float], float]
) -> Truth:
    return Truth(name, rate, (State(), other), CHANGED, passing=True, remember=remember)


def _data(phase: Phase | None) -> bool:
    return isinstance(phase, TransferPhase)


def _names(phase: Phase | None, *operations: str) -> bool:
    return isinstance(phase, MetadataPhase) and (not operations or phase.operation in operations)


def _lookups(phase: Phase) -> bool:
    return isinstance(phase, MetadataPhase) and phase.operation not in ("file-create", "file-remove")


def _reads(phase: Phase | None) -> bool:
    return isinstance(phase, TransferPhase) and phase.operation == "read"


def _writes(phase: Phase | None) -> bool:
    return isinstance(phase, TransferPhase) and phase.operation == "write"


def _hot(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.5 if _data(phase) and state.memory >= 1 else 1.0)


def _heat(state: State, phase: Phase | None, amount: float, seconds: float) -> float:
    """From 0 to 1 while it warms up; from 2 back to 1 while it is hot, and then half warm."""
    if state.memory < 1:
        warm = state.memory + amount / HOT_BYTES if _data(phase) else state.memory - seconds / COOLING_S
        return 2.0 if warm >= 1 else max(0.0, warm)
    cooled = state.memory if _data(phase) else state.memory - seconds / COOLING_S
    return cooled if cooled >= 1 else 0.5


def _spent(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.25 if _names(phase) and state.memory >= CREDITS else 1.0)


def _spend(state: State, phase: Phase | None, amount: float, seconds: float) -> float:
    return min(CREDITS, state.memory + amount) if _names(phase) else max(0.0, state.memory - REFILLED * seconds)


def _slow_directory(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.3 if state.lot >= 0.875 else 1.0)


def _ageing(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) / (1 + state.now_s / 100 if _lookups(phase) else 1.0)


def _collects(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.25 if state.memory >= 1 else 1.0)


def _fill(state: State, phase: Phase | None, amount: float, seconds: float) -> float:
    """From 0 to 1 while it fills up; from 2 back to 1 while it collects."""
    if state.memory < 1:
        filled = state.memory + (amount / FULL_BYTES if _writes(phase) else 0.0)
        return 2.0 if filled >= 1 else filled
    left = state.memory - seconds / COLLECTING_S
    return left if left >= 1 else 0.0


def _cut_calls(phase: Phase, ranks: int, state: State) -> float:
    cut = isinstance(phase, TransferPhase) and phase.transfer_bytes > 512 * KIB
    return equal(phase, ranks, state) * (0.6 if cut else 1.0)


def _removals(phase: Phase, ranks: int, state: State) -> float:
    learnt = 0.3 + 0.7 * min(1.0, state.removed / REMOVED_FILES)
    return equal(phase, ranks, state) * (learnt if _names(phase, "file-remove") else 1.0)


def _processors(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * min(ranks, 2 if 40 <= state.now_s < 80 else 4) / 4


def _copied_first(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.4 if _writes(phase) and state.memory < COPIED_BYTES else 1.0)


def _since_snapshot(state: State, phase: Phase | None, amount: float, seconds: float) -> float:
    if int(state.now_s // SNAPSHOT_EVERY_S) != int((state.now_s + seconds) // SNAPSHOT_EVERY_S):
        return 0.0
    return state.memory + (amount if _writes(phase) else 0.0)


def _flushed(phase: Phase, ranks: int, state: State) -> float:
    rate = equal(phase, ranks, state)
    if not isinstance(phase, TransferPhase) or not _reads(phase):
        return rate
    amount = phase.operations(ranks) * phase.transfer_bytes
    return amount / (FLUSH_S + amount / rate)


def _limited_calls(phase: Phase, ranks: int, state: State) -> float:
    rate = equal(phase, ranks, state)
    limited = isinstance(phase, TransferPhase) and state.now_s >= 50
    return min(rate, CALLS * phase.transfer_bytes) if limited and isinstance(phase, TransferPhase) else rate


def _rebuilding(phase: Phase, ranks: int, state: State) -> float:
    taken = 0.6 * (state.now_s - 20) / 80 if 20 <= state.now_s < 100 else 0.0
    return equal(phase, ranks, state) * (1 - taken if _data(phase) else 1.0)


def _fails_over(phase: Phase, ranks: int, state: State) -> float:
    left = 1.0 if state.now_s < 45 else 0.02 if state.now_s < 48 else 0.7
    return equal(phase, ranks, state) * (left if _names(phase) else 1.0)


def _three_kinds(phase: Phase, ranks: int, state: State) -> float:
    kind = 1.0 if state.lot < 0.4 else 0.7 if state.lot < 0.7 else 0.45
    return equal(phase, ranks, state) * (kind if _data(phase) else 1.0)


def _remembered_names(phase: Phase, ranks: int, state: State) -> float:
    rate = equal(phase, ranks, state)
    if not _lookups(phase):
        return rate
    names = phase.operations(ranks)
    known = min(names, KNOWN_NAMES)
    return names / (known / (6 * rate) + (names - known) / rate)


def _asleep(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.05 if _data(phase) and state.memory >= SLEEPS_AFTER_S else 1.0)


def _doze(state: State, phase: Phase | None, amount: float, seconds: float) -> float:
    """Seconds without data; who wakes it counts down from the time that this takes."""
    del amount
    if not _data(phase):
        return state.memory + seconds
    left = min(state.memory, SLEEPS_AFTER_S + WAKES_IN_S) - seconds
    return left if left >= SLEEPS_AFTER_S else 0.0


def _irregular(phase: Phase, ranks: int, state: State) -> float:
    there = any(begin <= state.now_s < end for begin, end in VISITS_OF_NEIGHBOUR)
    return equal(phase, ranks, state) * (0.4 if there else 1.0)


def rounded(step: float) -> Noise:
    """Rates are told in steps of a share of themselves."""

    def start(generator: np.random.Generator) -> Factors:
        return lambda phases, *_: [
            math.exp(step * round(0.05 * value / step)) for value in generator.standard_normal(phases)
        ]

    return Noise(f"rates in steps of {100 * step:.0f} %", start)


def paying_back(deviation: float) -> Noise:
    """What one phase of a visit gains, the next one loses."""

    def start(generator: np.random.Generator) -> Factors:
        def factors(phases: int, *_: object) -> list[float]:
            first = deviation * float(generator.standard_normal())
            signs = (first if place % 2 == 0 else -first for place in range(phases))
            return [
                math.exp(sign + 0.02 * value)
                for sign, value in zip(signs, generator.standard_normal(phases), strict=True)
            ]

        return factors

    return Noise("what a phase gains the next one loses", start)


def rough_start() -> Noise:
    """20 % of scatter in the first third of the time, 3 % from then on; the level stays."""

    def start(generator: np.random.Generator) -> Factors:
        return lambda phases, passed, *_: [
            math.exp((0.2 if passed < 1 / 3 else 0.03) * value) for value in generator.standard_normal(phases)
        ]

    return Noise("20 % at first, then 3 %", start)
