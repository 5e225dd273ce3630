"""A drill: probes on a fixed schedule, a fault among them, its undoing, and a check of every acknowledged file."""

from __future__ import annotations

import secrets
import shlex
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePath
from types import TracebackType
from typing import Self

from strakes.base.errors import MeasurementError, StrakesError
from strakes.control.drill_connections import AlertListener, ConnectionWatch
from strakes.control.drill_contents import Reader, expected_sums, read_back
from strakes.control.drill_guard import Promise
from strakes.control.drill_outcome import DrillOutcome, outcome_of
from strakes.control.fault import Fault, Seen
from strakes.failover.timeline import Moment
from strakes.model.phases import ProbePhase
from strakes.model.plan import Plan
from strakes.model.recovery_clients import WATCH, Timing, kind_of_clients, watch_phase, writers
from strakes.runs.engine import Engine, LocalEngine
from strakes.runs.messages import PlanResult, Progress
from strakes.targets.command import Servers
from strakes.targets.workspace import Workspace

_CELL = "drill"
# Time limit in seconds for stalled clients if the fault needs no undoing.
_PATIENCE_S = 600.0
_MOST_NAMED = 10
_FILE_BYTES = 4096
_WATCHER_S = 30.0
_LOOK_EVERY_S = 0.5

Say = Callable[[str], None]
Watch = Callable[[Seen, threading.Event], None]


@dataclass(frozen=True)
class Drill:
    """The parameters of a drill.

    ``sessions``: see ``watch_phase``. ``servers``: access to the servers' counters. ``reader``: the client that reads
    the files back, None for this machine's mount.
    """

    directory: Path
    clients: int
    rate_per_s: float
    timing: Timing
    sessions: bool
    servers: Servers | None = None
    reader: Reader | None = None

    @property
    def text(self) -> str:
        """Return what the clients do, in words."""
        rate = f"{self.rate_per_s:g} files a second from each for {self.timing.seconds:g} s"
        return f"{kind_of_clients(self.plan)}: {rate}, in {self.directory}"

    @property
    def plan(self) -> Plan:
        """Return the plan that the engine runs."""
        return Plan(self.clients, (self._phase,), seed=1)

    @property
    def _phase(self) -> ProbePhase:
        return watch_phase(self.rate_per_s, self.timing, sessions=self.sessions, file_bytes=_FILE_BYTES)


def play(drill: Drill, fault: Fault, root: Path, say: Say, alerts: AlertListener | None = None) -> DrillOutcome:
    """Run a drill and return its outcome.

    ``root`` is the store, which has the journal of faults. Raises MeasurementError if the fault cannot be caused or
    undone, or the clients do not start.
    """
    run_id = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-drill-{secrets.token_hex(2)}"
    with Workspace.create(drill.directory, run_id) as workspace, LocalEngine() as engine:
        reader = None if drill.reader is None else drill.reader.at(workspace.path.name)
        if reader is not None:
            reader.require()
        limit_s = drill.timing.seconds + drill.timing.undone_within_s + max(_PATIENCE_S, fault.back_within_s)
        try:
            _, outcome = perform(
                engine,
                drill.plan,
                workspace.path,
                _CELL,
                limit_s,
                drill.timing,
                fault,
                root,
                say,
                alerts,
                servers=drill.servers,
                reader=reader,
            )
        except ClientsHang:
            workspace.leave_alone()
            raise
        return outcome


class ClientsHang(MeasurementError):
    """The clients do not end even after the undoing; ``outcome`` has their results up to then."""

    outcome: DrillOutcome | None = None


def perform(
    engine: Engine,
    plan: Plan,
    workspace: Path,
    name: str,
    limit_s: float,
    timing: Timing,
    fault: Fault,
    root: Path,
    say: Say,
    alerts: AlertListener | None = None,
    servers: Servers | None = None,
    reader: Reader | None = None,
) -> tuple[PlanResult, DrillOutcome]:
    """Run one plan with a phase of working clients; its files stay in ``workspace/name``.

    Raises ClientsHang if the clients do not end within the fault's time limit for recovery.
    """
    engine.start()
    connections = ConnectionWatch(workspace, servers)
    watches = (fault.watch, connections.watch, *((alerts.watch,) if alerts else ()))
    with _Stroke(fault, timing, root, say, watches, engine.cancel) as stroke:
        try:
            result = engine.run(plan, workspace, name, limit_s, stroke.progress, keep=True)
        finally:
            # If this raises (for example at a second Ctrl-C), the guard undoes the fault.
            stroke.end()
        hang = stroke.gave_up or result.ended in ("limit", "cancelled")
        if stroke.failure is not None and not hang:
            stroke.failure.why = "; ".join(filter(None, (stroke.failure.why, stroke.not_undone)))
            raise stroke.failure
        if not stroke.struck or not result.log:
            raise _left_behind(plan, result, workspace, stroke) if hang else _nothing(result)
        if hang:
            lacking = stroke.not_undone or "the file system does not answer"
        else:
            lacking = stroke.not_undone or _wait_until_back(fault, stroke.moments)
    outcome = outcome_of(
        kind_of_clients(plan),
        result.log,
        {} if hang else expected_sums(plan, _watch_of(plan), _seen_by_engine(plan, workspace), name),
        None if hang else read_back(workspace / name, reader and reader.at(name), wrote=writers(plan)),
        stroke.struck[0].at_s,
        stroke.moments,
        () if hang else (*fault.recoveries(), *connections.recoveries()),
        lacking,
    )
    outcome = replace(outcome, interruptions=connections.interruptions())
    if hang:
        raise _left_behind(plan, result, workspace, stroke, outcome)
    return result, outcome


class _Stroke:
    """A thread that causes the fault while the clients work, watches the servers, and undoes the fault."""

    def __init__(
        self,
        fault: Fault,
        timing: Timing,
        root: Path,
        say: Say,
        watches: Sequence[Watch],
        end_clients: Callable[[], None],
    ) -> None:
        self.moments: list[Moment] = []
        self.struck: tuple[Moment, ...] = ()
        self.failure: StrakesError | None = None
        self._fault, self._timing, self._root, self._say = fault, timing, root, say
        self.undone, self.not_undone, self.gave_up = "", "", False
        self._end_clients = end_clients
        self._promise: Promise | None = None
        self._ahead_s = 0.0
        self._begun, self._stop, self._seen_enough = threading.Event(), threading.Event(), threading.Event()
        self._striker = threading.Thread(target=self._strike, daemon=True)
        self._watchers = [
            threading.Thread(target=watch, args=(self.moments.append, self._seen_enough), daemon=True)
            for watch in watches
        ]

    def __enter__(self) -> Self:
        for thread in (*self._watchers, self._striker):
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._seen_enough.set()
        for watcher in self._watchers:
            watcher.join(_WATCHER_S)

    def progress(self, now: Progress) -> None:
        """Notice the first word, which comes when the clients have been at work for a while."""
        if now.name == WATCH and now.operations and not self._begun.is_set():
            self._ahead_s = now.elapsed_s
            self._begun.set()

    def end(self) -> None:
        """Undo the fault: the clients have ended."""
        self._stop.set()
        self._begun.set()
        try:
            self._striker.join()
            self._undo()
        finally:
            if self._promise is not None:
                self._promise.close()

    def _strike(self) -> None:
        self._begun.wait()
        if self._stop.wait(max(0.0, self._timing.before_s - self._ahead_s)):
            return
        self._say(self._fault.text)
        try:
            if self._fault.undo is not None:
                self._promise = Promise(self._root, self._fault.text, self._fault.undo)
        except StrakesError as error:
            self.failure = error
            return
        try:
            self.struck = self._fault.strike()
        except StrakesError as error:
            self.failure = MeasurementError(
                "the fault could not be caused", where=error.where, why=error.why or error.what
            )
        except OSError as error:
            self.failure = MeasurementError(
                "the fault could not be caused", where=self._fault.text, why=error.strerror or str(error)
            )
        self.moments.extend(self.struck)
        # A fault that failed may have been caused in part.
        if self._promise is None or (self.struck and self._stop.wait(self._timing.undone_within_s)):
            return
        self._undo()
        # Clients may have been blocked until the undoing; any that are still blocked after the limit hang.
        if not self._stop.wait(self._clients_left_s() + self._fault.back_within_s):
            self.gave_up = True
            self._end_clients()

    def _clients_left_s(self) -> float:
        """Return how long the clients are still to work."""
        struck_s = self.struck[0].at_s if self.struck else time.time()
        return max(0.0, struck_s + self._timing.after_s - time.time())

    def _undo(self) -> None:
        if self._promise is None:
            return
        began = time.time()
        try:
            done = self._promise.keep(self._say)
        except StrakesError as error:
            why = "; ".join(filter(None, (error.where, error.why or error.what)))
            self.not_undone = f"the fault could not be undone: {why}. Try again: strakes failover undo"
            return
        if done:
            self.undone = done
            self._say(f"undone: {done}")
            self.moments.append(Moment(began, "drill", done))


def _wait_until_back(fault: Fault, moments: list[Moment]) -> str:
    """Wait for recovery; return the remaining differences, empty if there are none left."""
    deadline = time.monotonic() + fault.back_within_s
    while True:
        try:
            lacking = fault.lacking()
        except StrakesError as error:
            lacking = error.why or error.what
        if not lacking:
            moments.append(Moment(time.time(), "drill", "the servers are as before"))
            return ""
        if time.monotonic() > deadline:
            return lacking
        time.sleep(_LOOK_EVERY_S)


def _seen_by_engine(plan: Plan, workspace: Path) -> PurePath:
    """Return the workspace's path as passed to the engine, whose file contents depend on it."""
    from strakes.targets.ceph_access import inside

    return inside(workspace).directory if plan.inside_ceph() else workspace


def _watch_of(plan: Plan) -> ProbePhase:
    return next(phase for phase in plan.phases if isinstance(phase, ProbePhase))


def _left_behind(
    plan: Plan, result: PlanResult, workspace: Path, stroke: _Stroke, outcome: DrillOutcome | None = None
) -> ClientsHang:
    """Name the clients that have not done all that they were to do."""
    phase = _watch_of(plan)
    done = Counter(operation.rank for operation in result.log)
    left = [f"client {rank}" for rank in range(plan.ranks) if done[rank] < phase.operations(1)]
    more = f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
    undone = f"the fault was undone ({stroke.undone})" if stroke.undone else "nothing was undone"
    if stroke.failure is not None:
        undone = f"{stroke.failure.what}: {stroke.failure.why or stroke.failure.where}"
    error = ClientsHang(
        f"clients that hang are left behind: {len(left)} of {plan.ranks}",
        where=f"{', '.join(left[:_MOST_NAMED])}{more} in {workspace}",
        why=f"{stroke.not_undone or undone}, and the file system does not answer them",
        remedy=f"Check its servers. When they serve again: strakes clean {shlex.quote(str(workspace.parent))}",
    )
    error.outcome = outcome
    return error


def _nothing(result: PlanResult) -> MeasurementError:
    first = result.errors[0] if result.errors else None
    return MeasurementError(
        "the drill did not take place",
        where=", ".join(f"{key} {value}" for key, value in (first.where if first else {}).items()),
        why=f"{first.what}: {first.why}" if first else f"the clients' plan ended: {result.ended}",
        remedy=first.remedy if first else "Give it more time before the fault: --before 10s",
    )
