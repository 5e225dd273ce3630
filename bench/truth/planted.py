"""Planted truths: simulated file systems of which everything is known, and what a survey of each may say."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import NamedTuple

from strakes.plan import MetadataPhase, Phase, TransferPhase
from strakes.units import GIB, KIB, MIB

BANDWIDTH = 400.0 * MIB
CREATES = 20_000.0
CACHE = 12.0 * GIB
# A write cache that empties by itself, at so many bytes a second.
DRAIN = 100.0 * MIB
# What a client may move is refilled by so much a second.
REFILL = 150.0 * MIB
# Of the phases: a state that fewer were run in is nobody's to tell.
_FEW = 0.05
_AS_FAST = 0.1


@dataclass(frozen=True)
class State:
    """What the file system has been through: seconds, bytes written, files made and removed since the survey began.

    ``dirty_bytes``: what was written and would not have left a write cache yet; ``spent_bytes``: what was read and written
    and is not refilled yet, where a client may move so much at once. ``lot``: from 0 to 1, drawn for each visit, where it
    matters which server its directory came to. ``memory``: what a truth remembers, in its own unit.
    """

    now_s: float = 0.0
    written_bytes: float = 0.0
    made: float = 0.0
    removed: float = 0.0
    dirty_bytes: float = 0.0
    spent_bytes: float = 0.0
    lot: float = 0.0
    memory: float = 0.0

    def reached(self, later: State) -> bool:
        """Whether the file system had been through as much as this."""
        return all(getattr(self, field.name) <= getattr(later, field.name) for field in fields(self))


class Visited(NamedTuple):
    """A phase that was run: the state it met at its beginning, and its rate without noise."""

    state: State
    phase: Phase
    ranks: int
    rate: float


Rate = Callable[[Phase, int, State], float]


def equal(phase: Phase, ranks: int, state: State) -> float:
    """Return the same throughput whatever is asked, in bytes or operations a second."""
    del ranks, state
    return BANDWIDTH if isinstance(phase, TransferPhase) else CREATES


@dataclass(frozen=True)
class Truth:
    """``rate`` without noise. ``states`` are those in which the file system may be met: what is said has to hold in each that was.

    ``told_by`` are parts of warnings and findings of which one has to appear for the truth, or its cause, to have been said.
    ``from_cache``: the share of a read that no device had to answer. ``servers``: what each server had to do of a phase's time; none
    where no server counts. ``resident``: whether the client's kernel knows what its cache holds. ``passing``: states come and go
    within seconds, and a phase that is as long meets both. ``found``: of the phases that a survey made, the mean rates without noise.
    ``remember``: what becomes of the memory of a state by a phase, or by none, that did so much in so many seconds.
    """

    name: str
    rate: Rate = equal
    states: tuple[State, ...] = (State(),)
    told_by: tuple[str, ...] = ()
    from_cache: Callable[[Phase], float] = lambda _: 0.0
    remote: bool = False
    servers: Callable[[State], Mapping[str, float]] = lambda _: {"server 0": 0.5}
    resident: bool = True
    passing: bool = False
    remember: Callable[[State, Phase | None, float, float], float] = lambda state, *_: state.memory
    found: Mapping[tuple[Phase, int], tuple[float, ...]] = field(default_factory=dict)

    def value(self, phase: Phase, ranks: int, state: State, unit: str) -> float:
        """What a measure of that phase is without noise."""
        rate = self.rate(phase, ranks, state)
        return ranks / rate if unit == "s" else rate

    def met(self, visited: Sequence[Visited]) -> tuple[State, ...]:
        """Return the states that a twentieth or more of the phases that they make a difference to were run in.

        Such a phase began in that state, the last one that the file system had come to, or was as fast as it makes it.
        """
        touched = [
            one for one in visited if len({self.rate(one.phase, one.ranks, planted) for planted in self.states}) > 1
        ]
        return tuple(
            state for state in self.states if sum(self._in(state, one) for one in touched) >= _FEW * len(touched)
        )

    def _in(self, state: State, one: Visited) -> bool:
        last = [planted for planted in self.states if planted.reached(one.state)][-1:]
        return state in last or abs(one.rate / self.rate(one.phase, one.ranks, state) - 1) < _AS_FAST


def truths() -> tuple[Truth, ...]:
    """All of them; the first is the one with nothing to be found."""
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
            servers=lambda _: {"server 0": 1 / 3, "server 1": 1.0},
        ),
        Truth(
            "slower with each file",
            _slower_with_files,
            (State(), State(made=20_000.0)),
            ("not-stationary", "depends on"),
        ),
        Truth("churn", _churn, (State(), State(removed=10_000.0)), ("not-stationary", "depends on")),
        Truth(
            "collapsing write cache",
            partial(_cache_until, 4.0 * GIB),
            (State(), State(written_bytes=4.0 * GIB)),
            ("not-stationary", "depends on"),
        ),
        Truth(
            "neighbour 5 s on, 5 s off", _on_off, (State(), State(now_s=7.0)), ("not-stationary", "shifts", "bimodal")
        ),
        Truth("slow first 48 s", _slow_start, (State(), State(now_s=48.0)), ("not-stationary", "depends on", "before")),
    )


def more_truths() -> tuple[Truth, ...]:
    """Others than those that the survey was made with in mind."""
    changed = ("not-stationary", "depends on")
    return (
        Truth("saturation at 2 ranks", partial(_ranks, 2), told_by=_ranks_told(2)),
        Truth("saturation between levels, at 6 ranks", partial(_ranks, 6), told_by=_ranks_told(8)),
        Truth("grows with the root of the ranks", _root_of_ranks, told_by=("still grow at the largest",)),
        Truth("more than 2 ranks are in each other's way", _crowded, told_by=_ranks_told(2)),
        Truth("O_DIRECT is fast in large calls only", _large_direct, told_by=("O_DIRECT", "saturate at 1 MiB")),
        Truth("twice as fast from 30 s on", _step_up, (State(), State(now_s=30.0)), changed),
        Truth("half as fast from 40 s on", _step_down, (State(), State(now_s=40.0)), changed),
        Truth("reads at 70 % from 40 s on", _reads_down, (State(), State(now_s=40.0)), changed),
        Truth("neighbour 20 s on, 20 s off", partial(_periodic, 40.0), (State(), State(now_s=30.0)), changed),
        Truth(
            "neighbour 1.5 s on, 1.5 s off",
            partial(_periodic, 3.0),
            (State(), State(now_s=2.0)),
            changed,
            passing=True,
        ),
    )


def later_truths() -> tuple[Truth, ...]:
    """Made when the rules were; no threshold was chosen by them."""
    changed = ("not-stationary", "depends on")
    best = (
        "saturate at 64 KiB",
        "64 KiB transfers suffice",
        "transfer size, writes = 64 KiB",
        "transfer size, reads = 64 KiB",
    )
    own = ("segments of one shared file is 0.", "file layout, writes = a file per process")
    return (
        Truth("64 KiB is the best transfer size", _best_in_the_middle, told_by=best),
        Truth("grows up to 8 ranks", partial(_ranks, 8), told_by=("still grow at the largest",)),
        Truth("slow in large directories", _large_directories),
        Truth("shared files are slow", _shared_files, told_by=own),
        Truth("write cache that drains slowly", _draining, (State(), State(dirty_bytes=2.0 * GIB)), changed),
        Truth(
            "one of two servers slow from 25 s on",
            _server_slows,
            (State(), State(now_s=25.0)),
            (*changed, "server-unlike"),
            remote=True,
            servers=_slow_later,
        ),
        Truth("throttled for 8 s of every 24", _throttled, (State(now_s=1.0), State(now_s=20.0)), changed),
        Truth(
            "server cache answers 60 % of reads",
            partial(_partly_cached, 0.6),
            told_by=("cache-suspect",),
            from_cache=lambda phase: 0.6 * _any_read(phase),
            remote=True,
        ),
        Truth(
            "server cache answers 30 % of reads",
            partial(_partly_cached, 0.3),
            told_by=("cache-suspect",),
            from_cache=lambda phase: 0.3 * _any_read(phase),
            remote=True,
        ),
        Truth(
            "a client's cache that nobody counts",
            _client_cache,
            told_by=("cache-suspect",),
            from_cache=_cached_by_client,
            remote=True,
            servers=lambda _: {},
            resident=False,
        ),
        Truth("creates at half from 20 s on", _creates_down, (State(), State(now_s=20.0)), changed),
        Truth(
            "writes slower with all that was written",
            _slower_with_bytes,
            (State(), State(written_bytes=10.0 * GIB)),
            changed,
        ),
    )


def first_work_truths() -> tuple[Truth, ...]:
    """Changes that the survey's first work makes, before any series of runs can show them."""
    changed = ("not-stationary", "depends on")
    return tuple(
        Truth(
            f"write cache of {size:g} GiB",
            partial(_cache_until, size * GIB),
            (State(), State(written_bytes=size * GIB)),
            changed,
        )
        for size in (1.0, 2.4)
    )


def known_truths() -> tuple[Truth, ...]:
    """All planted truths but the newest, of :mod:`bench.truth.newest`."""
    return (*truths(), *more_truths(), *later_truths(), *first_work_truths())


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


def _cache_until(size: float, phase: Phase, ranks: int, state: State) -> float:
    writes = isinstance(phase, TransferPhase) and phase.operation == "write"
    return equal(phase, ranks, state) * (5.0 if writes and state.written_bytes < size else 1.0)


def _on_off(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.4 if state.now_s % 10 < 5 else 1.0)


def _slow_start(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.4 if state.now_s < 48 else 1.0)


def _best_in_the_middle(phase: Phase, ranks: int, state: State) -> float:
    size = phase.transfer_bytes if isinstance(phase, TransferPhase) else 64 * KIB
    return equal(phase, ranks, state) * (0.5 if size < 64 * KIB else 1.0 if size == 64 * KIB else 0.7)


def _large_directories(phase: Phase, ranks: int, state: State) -> float:
    """Every name is looked for among those that are there, on average half of all."""
    if not isinstance(phase, MetadataPhase):
        return equal(phase, ranks, state)
    names = phase.items * (ranks if phase.directory == "shared" else 1)
    return equal(phase, ranks, state) / (1 + names / 2 / 50)


def _shared_files(phase: Phase, ranks: int, state: State) -> float:
    shared = isinstance(phase, TransferPhase) and phase.operation == "write" and phase.layout == "shared-file"
    return equal(phase, ranks, state) * (0.3 if shared else 1.0)


def _draining(phase: Phase, ranks: int, state: State) -> float:
    writes = isinstance(phase, TransferPhase) and phase.operation == "write"
    return equal(phase, ranks, state) * ((5.0 if state.dirty_bytes < 2 * GIB else DRAIN / BANDWIDTH) if writes else 1.0)


def _server_slows(phase: Phase, ranks: int, state: State) -> float:
    slow = isinstance(phase, TransferPhase) and state.now_s >= 25
    return equal(phase, ranks, state) * (0.4 if slow else 1.0)


def _slow_later(state: State) -> Mapping[str, float]:
    return {"server 0": 0.4, "server 1": 1.0} if state.now_s >= 25 else {"server 0": 1.0, "server 1": 1.0}


def _throttled(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.3 if state.now_s % 24 < 8 else 1.0)


def _partly_cached(share: float, phase: Phase, ranks: int, state: State) -> float:
    rate = equal(phase, ranks, state)
    return 1 / (share / CACHE + (1 - share) / rate) if _any_read(phase) else rate


def _creates_down(phase: Phase, ranks: int, state: State) -> float:
    creates = isinstance(phase, MetadataPhase) and phase.operation == "file-create"
    return equal(phase, ranks, state) * (0.5 if creates and state.now_s >= 20 else 1.0)


def _slower_with_bytes(phase: Phase, ranks: int, state: State) -> float:
    writes = isinstance(phase, TransferPhase) and phase.operation == "write"
    return equal(phase, ranks, state) / (1 + state.written_bytes / (10 * GIB) if writes else 1.0)


def moved(state: State, phase: Phase, amount: float, seconds: float) -> State:
    """The state after a phase that moved or did so much."""
    now_s = state.now_s + seconds
    dirty = max(0.0, state.dirty_bytes - DRAIN * seconds)
    spent = max(0.0, state.spent_bytes - REFILL * seconds)
    if isinstance(phase, TransferPhase):
        written = amount if phase.operation == "write" else 0.0
        # What is refilled while it is spent does not count twice.
        spent = max(0.0, state.spent_bytes + amount - REFILL * seconds)
        moved_bytes = {"written_bytes": state.written_bytes + written, "dirty_bytes": dirty + written}
        return replace(state, now_s=now_s, spent_bytes=spent, **moved_bytes)
    made = amount if phase.operation == "file-create" else 0.0
    removed = amount if phase.operation == "file-remove" else 0.0
    made, removed = state.made + made, state.removed + removed
    return replace(state, now_s=now_s, made=made, removed=removed, dirty_bytes=dirty, spent_bytes=spent)
