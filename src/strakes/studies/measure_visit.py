"""Start runs and execute trials, with server counters read before and after each trial."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from strakes.base.errors import BadInputError, EnvironmentLacksError, MeasurementError, StrakesError
from strakes.base.interrupts import interrupts_deferred
from strakes.base.machine import load_average
from strakes.base.units import KIB
from strakes.model.cell import Cell
from strakes.model.plan import Plan
from strakes.runs.engine import NOT_ENDED, Engine
from strakes.runs.messages import EngineError, Hello, PlanResult, Progress
from strakes.runs.records import CountersUnread, NodesChanged, Visit
from strakes.runs.store import Store
from strakes.runs.writer import RunWriter
from strakes.studies.measure_directories import LayoutDirectories, prepare
from strakes.studies.measure_watch import TargetWatch
from strakes.targets.target import Target, capture
from strakes.targets.workspace import Workspace, sweep

INTERRUPTED = "interrupted"
# Maximum number of attempts if fail-overs interrupt a trial. Twice the number doubles the time until the run gives up.
MOST_INTERRUPTED = 3
_CONTRADICTION = "the request breaks the contract"
_NODE_LACKS = "this node cannot do what the plan asks for; others may"
_OVER_LIMIT = "the plan took longer than its limit"
# Load average per processor above which overload may explain a slow trial. A process then gets 33 % of a processor.
_OVERLOAD = 3.0
_HANGS = "Check the servers of the file system. When they answer again, continue the run with --resume."


RunPlan = Callable[[Engine, Plan, Path, str, float], PlanResult]


@dataclass(frozen=True)
class Site:
    """Everything that trials share: engine, file system, working directories and server counters."""

    engine: Engine
    target: Target
    workspace: Workspace
    places: LayoutDirectories
    watch: TargetWatch


def begin_run(
    store: Store,
    kind: str,
    name: str,
    directory: Path,
    options: Mapping[str, object],
    target: Target,
    hello: Hello,
    resume: bool,
) -> RunWriter:
    """Return the writer of a new run or, with ``resume``, of the newest run with the same fingerprint."""
    if not resume:
        return store.create(kind, name, directory, options, {**capture(target.mount), "engine": asdict(hello)})
    writer = store.resume(str(options["fingerprint"]))
    if dict(hello.nodes) != writer.run.environment["engine"].get("nodes", {}):
        writer.append_event(NodesChanged(tuple(hello.nodes)))
    return writer


def open_site(
    stack: ExitStack, engine: Engine, target: Target, run_id: str, *, keep: bool, adopt: bool = False
) -> Site:
    """Create a working directory on the file system. Closing ``stack`` removes it, unless ``keep`` is set."""
    with interrupts_deferred():
        workspace = stack.enter_context(
            Workspace.create(target.path, run_id, mount=target.mount, keep=keep, adopt=adopt)
        )
    return Site(engine, target, workspace, LayoutDirectories(workspace.path, target), TargetWatch(target))


def time_client() -> float:
    """Return the seconds that a fixed series of memory copies and system calls takes (a few ms).

    A longer time shows a slower machine, not a slower file system. Shared machines may be 25 % slower for a minute.

    >>> 0 < time_client() < 10
    True
    """
    source, target = bytearray(256 * KIB), bytearray(256 * KIB)
    started = time.perf_counter()
    for _ in range(50):
        target[:] = source
    for _ in range(3000):
        os.getppid()
    return time.perf_counter() - started


def _stays(workspace: Workspace, visit: Path, plan: Plan) -> bool:
    if not workspace.keep or any(phase.backend == "s3" for phase, _ in plan.each()):
        return False
    if workspace.kept is not None:
        sweep(workspace.kept.parent, workspace.kept.name)
    workspace.kept = visit
    return True


def make_visit(
    site: Site,
    cell: Cell,
    planned: Visit,
    limit_s: float,
    *,
    conditions: AbstractContextManager[object] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    run_plan: RunPlan | None = None,
) -> Visit:
    """Execute one trial, and return its record, even if the trial failed."""
    directory, place = site.places.of(cell.layout), cell.place
    assert directory is not None
    name = place.name_in(planned.block) or f"v{planned.visit}"
    started_unix_s, started = time.time(), time.monotonic()
    with conditions or nullcontext():
        given = {} if place.is_plain() else prepare(site.target, directory, name, place)
        first = planned.purpose == "measure" and planned.block == 1
        site.watch.begin(needed=first and site.target.servers is not None)
        if run_plan is not None:
            result = run_plan(site.engine, cell.plan, directory, name, limit_s)
        else:
            kept = not place.is_left_empty() or _stays(site.workspace, directory / name, cell.plan)
            prepared = not place.is_plain()
            result = site.engine.run(cell.plan, directory, name, limit_s, on_progress, keep=kept, prepared=prepared)
        if place.drawn and result.ended == "ok":
            prepare(site.target, directory, place.name_in(planned.block + 1), place)
    elapsed_s, ended_unix_s = time.monotonic() - started, time.time()
    servers, disturbed = site.watch.end() if result.ended == "ok" else ({}, ())
    answers = result.ended in ("ok", "cancelled") or result.cleaned or site.workspace.answers()
    if not answers:
        site.workspace.leave_alone()
    lost = site.watch.interruptions(started_unix_s, ended_unix_s) if run_plan is None else ()
    repeatable = place.is_left_empty() or (place.placement is not None and result.ended == "ok")
    again = bool(lost) and answers and result.ended != "cancelled" and repeatable
    return replace(
        planned,
        cell=cell.key,
        started_unix_s=started_unix_s,
        ended_unix_s=ended_unix_s,
        elapsed_s=elapsed_s,
        client_s=time_client(),
        ended=INTERRUPTED if again else result.ended,
        interruptions=lost,
        samples=result.samples,
        errors=result.errors if answers else tuple(replace(error, remedy=_HANGS) for error in result.errors),
        servers=servers,
        servers_disturbed=disturbed,
        given=given,
        kept=place.kept,
        impact=site.engine.impact,
    )


def note_unread(site: Site, writer: RunWriter, note: Callable[[str], None]) -> None:
    """Record servers whose counters can no longer be read, and report them by calling ``note``."""
    if sentences := site.watch.unread():
        writer.append_event(CountersUnread(sentences))
        note(" ".join(sentences))


def require_end(visit: Visit, site: Site) -> None:
    """Raise KeyboardInterrupt if the trial was cancelled, StrakesError if it was interrupted or failed."""
    if visit.ended == "cancelled":
        raise KeyboardInterrupt
    if visit.ended == INTERRUPTED:
        raise MeasurementError(
            f"the service was interrupted in all {MOST_INTERRUPTED} runs of a cell",
            where=f"{site.workspace.path} (cell {visit.cell})",
            why=" ".join([*map(str, visit.interruptions), *site.target.trouble()]),
            remedy="Find out why the servers fail over. When they are stable, continue the run with --resume.",
        )
    if not visit.ended_well:
        raise failure(visit.ended, visit.errors, f"{site.workspace.path} (cell {visit.cell})", site.target)


def failure(ended: str, errors: Sequence[EngineError], place: str, target: Target) -> StrakesError:
    """Return the exception for a failed trial, with the engine's error and the problems of servers.

    If this machine is overloaded and no calls hang in the kernel, the error names the overload as the cause.
    """
    trouble = " ".join(target.trouble())
    if any(error.why == NOT_ENDED for error in errors):
        why = f"{errors[0].what}; {NOT_ENDED}"
        what = "the file system does not answer, or is overloaded"
        return MeasurementError(what, where=place, why=f"{why}. {trouble}" if trouble else why, remedy=_HANGS)
    load, cpus = (load_average() or [0.0])[0], len(os.sched_getaffinity(0))
    if len(errors) == 1 and errors[0].what.startswith(_OVER_LIMIT) and not trouble and load > _OVERLOAD * cpus:
        return EnvironmentLacksError(
            "this machine is too busy to measure",
            where=place,
            why=f"{errors[0].what} while the load average was {load:.0f} on {cpus} processors",
            remedy="Repeat while fewer other programs run on this machine, or with fewer ranks: --ranks 2.",
        )
    if not errors:
        remedy = "Read the engine's output in the log of the run in the store."
        return MeasurementError(f"the run ended with the status {ended!r}", where=place, why=trouble, remedy=remedy)
    error = errors[0].to_exception()
    error.where = ", ".join(filter(None, (place, error.where)))
    if ended == "refused" and error.why == _CONTRADICTION:
        return BadInputError(error.what, where=error.where, why="the plan contradicts itself", remedy=error.remedy)
    if ended == "refused" and error.why == _NODE_LACKS:
        return EnvironmentLacksError(error.what, where=error.where, why=error.why, remedy=error.remedy)
    error.why = f"{error.why.rstrip('.')}. {trouble}" if trouble else error.why
    return error
