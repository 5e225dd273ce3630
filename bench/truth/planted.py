"""Planted truths: simulated file systems of which everything is known, and what a survey of each may say."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from strakes.plan import MetadataPhase, Phase, TransferPhase
from strakes.units import GIB, KIB, MIB

BANDWIDTH = 400.0 * MIB
CREATES = 20_000.0
CACHE = 12.0 * GIB


@dataclass(frozen=True)
class State:
    """What the file system has been through: seconds, bytes written, files made and removed since the survey began."""

    now_s: float = 0.0
    written_bytes: float = 0.0
    made: float = 0.0
    removed: float = 0.0


Rate = Callable[[Phase, int, State], float]


def equal(phase: Phase, ranks: int, state: State) -> float:
    """Return the same throughput whatever is asked, in bytes or operations a second."""
    del ranks, state
    return BANDWIDTH if isinstance(phase, TransferPhase) else CREATES


@dataclass(frozen=True)
class Truth:
    """``rate`` without noise. ``states`` are the states in which the file system is met: what is said has to hold in each of them.

    ``told_by`` are parts of warnings and findings of which one has to appear for the truth, or its cause, to have been said.
    ``from_cache``: the share of a read that no device had to answer. ``servers``: what each server had to do of a phase's time.
    """

    name: str
    rate: Rate = equal
    states: tuple[State, ...] = (State(),)
    told_by: tuple[str, ...] = ()
    from_cache: Callable[[Phase], float] = lambda _: 0.0
    remote: bool = False
    servers: Mapping[str, float] | None = None

    def value(self, phase: Phase, ranks: int, state: State, unit: str) -> float:
        """What a measure of that phase is without noise."""
        rate = self.rate(phase, ranks, state)
        return ranks / rate if unit == "s" else rate


def truths() -> tuple[Truth, ...]:
    """All of them; the first is the one with nothing to be found."""
    late = State(now_s=100.0, written_bytes=20.0 * GIB, made=200_000.0, removed=200_000.0)
    return (
        Truth("all cells equal"),
        Truth(
            "saturation at 4 ranks",
            partial(_ranks, 4),
            told_by=_ranks_told(4),
        ),
        Truth(
            "64 KiB as good as 1 MiB",
            _small_calls,
            told_by=(
                "saturate at 64 KiB",
                "64 KiB transfers suffice",
                "transfer size, writes = 64 KiB",
                "transfer size, reads = 64 KiB",
            ),
        ),
        Truth("client cache", _client_cache, told_by=("cache-suspect",), from_cache=_cached_by_client),
        Truth("server cache", _server_cache, told_by=("cache-suspect",), from_cache=_any_read, remote=True),
        Truth(
            "one of two servers 3 x slower",
            _slow_server,
            told_by=("server-unlike", "target-unlike"),
            remote=True,
            servers={"server 0": 1 / 3, "server 1": 1.0},
        ),
        Truth("slower with each file", _slower_with_files, (State(), late), ("not-stationary", "depends on")),
        Truth("churn", _churn, (State(), late), ("not-stationary", "depends on")),
        Truth("collapsing write cache", _write_cache, (State(), late), ("not-stationary", "depends on")),
        Truth(
            "neighbour 5 s on, 5 s off", _on_off, (State(), State(now_s=7.0)), ("not-stationary", "shifts", "bimodal")
        ),
        Truth("slow first 48 s", _slow_start, (State(), late), ("not-stationary", "depends on", "before")),
    )


def more_truths() -> tuple[Truth, ...]:
    """Others than those that the survey was made with in mind."""
    late = State(now_s=100.0, written_bytes=20.0 * GIB, made=200_000.0, removed=200_000.0)
    changed = ("not-stationary", "depends on")
    return (
        Truth("saturation at 2 ranks", partial(_ranks, 2), told_by=_ranks_told(2)),
        Truth("saturation between levels, at 6 ranks", partial(_ranks, 6), told_by=_ranks_told(8)),
        Truth("grows with the root of the ranks", _root_of_ranks, told_by=("still grow at the largest",)),
        Truth("more than 2 ranks are in each other's way", _crowded, told_by=_ranks_told(2)),
        Truth("O_DIRECT is fast in large calls only", _large_direct, told_by=("O_DIRECT", "saturate at 1 MiB")),
        Truth("twice as fast from 30 s on", _step_up, (State(), late), changed),
        Truth("half as fast from 40 s on", _step_down, (State(), late), changed),
        Truth("reads at 70 % from 40 s on", _reads_down, (State(), late), changed),
        Truth("neighbour 20 s on, 20 s off", partial(_periodic, 40.0), (State(), State(now_s=30.0)), changed),
        Truth("neighbour 1.5 s on, 1.5 s off", partial(_periodic, 3.0), (State(), State(now_s=2.0)), changed),
    )


def truth_named(name: str) -> Truth:
    """Raises StopIteration for a name that none has."""
    return next(truth for truth in (*truths(), *more_truths()) if truth.name == name)


def _ranks_told(ranks: int) -> tuple[str, ...]:
    ways = (f"processes per node, {operation} = {ranks}" for operation in ("writes", "reads"))
    return (f"saturate at {ranks} ranks", f"{ranks} ranks suffice", *ways)


def _ranks(most: int, phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (min(ranks, most) / most if isinstance(phase, TransferPhase) else 1.0)


def _root_of_ranks(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * math.sqrt(ranks / 4)


def _crowded(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (min(ranks, 2) / 2 / (1 + 0.2 * max(0, ranks - 2)))


def _large_direct(phase: Phase, ranks: int, state: State) -> float:
    """Latency-bound below 1 MiB, and faster than the page cache from there on."""
    if not isinstance(phase, TransferPhase) or not phase.direct:
        return equal(phase, ranks, state)
    return equal(phase, ranks, state) * 1.5 * min(1.0, phase.transfer_bytes / MIB)


def _step_up(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (1.0 if state.now_s < 30 else 2.0)


def _step_down(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (1.0 if state.now_s < 40 else 0.5)


def _reads_down(phase: Phase, ranks: int, state: State) -> float:
    reads = isinstance(phase, TransferPhase) and phase.operation == "read"
    return equal(phase, ranks, state) * (0.7 if reads and state.now_s >= 40 else 1.0)


def _periodic(period_s: float, phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.5 if state.now_s % period_s >= period_s / 2 else 1.0)


def _small_calls(phase: Phase, ranks: int, state: State) -> float:
    small = isinstance(phase, TransferPhase) and phase.transfer_bytes < 64 * KIB
    return equal(phase, ranks, state) * (0.4 if small else 1.0)


def _cached_by_client(phase: Phase) -> float:
    """The cache cannot be dropped; O_DIRECT goes past it."""
    return float(isinstance(phase, TransferPhase) and phase.operation == "read" and not phase.direct)


def _client_cache(phase: Phase, ranks: int, state: State) -> float:
    return CACHE if _cached_by_client(phase) else equal(phase, ranks, state)


def _any_read(phase: Phase) -> float:
    return float(isinstance(phase, TransferPhase) and phase.operation == "read")


def _server_cache(phase: Phase, ranks: int, state: State) -> float:
    return CACHE if _any_read(phase) else equal(phase, ranks, state)


def _slow_server(phase: Phase, ranks: int, state: State) -> float:
    """Files alternate between the servers, and the slower one is waited for."""
    return equal(phase, ranks, state) * (2 / 3 / 2 if isinstance(phase, TransferPhase) else 1.0)


def _slower_with_files(phase: Phase, ranks: int, state: State) -> float:
    creates = isinstance(phase, MetadataPhase) and phase.operation == "file-create"
    return equal(phase, ranks, state) / (1 + state.made / 20_000 if creates else 1.0)


def _churn(phase: Phase, ranks: int, state: State) -> float:
    creates = isinstance(phase, MetadataPhase) and phase.operation == "file-create"
    churned = min(1.0, state.removed / 10_000)
    return equal(phase, ranks, state) * (4.0 * (1 - churned) + 0.1 * churned if creates else 1.0)


def _write_cache(phase: Phase, ranks: int, state: State) -> float:
    writes = isinstance(phase, TransferPhase) and phase.operation == "write"
    return equal(phase, ranks, state) * (5.0 if writes and state.written_bytes < 4 * GIB else 1.0)


def _on_off(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.4 if state.now_s % 10 < 5 else 1.0)


def _slow_start(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.4 if state.now_s < 48 else 1.0)


def moved(state: State, phase: Phase, amount: float, seconds: float) -> State:
    """The state after a phase that moved or did so much."""
    if isinstance(phase, TransferPhase):
        written = amount if phase.operation == "write" else 0.0
        return replace(state, now_s=state.now_s + seconds, written_bytes=state.written_bytes + written)
    made = amount if phase.operation == "file-create" else 0.0
    removed = amount if phase.operation == "file-remove" else 0.0
    return replace(state, now_s=state.now_s + seconds, made=state.made + made, removed=state.removed + removed)
