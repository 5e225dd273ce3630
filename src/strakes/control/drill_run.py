"""Run a drill: cause and undo a fault while clients write on a fixed schedule, and check all acknowledged files."""

from __future__ import annotations

import secrets
import shlex
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Self

from strakes.base.errors import MeasurementError, StrakesError
from strakes.base.interrupts import last_words
from strakes.base.units import counted, format_seconds
from strakes.control.drill_guard import UNDO_LIMIT_S, Promise
from strakes.control.drill_outcome import READ_S, DrillOutcome, FileKey, expected_sums, outcome_of, pending, read_back
from strakes.control.fault import Fault, OneCommand, Seen, looks
from strakes.failover.timeline import Moment
from strakes.model.phases import ProbePhase
from strakes.model.plan import Plan
from strakes.model.recovery_clients import WATCH, Timing, kind_of_clients, watch_phase
from strakes.model.sample import Sample
from strakes.runs.engine import Engine, LocalEngine
from strakes.runs.messages import PlanResult, Progress
from strakes.targets.ceph_tool import inside
from strakes.targets.command import Servers
from strakes.targets.description import Interruption, TargetRecovery
from strakes.targets.registry import detect
from strakes.targets.workspace import Workspace, sweep

_PATIENCE_S = 600.0
_FILE_BYTES = 4096
_WATCHER_S, _LOOK_EVERY_S = 30.0, 0.5
# Maximum seconds to wait after an interrupt until the fault is undone: if clients work, and if clients hang. Both are
# short, because strakes.cli.apart kills this process 24 s after the interrupt and the engine needs most of this time.
_INTERRUPTED_S, _INTERRUPTED_HANG_S = 10.0, 0.5
_SILENT_S, _REMIND_S = 10.0, 30.0
# Limit for all changes that servers report: 10,000 targets need a third. Each change takes 100 bytes and its text.
_MOST_MOMENTS_BYTES, _MOMENT_BYTES = 16 << 20, 100
_WHOLE_SECONDS_S = 1.0  # Lustre records times of connections in whole seconds.

Say = Callable[[str], None]


@dataclass(frozen=True)
class Drill:
    """Parameters of a drill. ``sessions``: each client is a session of libcephfs instead of a thread on the mount."""

    directory: Path
    clients: int
    rate_per_s: float
    timing: Timing
    sessions: bool
    servers: Servers | None = None

    @property
    def text(self) -> str:
        """Return a description of the clients' work."""
        rate = f"{self.rate_per_s:g} files a second from each for {self.timing.seconds:g} s"
        return f"{kind_of_clients(self.plan)}: {rate}, in {self.directory}"

    @property
    def plan(self) -> Plan:
        """Return the plan that the engine runs."""
        phase = watch_phase(self.rate_per_s, self.timing, sessions=self.sessions, file_bytes=_FILE_BYTES)
        return Plan(self.clients, (phase,), seed=1)


def play(
    drill: Drill, fault: Fault, root: Path, say: Say, show: Callable[[DrillOutcome], None] = lambda _outcome: None
) -> DrillOutcome:
    """Run a drill and return its outcome. ``root``: directory of the store.

    Calls ``show`` even if clients hang or the user interrupts the drill. Raises MeasurementError without an outcome.
    """
    run_id = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-drill-{secrets.token_hex(2)}"
    with Workspace.create(drill.directory, run_id) as workspace, LocalEngine() as engine:
        plan, place, timing = drill.plan, workspace.path, drill.timing
        limit_s = timing.seconds + timing.undone_within_s + max(_PATIENCE_S, fault.back_within_s)
        try:
            given = (limit_s, timing, fault, root, say, drill.servers, show)
            result, outcome = perform(engine, plan, place, "drill", *given)
            if result.ended != "ok":
                raise _nothing(result, "the clients ended before the end of the drill")
            return outcome
        except (ClientsHang, DrillInterrupted) as error:
            if error.hang:
                workspace.leave_alone()
            raise


class ClientsHang(MeasurementError):
    """At the end of a drill, clients still hang."""

    hang = True


class DrillInterrupted(KeyboardInterrupt):
    """The user interrupted a drill. ``not_undone``: why the fault is not undone. ``hang``: whether clients hang."""

    def __init__(self, not_undone: str, *, hang: bool) -> None:
        super().__init__()
        self.hang = hang
        if not_undone:
            self.add_note(not_undone)


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
    servers: Servers | None = None,
    show: Callable[[DrillOutcome], None] = lambda _outcome: None,
) -> tuple[PlanResult, DrillOutcome]:
    """Run a drill, and return the engine's result and the outcome. Leave the files in ``workspace/name``.

    Raises ClientsHang or DrillInterrupted. If the fault was caused, it calls ``show`` with the outcome before that.
    """
    engine.start()
    phase = next(phase for phase in plan.phases if isinstance(phase, ProbePhase))
    connections = ConnectionWatch(workspace, servers)
    with _Stroke(fault, timing, root, say, connections, engine) as stroke:
        hang = True
        try:
            result = engine.run(plan, workspace, name, limit_s, stroke.progress, keep=True)
            hang = result.ended in ("limit", "cancelled")
        except KeyboardInterrupt:
            stroke.interrupted, result = True, engine.so_far()
            hang = result.ended == "limit" or bool(result.errors)
        finally:
            until_s = min(engine.cancelled_unix_s, time.time())
            stroke.end(_INTERRUPTED_HANG_S if hang else _INTERRUPTED_S)
        hang |= stroke.gave_up
        if stroke.failure is not None and not hang:
            raise stroke.failure
        worked = bool(stroke.struck and result.log)
        if not (worked or hang or stroke.interrupted):
            raise _nothing(result)
        lacking = stroke.not_undone or ("the file system does not answer" if hang else "")
        if worked and not lacking and not stroke.interrupted:
            try:
                lacking = stroke.wait_until_back()
            except KeyboardInterrupt:
                stroke.interrupted, lacking = True, "the servers had not recovered when the drill was interrupted"
    outcome = None
    if worked:
        files, unread, why = (None, set[int](), "") if hang else _files(stroke, workspace / name)
        expected: dict[FileKey, str] = {}
        if files is not None:
            place = inside(workspace).directory if plan.inside_ceph() else workspace
            expected = expected_sums(plan, phase, place, name)
        over, began_s, clients = not hang and not stroke.interrupted, stroke.struck[0].at_s, kind_of_clients(plan)
        recoveries = (*fault.recoveries(), *connections.recoveries()) if over else ()
        waiting = {} if over else pending(plan, phase, result.log, until_s)
        lacking, moments = "; ".join(filter(None, (lacking, why))), stroke.moments
        found = (expected, files, began_s, moments, recoveries, lacking, waiting, until_s, unread)
        outcome = replace(outcome_of(clients, result.log, *found), interruptions=connections.interruptions())
        show(outcome)
    if stroke.interrupted:
        silent = outcome is not None and not outcome.read and bool(stroke.not_undone)
        raise DrillInterrupted(stroke.not_undone, hang=hang or silent)
    if hang:
        raise _left_behind(plan, phase, result, workspace, stroke)
    assert outcome is not None
    return result, outcome


class ConnectionWatch:
    """Monitor of the connections from this machine to the file system's targets."""

    def __init__(self, directory: Path, servers: Servers | None = None) -> None:
        self._target = detect(directory, servers)
        self._began_unix_s = time.time()
        self._known = set(self._target.connection_changes())
        self._before = set(self._target.recoveries())
        self._status = {recovery.target: recovery.status for recovery in self._before}

    def watch(self, seen: Seen, stop: threading.Event) -> None:
        """Report changes of connections and recoveries to ``seen`` until ``stop`` is set."""
        looked_s = time.time()
        for _ in looks(stop, _LOOK_EVERY_S):  # Look often: Lustre keeps only the last 16 changes of a connection.
            changes, now_s = self._target.connection_changes(), time.time()
            for change in changes:
                if change not in self._known:
                    self._known.add(change)
                    at_s = min(max(change.unix_s, looked_s), change.unix_s + _WHOLE_SECONDS_S)
                    seen(Moment(at_s, f"connection to {change.target}", change.state))
            looked_s = now_s
            for recovery in self._target.recoveries():
                if self._status.get(recovery.target) != recovery.status:
                    self._status[recovery.target] = recovery.status
                    seen(Moment(time.time(), recovery.target, recovery.status))

    def silent(self) -> str:
        """Return a text about the targets that do not answer this client, or ""."""
        return " ".join(server.sentence(name) for name, server in (self._target.lost_servers() or {}).items())

    def interruptions(self) -> tuple[Interruption, ...]:
        """Return the periods, since the start of the drill, when this machine could not reach a target."""
        since_s, now_s = self._began_unix_s - _WHOLE_SECONDS_S, time.time()
        return tuple(each for each in self._target.interruptions() if (each.ended_unix_s or now_s) > since_s)

    def recoveries(self) -> tuple[TargetRecovery, ...]:
        """Return the recoveries of targets since the start of the drill."""
        return tuple(recovery for recovery in self._target.recoveries() if recovery not in self._before)


class _Stroke:
    def __init__(
        self, fault: Fault, timing: Timing, root: Path, say: Say, connections: ConnectionWatch, engine: Engine
    ) -> None:
        self.moments: list[Moment] = []
        self.struck: tuple[Moment, ...] = ()
        self.failure: StrakesError | None = None
        self.undone, self.not_undone, self.gave_up, self.interrupted = "", "", False, False
        self._fault, self._timing, self._root, self._tell = fault, timing, root, say
        self._connections, self._engine, self._reminder = connections, engine, _Reminder(self._say, self.missing)
        self._whom, self._operations, self._moved_s = "clients", 0, 0.0
        self._promise: Promise | None = None
        self._ahead_s = self._struck_s = 0.0
        self._begun, self._stop, self._seen_enough, self._caused = (threading.Event() for _ in range(4))
        # Use this event, not Thread.join(): in Python 3.11, an interrupt of join() marks a running thread as ended.
        self._ended = threading.Event()
        self._workers = [threading.Thread(target=work, daemon=True) for work in (self._act, self._remind)]
        seen = (self.moments.append, self._seen_enough)
        watches = (fault.watch, connections.watch)
        self._watchers = [threading.Thread(target=_watch, args=(watch, *seen), daemon=True) for watch in watches]

    def __enter__(self) -> Self:
        last_words.append(self.left)
        for thread in (*self._watchers, *self._workers):
            thread.start()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, StrakesError):
            error.why = "; ".join(filter(None, (error.why, self.not_undone)))
        elif error is not None and (left := self.left()):
            error.add_note(left)
        last_words.remove(self.left)
        self._seen_enough.set()
        for watcher in self._watchers:
            watcher.join(_INTERRUPTED_HANG_S if self.interrupted else _WATCHER_S)

    def _say(self, text: str) -> None:
        with suppress(OSError):  # A full or closed output must not stop the undoing of a fault.
            self._tell(text)

    def left(self) -> str:
        return self.not_undone if self._promise is None or self._ended.is_set() else self._promise.leave()

    def missing(self) -> str:
        return _lacking(self._connections.silent) or _lacking(self._fault.lacking)

    def progress(self, now: Progress) -> None:
        if now.operations != self._operations:
            self._operations, self._moved_s = now.operations, time.monotonic()
        if now.name == WATCH and now.operations and not self._begun.is_set():
            self._ahead_s = now.elapsed_s
            self._begun.set()

    def end(self, within_s: float) -> None:
        self._stop.set()
        self._begun.set()
        try:
            self._caused.wait()
            self._ended.wait(within_s if self.interrupted else None)
        except KeyboardInterrupt:
            self.interrupted = True
            # Wait for the command that causes the fault. If the command ran after the undoing, the fault would remain.
            self._caused.wait()
            self._ended.wait(_INTERRUPTED_HANG_S)
        if self._promise is not None and not self._ended.is_set():
            self.not_undone = self._promise.leave()
        elif self._promise is not None:
            self._promise.close(self._say)

    def wait_until_back(self) -> str:
        reminder, deadline = _Reminder(self._say, self.missing), time.monotonic() + self._fault.back_within_s
        while lacking := _lacking(self._fault.lacking):
            if time.monotonic() > deadline:
                return lacking
            reminder.tell("the servers")
            time.sleep(_LOOK_EVERY_S)
        self.moments.append(Moment(time.time(), "drill", "the servers have recovered"))
        return ""

    def _act(self) -> None:
        try:
            try:
                self._strike()
            finally:
                self._caused.set()
            if self._promise is not None:
                self._undo_in_time(self._promise)
        finally:
            self._ended.set()

    def _remind(self) -> None:
        while not self._ended.wait(_LOOK_EVERY_S):
            if self._operations and time.monotonic() - self._moved_s > _SILENT_S:
                self._reminder.tell(self._whom)

    def _undo_in_time(self, promise: Promise) -> None:
        if self.struck:
            self._stop.wait(self._timing.undone_within_s)
        self._undo(promise)
        patience_s = _SILENT_S if self.not_undone else self._fault.back_within_s
        if not self._stop.wait(max(0.0, self._struck_s + self._timing.after_s - time.monotonic()) + patience_s):
            self.gave_up = True
            self._engine.cancel()

    def _strike(self) -> None:
        self._begun.wait()
        if self._stop.wait(max(0.0, self._timing.before_s - self._ahead_s)):
            return
        promise, ready = None, False
        try:
            if self._fault.undo is not None:
                promise = Promise(self._root, self._fault.text, self._fault.undo, self._timing.undone_within_s)
            if found := _lacking(self._fault.changed):
                raise MeasurementError("the fault is not caused: the servers are not ready for it", why=found)
            ready = not self._stop.is_set()
        except StrakesError as error:
            self.failure = error
        if not ready:
            if promise is not None:
                promise.close(self._say)
            return
        self._say(self._fault.text)
        self._promise = promise
        self._struck_s, self._whom = time.monotonic(), "the command that causes the fault"
        try:
            if promise is not None and isinstance(self._fault, OneCommand):
                self._fault.gate = promise.gate()
            elif promise is not None:
                promise.begin()
            self.struck = self._fault.strike()
        except Exception as error:  # noqa: BLE001 - after any error the fault may be partly caused, and is undone
            why = (error.why or error.what) if isinstance(error, StrakesError) else f"{error}"
            self.failure = MeasurementError("the fault could not be caused", where=self._fault.text, why=why)
        finally:
            self._whom = "clients"
            if promise is not None:
                promise.caused()
        self.moments.extend(self.struck)

    def _undo(self, promise: Promise) -> None:
        began, self._whom = time.time(), f"the undoing of the fault, for at most {format_seconds(UNDO_LIMIT_S)}"
        try:
            done = promise.keep(self._say)
        except StrakesError as error:
            why = "; ".join(filter(None, (error.where, error.why or error.what)))
            self.not_undone = f"the fault could not be undone: {why}. {promise.left}"
            self._say(self.not_undone)
            return
        finally:
            self._whom = "clients"
        self.undone = done or "another process has undone the fault already"
        self._say(f"undone: {self.undone}")
        self.moments.append(Moment(began, "drill", self.undone))


def _files(stroke: _Stroke, directory: Path) -> tuple[dict[FileKey, str] | None, set[int], str]:
    try:
        return read_back(str(directory), _FILE_BYTES, _INTERRUPTED_S if stroke.interrupted else READ_S)
    except StrakesError as error:
        return None, set(), f"{error.what}: {error.why}"
    except KeyboardInterrupt:
        stroke.interrupted = True
        return None, set(), ""


class _Reminder:
    def __init__(self, say: Say, missing: Callable[[], str]) -> None:
        self._say, self._missing = say, missing
        self._next_s = time.monotonic() + _SILENT_S

    def tell(self, whom: str) -> None:
        if time.monotonic() >= self._next_s:
            missing = self._missing()
            self._say(f"still waiting for {whom}" + (f": {missing}" if missing else ""))
            self._next_s = time.monotonic() + _REMIND_S


def _lacking(look: Callable[[], str | None]) -> str:
    try:
        return look() or ""
    except StrakesError as error:
        return error.why or error.what
    except Exception as error:  # noqa: BLE001 - an answer of an unknown form must not end the drill
        return f"an answer of the servers has an unknown form ({type(error).__name__}: {error})"


def _watch(watch: Callable[[Seen, threading.Event], None], seen: Seen, stop: threading.Event) -> None:
    left_bytes = _MOST_MOMENTS_BYTES

    def bounded(moment: Moment) -> None:
        nonlocal left_bytes
        left_bytes -= _MOMENT_BYTES + len(moment.source) + len(moment.text)
        if left_bytes < 0:
            raise MeasurementError("the states of the servers change too often")
        seen(moment)

    if trouble := _lacking(partial(watch, bounded, stop)):
        seen(Moment(time.time(), "drill", f"the servers cannot be watched any longer: {trouble}"))


def _left_behind(plan: Plan, phase: ProbePhase, result: PlanResult, workspace: Path, stroke: _Stroke) -> ClientsHang:
    done = Counter(operation.rank for operation in result.log)
    left = sum(done[rank] < phase.operations(1) for rank in range(plan.ranks))
    undone = f"the fault was undone ({stroke.undone})" if stroke.undone else "the fault is over"
    if stroke.failure is not None:
        undone = f"{stroke.failure.what}: {stroke.failure.why or stroke.failure.where}"
    what = f"{left} of {plan.ranks} clients still hang"
    why = f"{stroke.not_undone or undone}, but the file system does not answer these clients"
    remedy = f"Check the servers. When they answer again, run: strakes clean {shlex.quote(str(workspace.parent))}"
    return ClientsHang(what, where=str(workspace), why=why, remedy=remedy)


def _nothing(result: PlanResult, what: str = "the drill did not take place") -> MeasurementError:
    if not result.errors:
        why, remedy = f"the clients ended too early ({result.ended})", "Allow more time before the fault: --before 10s"
        return MeasurementError(what, why=why, remedy=remedy)
    first = result.errors[0].to_exception()
    return MeasurementError(what, where=first.where, why=f"{first.what}: {first.why}", remedy=first.remedy)


def drill_visit(
    make_fault: Callable[[Path], Fault], timing: Timing, root: Path, servers: Servers | None = None
) -> Callable[[Engine, Plan, Path, str, float], PlanResult]:
    """Return a function that runs a drill for one combination of settings in a study.

    The function raises MeasurementError if a client or a server did not recover. ``root``: directory of the store.
    """

    def visit(engine: Engine, plan: Plan, workspace: Path, name: str, limit_s: float) -> PlanResult:
        fault = make_fault(workspace)
        fault.level()
        result, outcome = perform(
            engine, plan, workspace, name, limit_s, timing, fault, root, lambda _text: None, servers
        )
        left = sweep(workspace, name)
        if outcome.lacking:
            what = "the servers differ from their state before the drill"
            raise MeasurementError(what, where=str(workspace.parent), why=outcome.lacking)
        samples = tuple(_with_figures(sample, outcome) if sample.name == WATCH else sample for sample in result.samples)
        return replace(result, samples=samples, cleaned=not left, left=left)

    return visit


def _with_figures(sample: Sample, outcome: DrillOutcome) -> Sample:
    outages = outcome.line.outages
    if gone := outcome.line.gone:
        why = ", ".join(f"{count} {errno}" for errno, count in outcome.errors.items()) or "the drill ended too soon"
        what, where = "some clients received no answers", f"{len(gone)} of {counted(len(outages), 'client')}"
        remedy = "Check the servers' logs; strakes failover drill shows the time line."
        raise MeasurementError(what, where=where, why=why, remedy=remedy)
    first_s, median_s, last_s = outcome.line.back_after_s or (0.0, 0.0, 0.0)
    drill = {
        "unanswered": outcome.unanswered,
        "outages": [[outage.client, outage.stall_s, outage.back_after_s, outage.hit] for outage in outages],
        "recoveries": [asdict(target) for target in outcome.line.targets],
    }
    counts = {name: getattr(outcome, name) for name in ("acknowledged", "lost", "failed", "repeated")}
    judged = replace(sample, **counts)
    return replace(judged, recovery_first_s=first_s, recovery_median_s=median_s, recovery_last_s=last_s, drill=drill)
