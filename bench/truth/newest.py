"""Truths that were planted after all rules were made: no threshold was chosen by them."""

from __future__ import annotations

import math
from functools import partial

from bench.truth.hard import hard
from bench.truth.parts import parts
from bench.truth.planted import REFILL, State, Truth, equal, known_truths
from bench.truth.second import second
from bench.truth.unforeseen import unforeseen
from strakes.plan import MetadataPhase, Phase, TransferPhase
from strakes.units import GIB, MIB

# How many files a server knows before it has to look for them, and what a client may move at once.
FILES_KNOWN = 60_000.0
BUCKET = 2.0 * GIB
SHARED_CACHE = 24.0 * MIB
SOFT_LIMIT = 8.0 * GIB
WARM_S = 30.0
COLLECTS_EVERY_S, COLLECTS_FOR_S = 20.0, 4.0
CHANGED = ("not-stationary", "depends on")


def newest_truths() -> tuple[Truth, ...]:
    """Throttles, caches, locks, servers and neighbours that no rule was made for."""
    return (
        Truth("each client may move 2 GiB at once", _bucket, (State(), State(spent_bytes=BUCKET)), CHANGED),
        Truth("creates slow from 60,000 files on", _many_files, (State(), State(made=FILES_KNOWN)), CHANGED),
        Truth(
            "read-ahead helps from 1 MiB on",
            _read_ahead,
            told_by=(
                "reads still grow at the largest",
                "saturate at 1 MiB",
                "1 MiB transfers suffice",
                "reads = 1 MiB",
            ),
        ),
        Truth(
            "metadata server collects 4 s of every 20",
            _collecting,
            (State(), State(now_s=COLLECTS_EVERY_S - COLLECTS_FOR_S)),
            (*CHANGED, "bimodal"),
            passing=True,
        ),
        Truth("the first 24 MiB of all ranks' writes are cached", _shared_cache),
        Truth(
            "locks go to and fro from 6 ranks on",
            _ping_pong,
            told_by=("4 ranks suffice", "saturate at 4 ranks", "node, writes = 4"),
        ),
        Truth(
            "one of four servers 30 % slower",
            _one_of_four,
            remote=True,
            servers=lambda _: {f"server {number}": 1.0 if number == 3 else 0.7 for number in range(4)},
        ),
        Truth(
            "a link that carries what 3 ranks ask for",
            _link,
            told_by=("4 ranks suffice", "saturate at 4 ranks", "writes = 4", "reads = 4"),
        ),
        Truth("every second rank at 60 %", _odd_ranks, told_by=("still grow at the largest", "more than 1 rank")),
        Truth("soft limit after 8 GiB", _soft_limit, (State(), State(written_bytes=SOFT_LIMIT)), CHANGED),
        Truth("warms up for 30 s", _warming, (State(), State(now_s=WARM_S)), (*CHANGED, "drift")),
        *(neighbour(*shape) for shape in _NEIGHBOURS),
    )


# How long on and off, how much of that on, and what is left meanwhile.
_NEIGHBOURS = ((0.5, 0.5, 0.5), (2.0, 0.3, 0.6), (7.0, 0.8, 0.5), (10.0, 0.2, 0.3))


def neighbour(period_s: float, busy: float, left: float) -> Truth:
    """Return a neighbour who comes and goes: for a share of each period he leaves a share."""
    return Truth(
        f"neighbour on for {100 * busy:.0f} % of {period_s:g} s, leaves {100 * left:.0f} %",
        partial(_neighbour, period_s, busy, left),
        (State(), State(now_s=period_s * (1 - busy))),
        (*CHANGED, "bimodal", "dependent-runs"),
        passing=True,
    )


def every_truth() -> tuple[Truth, ...]:
    """All planted truths."""
    return (*known_truths(), *newest_truths(), *parts())


def truth_named(name: str) -> Truth:
    """Raises StopIteration for a name that none has."""
    later = (truth for truth, _ in (*unforeseen(), *second(), *hard()))
    return next(truth for truth in (*every_truth(), *later) if truth.name == name)


def _moves(phase: Phase, operation: str) -> bool:
    return isinstance(phase, TransferPhase) and phase.operation == operation


def _bucket(phase: Phase, ranks: int, state: State) -> float:
    empty = isinstance(phase, TransferPhase) and state.spent_bytes >= BUCKET
    return REFILL if empty else equal(phase, ranks, state)


def _many_files(phase: Phase, ranks: int, state: State) -> float:
    creates = isinstance(phase, MetadataPhase) and phase.operation == "file-create"
    return equal(phase, ranks, state) * (0.4 if creates and state.made >= FILES_KNOWN else 1.0)


def _read_ahead(phase: Phase, ranks: int, state: State) -> float:
    helps = isinstance(phase, TransferPhase) and not phase.direct and phase.transfer_bytes >= MIB
    return equal(phase, ranks, state) * (1.8 if helps and _moves(phase, "read") else 1.0)


def _collecting(phase: Phase, ranks: int, state: State) -> float:
    collects = math.fmod(state.now_s, COLLECTS_EVERY_S) >= COLLECTS_EVERY_S - COLLECTS_FOR_S
    return equal(phase, ranks, state) * (0.2 if isinstance(phase, MetadataPhase) and collects else 1.0)


def _shared_cache(phase: Phase, ranks: int, state: State) -> float:
    rate = equal(phase, ranks, state)
    if not isinstance(phase, TransferPhase) or phase.operation != "write":
        return rate
    amount = phase.operations(ranks) * phase.transfer_bytes
    cached = min(amount, SHARED_CACHE)
    return amount / (cached / (4 * rate) + (amount - cached) / rate)


def _ping_pong(phase: Phase, ranks: int, state: State) -> float:
    shares = min(ranks, 4) / 4 if isinstance(phase, TransferPhase) else 1.0
    return equal(phase, ranks, state) * shares * (0.4 if _moves(phase, "write") and ranks >= 6 else 1.0)


def _one_of_four(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.7 if isinstance(phase, TransferPhase) else 1.0)


def _link(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (min(ranks, 3) / 3 if isinstance(phase, TransferPhase) else 1.0)


def _odd_ranks(phase: Phase, ranks: int, state: State) -> float:
    """All have the same to do, and the slowest is waited for."""
    return equal(phase, ranks, state) / 4 * (ranks * 0.6 if ranks > 1 else 1.0)


def _soft_limit(phase: Phase, ranks: int, state: State) -> float:
    limited = _moves(phase, "write") and state.written_bytes >= SOFT_LIMIT
    return equal(phase, ranks, state) * (0.3 if limited else 1.0)


def _warming(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.4 + 0.6 * min(1.0, state.now_s / WARM_S))


def _neighbour(period_s: float, busy: float, left: float, phase: Phase, ranks: int, state: State) -> float:
    on = math.fmod(state.now_s, period_s) >= period_s * (1 - busy)
    return equal(phase, ranks, state) * (left if on else 1.0)
