"""Protect other users: reduce the load of strakes if small operations become slow.

A second engine in another directory (the probe) executes a few small operations per second.
"""

from __future__ import annotations

import math
import os
import re
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from strakes.base.errors import (
    BadInputError,
    EnvironmentLacksError,
    MeasurementError,
    ServersDeadError,
    StoppedForOthersError,
)
from strakes.base.units import KIB, format_seconds, parse_seconds
from strakes.model.phases import MixedPhase, Part, ProbePhase
from strakes.model.plan import Plan
from strakes.runs.engine import Engine, LocalEngine
from strakes.runs.messages import LoggedOperation, Progress
from strakes.runs.records import NeighbourFelt
from strakes.runs.writer import RunWriter
from strakes.targets.workspace import Workspace

# Reduce the load if 3 of the last 100 operations of a kind were slow. If 1 % are slow, this has a probability of 8 %.
WINDOW, TOO_MANY = 100, 3
# Load levels: share of the time in which each rank works.
SHARES = (1.0, 1 / 2, 1 / 4, 1 / 8, 1 / 16)
# Raise the load after this number of successive fast operations. The number doubles if the raised load was too high.
CALM = 600
# Operations per second of each kind. The load is negligible, but the rate shows a slowdown within seconds.
RATE_PER_S = 10.0
KINDS: tuple[Literal["file-cycle", "file-read", "write-fsync"], ...] = ("file-cycle", "file-read", "write-fsync")
# Duration of one plan of the probe in seconds. The next plan follows immediately.
_PLAN_S = 60.0
_LIMIT_S = 600.0
# Minimum seconds and operations between two reports of the engine, because a report costs more than an operation.
_REPORT_S, _OPERATIONS_PER_REPORT = 0.5, 2
_JOIN_S = 45.0
# Nice value of the probe, which represents users of other machines and must not wait for a processor of this one. The
# probe gets 9 times the processor time of a process with the value 0. With -5, it would get 3 times (sched(7)).
_NICE = -10
# Seconds for which the probe works without the load of strakes: first to fill caches, then to measure.
_WARM_UP_S = 0.5
_ALONE_S = 3.0
# After a cancelled trial, the next one starts after 1 s without slow operations, or at the latest after 5 s.
_QUIET_S = 1.0
_REST_S = 5.0
_LOOK_S = 0.1
# An operation without a result counts as slow this many seconds after the latency limit.
_SILENT_S = 2.0
# Valid limits of --neighbour in seconds. Below 1 ms, the scheduling of the probe dominates its latencies.
_LEAST_LIMIT_S, _MOST_LIMIT_S = 0.001, 60.0


@dataclass(frozen=True)
class Control:
    """Load controller: the share of time in which ranks work. ``stopped``: even the minimum disturbs other users.

    >>> control = Control()
    >>> for slow in [False] * 50 + [True] * 3:
    ...     control = control.after(("cycle", slow))
    >>> control.share, control.stopped
    (0.5, False)
    """

    step: int = 0
    stopped: bool = False
    raised: bool = False
    calm: int = 0
    calm_wanted: int = CALM
    recent: Mapping[str, tuple[bool, ...]] = field(default_factory=dict)

    @property
    def share(self) -> float:
        return SHARES[self.step]

    def after(self, operation: tuple[str, bool]) -> Control:
        """Return the state after one more operation, given as (kind, whether it failed or exceeded the limit)."""
        kind, slow = operation
        recent = (*self.recent.get(kind, ()), slow)[-WINDOW:]
        calm = 0 if slow else self.calm + 1
        if sum(recent) >= TOO_MANY:
            return self._less()
        if self.step > 0 and calm >= self.calm_wanted:
            return Control(self.step - 1, raised=True, calm_wanted=self.calm_wanted)
        return Control(self.step, self.stopped, self.raised, calm, self.calm_wanted, {**self.recent, kind: recent})

    def _less(self) -> Control:
        wanted = 2 * self.calm_wanted if self.raised else self.calm_wanted
        if self.stopped or self.step + 1 == len(SHARES):
            return Control(len(SHARES) - 1, stopped=True, calm_wanted=wanted)
        return Control(self.step + 1, calm_wanted=wanted)


def probe_plan(seconds: float, rate_per_s: float = RATE_PER_S) -> Plan:
    """Return the probe's plan, with one rank for each kind of operation.

    Kinds of operation: create, stat and remove a 4 KiB file; read 4 KiB past the page cache; write 4 KiB with fsync.
    """
    parts = tuple(
        Part(1, ProbePhase(kind, kind, rate_per_s, seconds, files=kind.replace("-", ""), file_bytes=4 * KIB, log=True))
        for kind in KINDS
    )
    return Plan(len(parts), (MixedPhase("neighbour", parts),), 1)


class Probe:
    """Thread that runs small operations, to measure latencies as other users see them."""

    def __init__(self, workspace: Path, rate_per_s: float = RATE_PER_S) -> None:
        self._rate_per_s = rate_per_s
        self._workspace = workspace
        self._engine = LocalEngine()
        self._felt: deque[LoggedOperation] = deque()
        self._stopping = threading.Event()
        self._failed: Exception | None = None
        self._pid = 0
        self._thread = threading.Thread(target=self._work, name="strakes-neighbour", daemon=True)

    def __enter__(self) -> Self:
        self._pid = self._engine.start().pid
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self._pid, _NICE)
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        if self.is_stopped:
            os.kill(self._pid, signal.SIGCONT)
        self._engine.cancel()
        if isinstance(error, ServersDeadError):
            self._engine.cancel()
            return
        self._thread.join(_JOIN_S)
        self._engine.close()

    @property
    def is_stopped(self) -> bool:
        """Return whether a signal, such as SIGSTOP, has stopped the engine."""
        with suppress(OSError):
            fields = Path(f"/proc/{self._pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
            return fields[0] == "T" and int(fields[1]) == os.getpid()
        return False

    def take(self) -> list[LoggedOperation]:
        """Return the operations that finished since the last call. Raises MeasurementError if the probe fails."""
        if self._failed is not None:
            raise self._failed
        return [self._felt.popleft() for _ in range(len(self._felt))]

    def _work(self) -> None:
        for number in count(1):
            if self._stopping.is_set():
                return
            try:
                result = self._engine.run(
                    probe_plan(_PLAN_S, self._rate_per_s),
                    self._workspace,
                    f"n{number}",
                    _LIMIT_S,
                    on_log=self._felt.extend,
                    progress_s=max(_REPORT_S, _OPERATIONS_PER_REPORT / self._rate_per_s),
                )
            except Exception as error:  # noqa: BLE001 - take() raises it in the thread that can report it
                self._failed = error
                return
            if result.ended != "ok" and not self._stopping.is_set():
                why = f"the plan of the probe ended with status {result.ended!r}"
                self._failed = MeasurementError(
                    "the probe that protects other users cannot continue",
                    where=str(self._workspace),
                    why=f"{result.errors[0].what}: {result.errors[0].why}" if result.errors else why,
                    remedy="Check that the file system answers.",
                )
                return


def parse_neighbour(text: str) -> float:
    """Parse the value of --neighbour: the limit of the 99th percentile of latencies, in seconds. Raises BadInputError.

    >>> parse_neighbour("p99=20ms")
    0.02
    """
    what = f"not a valid limit for --neighbour: {text!r}"
    remedy = "Write, for example, p99=20ms: 99 of 100 operations of others then take no longer than that."
    match = re.fullmatch(r"\s*p99\s*=(.*[a-z]\s*)", text, re.IGNORECASE)
    if match is None:
        raise BadInputError(what, remedy=remedy)
    seconds = parse_seconds(match[1])
    if not _LEAST_LIMIT_S <= seconds <= _MOST_LIMIT_S:
        raise BadInputError(what, remedy="Give at least 1 ms and at most 1 minute.")
    return seconds


def _is_slow(operation: LoggedOperation, limit_s: float) -> bool:
    return not operation.acknowledged or operation.ended_s - operation.due_s > limit_s


def latencies(operations: Sequence[LoggedOperation], limit_s: float) -> dict[str, Any]:
    """Return median, p99 and maximum latency in seconds: of each kind of operation, and the largest of all kinds.

    ``operations``: number of operations. ``slow``: number of operations that failed or exceeded the limit.
    """
    kinds = {}
    for kind in sorted({operation.phase for operation in operations}):
        own = [operation for operation in operations if operation.phase == kind]
        took = sorted(operation.ended_s - operation.due_s for operation in own)
        kinds[kind] = {
            "operations": len(own),
            "slow": sum(_is_slow(operation, limit_s) for operation in own),
            # By the nearest-rank method, p99 of fewer than 100 values is the maximum.
            "median_s": took[(len(took) - 1) // 2],
            "p99_s": took[math.ceil(0.99 * len(took)) - 1],
            "longest_s": took[-1],
        }
    worst: dict[str, float] = {}
    for key in ("operations", "slow", "median_s", "p99_s", "longest_s") if kinds else ():
        every = [kind[key] for kind in kinds.values()]
        worst[key] = max(every) if key.endswith("_s") else sum(every)
    return {**worst, "kinds": kinds}


class Neighbour:
    """Controller that keeps the 99th percentile of other users' latencies below ``limit_s`` seconds.

    Call ``begin`` once, then ``before_visit`` and ``after_visit`` around each trial. ``yielded``: whether the last
    trial was cancelled to protect other users.
    """

    def __init__(self, limit_s: float, probe: Probe) -> None:
        self.limit_s = limit_s
        self.yielded = False
        self._probe = probe
        self._control = Control()
        self._all: list[LoggedOperation] = []
        self._alone = 0
        self._of_visit = 0
        self._heard_s = time.time()
        self._counts_from_s = self._heard_s + _WARM_UP_S
        self._apart_s = self._heard_s - time.monotonic()

    @property
    def share(self) -> float:
        return self._control.share

    def begin(self) -> None:
        """Measure latencies without load by strakes. Raises EnvironmentLacksError if they already exceed the limit."""
        until = time.monotonic() + _WARM_UP_S + _ALONE_S
        while time.monotonic() < until:
            time.sleep(_LOOK_S)
            self._listen()
        self._alone = len(self._all)
        if self._control.step:
            raise EnvironmentLacksError(
                "operations of other users already take longer than --neighbour allows",
                why=self._why(self._all),
                remedy="Measure at a quieter time, or give a higher limit.",
            )

    def before_visit(self) -> float:
        """Return the share of the full load (0 to 1) that the next trial may cause.

        Raises StoppedForOthersError if latencies exceed the limit even at the lowest load.
        """
        if self.yielded:
            self._rest()
        self._listen()
        if self._control.stopped:
            raise StoppedForOthersError(
                "stopped to protect other users",
                why=f"at the lowest possible load, {self._why(self._all[-WINDOW * len(KINDS) :])}",
                remedy="Resume at a quieter time with the same command and --resume. To see the results: "
                "strakes report latest",
            )
        if math.isinf(self._counts_from_s):
            self._counts_from_s = time.time()
        self.yielded = False
        self._of_visit = len(self._all)
        return self.share

    def while_it_runs(self, engine: Engine, *, may_yield: bool) -> Callable[[Progress], None]:
        """Return the progress callback of a trial. With ``may_yield``, it cancels the trial if latencies are long."""

        def look(_progress: Progress) -> None:
            if self._listen() and may_yield:
                self.yielded = True
                engine.cancel()

        return look

    def after_visit(self) -> dict[str, float]:
        """Return the latencies of other users during the trial."""
        self._listen()
        found = latencies(self._all[self._of_visit :], self.limit_s)
        return {key: value for key, value in found.items() if key != "kinds"}

    def summary(self) -> NeighbourFelt:
        """Return the latencies of other users before and during the measurement."""
        alone, since = (latencies(some, self.limit_s) for some in (self._all[: self._alone], self._all[self._alone :]))
        return NeighbourFelt(self.limit_s, alone, since, self.share, self._control.stopped)

    def _listen(self) -> bool:
        now_s = time.time()
        step_s = now_s - time.monotonic() - self._apart_s  # The clock may be set. The engine's times follow it.
        self._apart_s += step_s
        self._heard_s += step_s
        self._counts_from_s += step_s
        new = self._probe.take()
        self._all += new
        felt = [
            (operation.phase, _is_slow(operation, self.limit_s))
            for operation in new
            if operation.due_s >= self._counts_from_s
        ]
        if new:
            self._heard_s = now_s
        elif now_s - max(self._heard_s, self._counts_from_s) > self.limit_s + _SILENT_S:
            felt = [("silence", True)] * TOO_MANY
        before = self._control
        for event in felt:
            self._control = self._control.after(event)
            if self._control.step != before.step or self._control.stopped != before.stopped:
                self._counts_from_s = math.inf
                return self._control.step > before.step or self._control.stopped
        return False

    def _rest(self) -> None:
        began = quiet_since = time.monotonic()
        while time.monotonic() - began < _REST_S and time.monotonic() - quiet_since < _QUIET_S:
            time.sleep(_LOOK_S)
            new = self._probe.take()
            self._all += new
            if any(_is_slow(operation, self.limit_s) for operation in new):
                quiet_since = time.monotonic()
        self._heard_s = time.time()

    def _why(self, operations: list[LoggedOperation]) -> str:
        kinds = latencies(operations, self.limit_s)["kinds"]
        said = ", ".join(f"{kind} {format_seconds(felt['p99_s'])}" for kind, felt in kinds.items())
        said = said or "no finished operation"
        return f"p99 of the probe: {said}; the limit is {format_seconds(self.limit_s)}"


@contextmanager
def neighbour_in(limit_s: float, workspace: Workspace, writer: RunWriter) -> Iterator[Neighbour]:
    """Yield a controller of the load. ``workspace``: directory for the files of its probe."""
    with Probe(workspace.path) as probe:
        neighbour = Neighbour(limit_s, probe)
        try:
            neighbour.begin()
            yield neighbour
        finally:
            writer.append_event(neighbour.summary())
