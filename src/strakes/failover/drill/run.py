"""The drill itself: probes on a fixed schedule, the fault in their midst, and every acknowledged file looked for afterwards."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from strakes.errors import MeasurementError, StrakesError
from strakes.failover.drill.faults import Fault
from strakes.failover.timeline import Moment, Operation, Timeline, outage_of, timeline
from strakes.launch.local import LocalEngine
from strakes.launch.messages import LoggedOperation, PlanResult, Progress
from strakes.plan import Plan, ProbePhase
from strakes.targets.workspace import Workspace

_CELL = "drill"
# A stalled file system is what the drill is there to see.
_PATIENCE_S = 600.0


@dataclass(frozen=True)
class Drill:
    """What is asked: ``clients`` that each create ``rate_per_s`` files, the fault after ``before_s``, and ``after_s`` more."""

    directory: Path
    clients: int
    rate_per_s: float
    before_s: float
    after_s: float

    @property
    def text(self) -> str:
        seconds = self.before_s + self.after_s
        return f"{self.clients} clients create {self.rate_per_s:g} files a second each for {seconds:g} s in {self.directory}"

    @property
    def plan(self) -> Plan:
        phase = ProbePhase("watch", "file-create", rate_per_s=self.rate_per_s, seconds=self.before_s + self.after_s, log=True)
        return Plan(ranks=self.clients, phases=(phase,), seed=1)


@dataclass(frozen=True)
class Outcome:
    """``lost``: acknowledged and not there afterwards; ``unanswered``: there although they ended with an error."""

    line: Timeline
    acknowledged: int
    failed: int
    lost: int
    unanswered: int


def play(drill: Drill, fault: Fault, say: Callable[[str], None]) -> Outcome:
    """Raises MeasurementError when the fault could not be done or the clients did not get to work."""
    moments: list[Moment] = []
    struck: list[Moment] = []
    failures: list[StrakesError] = []
    ahead_s = [0.0]
    begun, stop = threading.Event(), threading.Event()

    def strike() -> None:
        if not begun.wait(_PATIENCE_S) or stop.wait(max(0.0, drill.before_s - ahead_s[0])):
            return
        say(fault.text)
        try:
            struck.extend(fault.strike())
        except StrakesError as error:
            failures.append(error)

    def progress(now: Progress) -> None:
        # The first word comes when the clients have been at work for a while.
        if now.operations and not begun.is_set():
            ahead_s[0] = now.elapsed_s
            begun.set()

    threads = [threading.Thread(target=strike, daemon=True), threading.Thread(target=fault.watch, args=(moments.append, stop), daemon=True)]
    run_id = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-drill-{secrets.token_hex(2)}"
    with Workspace.create(drill.directory, run_id) as workspace, LocalEngine() as engine:
        engine.start()
        for thread in threads:
            thread.start()
        try:
            result = engine.run(drill.plan, workspace.path, _CELL, drill.before_s + drill.after_s + _PATIENCE_S, progress, keep=True)
        finally:
            stop.set()
            begun.set()
        for thread in threads:
            thread.join(30.0)
        present = _present(workspace.path / _CELL)
    if failures:
        raise failures[0]
    if not struck or not result.log:
        raise _nothing(result)
    return _outcome(drill, result.log, [*moments, *struck], struck[0].at_s, present)


def _outcome(
    drill: Drill, log: Sequence[LoggedOperation], moments: Sequence[Moment], fault_s: float, present: Mapping[int, Collection[int]]
) -> Outcome:
    outages = []
    for rank in range(drill.clients):
        # Open loop: an operation counts from the moment at which it was due.
        operations = [Operation(one.due_s, one.ended_s, one.errno) for one in log if one.rank == rank]
        outages.append(outage_of(str(rank), operations, fault_s))
    there = {(rank, number) for rank, numbers in present.items() for number in numbers}
    acknowledged = {(one.rank, one.number) for one in log if one.acknowledged}
    failed = {(one.rank, one.number) for one in log if not one.acknowledged}
    return Outcome(
        line=timeline("drill", fault_s, moments, outages),
        acknowledged=len(acknowledged),
        failed=len(failed),
        lost=len(acknowledged - there),
        unanswered=len(failed & there),
    )


def _present(directory: Path) -> dict[int, set[int]]:
    """Rank -> numbers of the files that are there; the engine calls them ``fRANK.NUMBER``."""
    found: dict[int, set[int]] = {}
    for entry in directory.glob("*.probe/f*.*"):
        rank, _, number = entry.name[1:].partition(".")
        found.setdefault(int(rank), set()).add(int(number))
    return found


def _nothing(result: PlanResult) -> MeasurementError:
    first = result.errors[0] if result.errors else None
    return MeasurementError(
        "the drill did not take place",
        where=", ".join(f"{key} {value}" for key, value in (first.where if first else {}).items()),
        why=f"{first.what}: {first.why}" if first else f"the clients' plan ended: {result.ended}",
        remedy=first.remedy if first else "Give it more time before the fault: --before 10s",
    )


def document(outcome: Outcome) -> str:
    return json.dumps({"schema": 1, **asdict(outcome), "back_after_s": outcome.line.back_after_s}, indent=1)
