"""A file system with a mechanism that changes it while it is used, and what was true of it at each moment of a survey."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from strakes.plan import MetadataPhase, Phase, TransferPhase

if TYPE_CHECKING:
    from bench.truth.planted import State, Visited

MIB = 1024.0**2
HORIZON_S = 400.0

Grade = Literal["slight", "moderate", "severe"]


@dataclass(frozen=True)
class Shape:
    """What the file system does when nothing disturbs it: B/s of 8 MiB transfers by four ranks, and operations/s."""

    write: float = 400 * MIB
    read: float = 500 * MIB
    # Transfers of so many bytes reach half of what large ones do.
    half_write: float = 0.0
    half_read: float = 0.0
    half_direct: float = 0.0
    direct_write: float = 1.0
    direct_read: float = 1.0
    # Relative to four ranks.
    write_ranks: Mapping[int, float] = field(default_factory=dict)
    read_ranks: Mapping[int, float] = field(default_factory=dict)
    name_ranks: Mapping[int, float] = field(default_factory=dict)
    shared_write: float = 1.0
    shared_read: float = 1.0
    strided_write: float = 1.0
    strided_read: float = 1.0
    operations: Mapping[str, float] = field(default_factory=dict)
    operation: float = 8000.0
    shared_directory: float = 1.0

    def rate(self, phase: Phase, ranks: int) -> float:
        if isinstance(phase, TransferPhase):
            return self._moves(phase, ranks)
        assert isinstance(phase, MetadataPhase)
        rate = self.operations.get(phase.operation, self.operation) * _at(self.name_ranks, ranks)
        return rate * (self.shared_directory if phase.directory == "shared" and ranks > 1 else 1.0)

    def _moves(self, phase: TransferPhase, ranks: int) -> float:
        writes = phase.operation == "write"
        rate = (self.write if writes else self.read) * _at(self.write_ranks if writes else self.read_ranks, ranks)
        half = self.half_direct if phase.direct else self.half_write if writes else self.half_read
        rate *= phase.transfer_bytes / (phase.transfer_bytes + half) * (8 * MIB + half) / (8 * MIB)
        if phase.direct:
            rate *= self.direct_write if writes else self.direct_read
        if phase.layout == "shared-file" and ranks > 1:
            rate *= self.shared_write if writes else self.shared_read
            if phase.access == "strided":
                rate *= self.strided_write if writes else self.strided_read
        return rate


def _at(by_ranks: Mapping[int, float], ranks: int) -> float:
    """What is given for so many ranks, else for the nearest number."""
    return by_ranks[min(by_ranks, key=lambda given: abs(math.log(given / ranks)))] if by_ranks else 1.0


@dataclass
class Now:
    """What the file system is in the middle of. Mechanisms keep what they need in ``values``."""

    at_s: float = 0.0
    visit: int = 0
    lot: float = 0.5
    # Of the phase that runs.
    age_s: float = 0.0
    done: float = 0.0
    values: dict[str, float] = field(default_factory=dict)
    # Drawn before the survey and never changed.
    tracks: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)

    def get(self, name: str, default: float = 0.0) -> float:
        return self.values.get(name, default)

    def track(self, name: str, step_s: float = 0.05) -> float:
        series = self.tracks[name]
        return float(series[min(int(self.at_s / step_s), len(series) - 1)])

    def fork(self) -> Now:
        """The same, to try out what else could have been run at this moment."""
        other = copy.copy(self)
        other.values, other.age_s, other.done = dict(self.values), 0.0, 0.0
        return other


Factor = Callable[[Now, Phase, int], float]
Advance = Callable[[Now, Phase | None, int, float, float], None]
Draw = Callable[[np.random.Generator], dict[str, np.ndarray[Any, Any]]]


@dataclass(frozen=True)
class Never:
    """A sentence that is false of a truth wherever it is said as a finding or as advice."""

    pattern: str
    grade: Grade
    why: str


@dataclass(frozen=True)
class Fifth:
    """A truth. ``about`` says what the file system does, ``false`` in words what would be false of it, ``never`` as patterns.

    ``shown`` are pairs of patterns of measures of which a claim apart from 1 tells the truth; ``cause`` patterns that name it.
    """

    name: str
    everyday: bool
    about: str
    false: tuple[str, ...]
    shape: Shape = field(default_factory=Shape)
    factor: Factor | None = None
    advance: Advance | None = None
    draw: Draw | None = None
    # By luck that has no memory of the work, or in turn: what one run had is not true of its setting.
    luck: bool = False
    nothing: bool = False
    remote: bool = False
    resident: bool = False
    servers: Mapping[str, float] = field(default_factory=dict)
    cached: Callable[[Phase], float] | None = None
    never: tuple[Never, ...] = ()
    cause: tuple[str, ...] = ()
    shown: tuple[tuple[str, str], ...] = ()

    @property
    def moving(self) -> bool:
        return self.factor is not None


@dataclass(frozen=True)
class Moment:
    """A phase that was run, and the file system just before."""

    now: Now
    phase: Phase
    ranks: int


@dataclass
class Machine:
    """What :func:`bench.truth.simulated.survey` asks a truth for, of one survey."""

    truth: Fifth
    seed: int
    states: tuple[float, ...] = ()
    found: Any = None

    def __post_init__(self) -> None:
        # Whatever moves is looked at in small steps.
        self.states = self.states or ((0.0, 1.0) if self.truth.moving else (0.0,))
        draw = self.truth.draw
        self.now = Now(tracks=draw(np.random.default_rng([self.seed, 5])) if draw else {})
        self.moments: list[Moment] = []
        self.visited: list[Visited] = []
        self._phase: Phase | None = None
        self._ranks = 1

    @property
    def name(self) -> str:
        return self.truth.name

    @property
    def remote(self) -> bool:
        return self.truth.remote

    @property
    def resident(self) -> bool:
        return self.truth.resident

    def servers(self, _: State) -> Mapping[str, float]:
        return self.truth.servers

    def from_cache(self, phase: Phase) -> float:
        return self.truth.cached(phase) if self.truth.cached and phase.operation == "read" else 0.0

    def rate(self, phase: Phase, ranks: int, _: State) -> float:
        if phase is not self._phase:
            self._phase, self._ranks = phase, ranks
            self.now.age_s = self.now.done = 0.0
            self.moments.append(Moment(self.now.fork(), phase, ranks))
        return rate_of(self.truth, self.now, phase, ranks)

    def remember(self, state: State, phase: Phase | None, amount: float, seconds: float) -> float:
        if phase is None:
            self.now.visit += 1
            self._phase = None
        step(self.truth, self.now, phase, self._ranks, amount, seconds)
        if phase is None:
            self.now.at_s = state.now_s + seconds
            self.now.lot = float(np.random.default_rng([self.seed, 7, self.now.visit]).random())
        return 0.0

    def met(self, visited: list[Visited]) -> tuple[float, ...]:
        self.visited = list(visited)
        return self.states


def rate_of(truth: Fifth, now: Now, phase: Phase, ranks: int) -> float:
    rate = truth.shape.rate(phase, ranks)
    return rate * truth.factor(now, phase, ranks) if truth.factor else rate


def step(truth: Fifth, now: Now, phase: Phase | None, ranks: int, amount: float, seconds: float) -> None:
    if truth.advance:
        truth.advance(now, phase, ranks, amount, seconds)
    now.at_s += seconds
    now.age_s += seconds
    now.done += amount


def would(truth: Fifth, now: Now, phase: Phase, ranks: int) -> float:
    """How fast a phase would be, as a whole, if it began at this moment."""
    assert isinstance(phase, TransferPhase | MetadataPhase)
    if not truth.moving:
        return truth.shape.rate(phase, ranks)
    now = now.fork()
    left = float(phase.operations(ranks) * (phase.transfer_bytes if isinstance(phase, TransferPhase) else 1))
    limit_s = phase.stop.seconds if phase.stop.rule != "amount" and phase.stop.seconds is not None else math.inf
    step_s = 0.01 if limit_s <= 0.3 else 0.02
    done = elapsed_s = 0.0
    while left > 1e-6 and elapsed_s < limit_s - 1e-9 and elapsed_s < HORIZON_S:
        rate = rate_of(truth, now, phase, ranks)
        part_s = min(step_s, left / rate, limit_s - elapsed_s)
        step(truth, now, phase, ranks, part_s * rate, part_s)
        done, left, elapsed_s = done + part_s * rate, left - part_s * rate, elapsed_s + part_s
    return done / elapsed_s


def kind(phase: Phase) -> str:
    """Which kind of work a phase is: write, read, create, stat, remove or open."""
    names = {"file-open-close": "open", "dir-create": "create", "file-create": "create"}
    return names.get(phase.operation, phase.operation.split("-")[-1])
