"""Truths in which a part of the work changes, and ones in which what is varied brings something else with it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from bench.truth.planted import State, Truth, equal
from strakes.plan import MetadataPhase, Phase, TransferPhase
from strakes.units import KIB, MIB

SMALL = 256 * KIB
# Small calls that may be made at full speed at once, and a second.
CALLS, CALLS_A_SECOND = 1_500.0, 800.0
FILE = 6 * MIB
CHANGED = ("not-stationary", "depends on")

Touched = Callable[[Phase], bool]


def parts() -> tuple[Truth, ...]:
    """Return changes of some kinds of work, or of some calls of a kind, and files whose size decides."""
    return (
        _since("writes and creates at half from 60 s on", _writes_and_creates, 0.5, 60),
        _since("removing and renaming at 40 % from 45 s on", _removes_and_renames, 0.4, 45),
        _since("reads and writes at 55 % from 70 s on", _moves, 0.55, 70),
        _since("looking up at a third from 50 s on", _looks_up, 1 / 3, 50),
        _since("calls of less than 256 KiB at 40 % from 55 s on", _small, 0.4, 55),
        _in_turn("reads at 45 % for 6 s of each 14", _reads, 0.45, 14, 6),
        _in_turn("creating and removing at 45 % for 8 s of each 20", _makes, 0.45, 20, 8),
        Truth(
            "small calls limited when 1,500 are spent",
            _limited,
            (State(), State(memory=CALLS)),
            (*CHANGED, "bimodal", "dependent-runs"),
            passing=True,
            remember=_spent,
        ),
        Truth("files of less than 6 MiB at 60 %", partial(_by_size, 0.6, 1.0)),
        Truth("files of 6 MiB and more at half", partial(_by_size, 1.0, 0.5)),
    )


def hardly_met() -> Truth:
    """Return one that few of the phases of a survey meet: it is hardly ever told, nor that its ratios depend on it."""
    return _in_turn("O_DIRECT at 40 % for 5 s of each 13", _past_cache, 0.4, 13, 5)


def _since(name: str, touched: Touched, left: float, at_s: float) -> Truth:
    return Truth(name, partial(_later, touched, left, at_s), (State(), State(now_s=at_s)), CHANGED)


def _in_turn(name: str, touched: Touched, left: float, period_s: float, slow_s: float) -> Truth:
    states = (State(), State(now_s=period_s - slow_s))
    rate = partial(_at_times, touched, left, period_s, slow_s)
    return Truth(name, rate, states, (*CHANGED, "bimodal", "dependent-runs"), passing=True)


def _later(touched: Touched, left: float, at_s: float, phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (left if touched(phase) and state.now_s >= at_s else 1.0)


def _at_times(
    touched: Touched, left: float, period_s: float, slow_s: float, phase: Phase, ranks: int, state: State
) -> float:
    slow = math.fmod(state.now_s, period_s) >= period_s - slow_s
    return equal(phase, ranks, state) * (left if touched(phase) and slow else 1.0)


def _does(phase: Phase, *words: str) -> bool:
    return isinstance(phase, MetadataPhase) and not {*words}.isdisjoint(phase.operation.split("-"))


def _moves(phase: Phase) -> bool:
    return isinstance(phase, TransferPhase)


def _reads(phase: Phase) -> bool:
    return isinstance(phase, TransferPhase) and phase.operation == "read"


def _writes_and_creates(phase: Phase) -> bool:
    return (_moves(phase) and not _reads(phase)) or _does(phase, "create")


def _removes_and_renames(phase: Phase) -> bool:
    return _does(phase, "remove", "rename")


def _looks_up(phase: Phase) -> bool:
    return _does(phase, "stat", "open")


def _makes(phase: Phase) -> bool:
    return _does(phase, "create", "remove")


def _small(phase: Phase) -> bool:
    return isinstance(phase, TransferPhase) and phase.transfer_bytes < SMALL


def _past_cache(phase: Phase) -> bool:
    return isinstance(phase, TransferPhase) and phase.direct


def _limited(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.4 if _small(phase) and state.memory >= CALLS else 1.0)


def _spent(state: State, phase: Phase | None, amount: float, seconds: float) -> float:
    calls = amount / phase.transfer_bytes if isinstance(phase, TransferPhase) and _small(phase) else 0.0
    return min(1.5 * CALLS, max(0.0, state.memory + calls - CALLS_A_SECOND * seconds))


def _by_size(smaller: float, larger: float, phase: Phase, ranks: int, state: State) -> float:
    """Files of a rank that are smaller or larger than so much; one shared file is as large as all ranks make it."""
    if not isinstance(phase, TransferPhase):
        return equal(phase, ranks, state)
    size = phase.block_bytes * phase.segments * (ranks if phase.layout == "shared-file" else 1)
    return equal(phase, ranks, state) * (smaller if size < FILE else larger)
