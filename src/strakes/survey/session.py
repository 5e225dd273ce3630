"""Everything alive while a request is performed, and the one thing that is done with it again and again: a visit to a cell."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from strakes.errors import MeasurementError
from strakes.launch.engine import Engine
from strakes.launch.messages import PlanResult
from strakes.neighbour.neighbour import Neighbour
from strakes.portrait.held_back import limit_of
from strakes.store import Run, RunWriter
from strakes.studies.base import Cell
from strakes.survey.client import client_seconds
from strakes.survey.places import Places
from strakes.survey.prepared import grown, prepare, rounds_begun
from strakes.survey.request import Progress, Request
from strakes.survey.watch import Watch
from strakes.targets.base import Target
from strakes.targets.model import Description
from strakes.targets.workspace import Workspace

# A plan that takes this many times what was expected, and this long at least, is given up.
LIMIT_FACTOR = 20.0
SHORTEST_LIMIT_S = 60.0
# With a small budget nobody wants to wait so long for what will not come.
_LIMIT_BUDGETS = 2.0
_SHORTEST_LIMIT_OF_ALL_S = 20.0


@dataclass(frozen=True)
class Side:
    """One file system that is measured: usually the only one."""

    workspace: Workspace
    target: Target
    places: Places
    watch: Watch


@dataclass
class Session:
    """Everything alive during a run. ``sides``: the file system measured, under "", and the one it is measured ``against``."""

    request: Request
    writer: RunWriter
    engine: Engine
    sides: Mapping[str, Side]
    progress: Progress
    started: float
    spent_before_s: float
    visits: list[dict[str, Any]]
    neighbour: Neighbour | None = None
    cells: list[Cell] = field(default_factory=list)
    description: Description | None = None
    block_thought_of: int = 0
    thought_s: float = 0.0

    @property
    def workspace(self) -> Workspace:
        return self.sides[""].workspace

    @property
    def target(self) -> Target:
        return self.sides[""].target

    def limit(self) -> str:
        """Under which the next visit runs, as ``limit_of`` a visit."""
        return limit_of({"impact": self.engine.impact.to_message()})

    def elapsed_s(self) -> float:
        return self.spent_before_s + time.monotonic() - self.started

    def left_s(self, share: float = 1.0) -> float:
        return self.request.budget_s * share - self.elapsed_s()


def visit_cell(session: Session, cell: Cell, purpose: str, block: int, limit_s: float) -> dict[str, Any]:
    """Runs one plan and keeps what came of it; ``ended`` is yielded where it was ended for other people's sake.

    Raises MeasurementError when the target failed, StoppedForOthersError when there is no load that others can bear.
    """
    number, key = len(session.visits), cell.key
    side, place = session.sides[cell.place.target], cell.place
    directory = side.places.of(cell.layout)
    assert directory is not None
    name, plan = place.kept or f"v{number}", cell.plan
    neighbour = session.neighbour
    # Nothing of a growing population can be done again.
    watch = neighbour.while_it_runs(session.engine, may_yield=not place.kept) if neighbour else None
    if neighbour is not None:
        session.engine.impact = session.request.impact.with_share(neighbour.before_visit())
        limit_s /= neighbour.share
    # What making its directories takes is part of what a visit costs the budget.
    started_unix_s = time.time()
    started = time.monotonic()
    given = {} if place.is_plain() else prepare(side.target, directory, name, place)
    if place.kept:
        resumed = Run(session.writer.path).manifest.get("resumed", [])
        plan = grown(plan, rounds_begun(session.visits, place.kept, len(resumed)))
    side.watch.begin()
    impact = session.engine.impact.to_message()
    if session.request.visit is not None:
        result = session.request.visit(session.engine, plan, directory, name, limit_s)
    elif place.is_plain():
        result = session.engine.run(plan, directory, name, limit_s, watch)
    else:
        result = session.engine.run(plan, directory, name, limit_s, watch, keep=bool(place.kept), prepared=True)
    elapsed_s, ended_unix_s = time.monotonic() - started, time.time()
    yielded = neighbour is not None and neighbour.yielded and result.ended == "cancelled"
    visit: dict[str, Any] = {
        "visit": number,
        "block": block,
        "purpose": purpose,
        "cell": key,
        "started_unix_s": started_unix_s,
        "ended_unix_s": ended_unix_s,
        "elapsed_s": elapsed_s,
        "client_s": client_seconds(),
        "ended": "yielded" if yielded else result.ended,
        "samples": [dict(sample.raw) for sample in result.samples],
        "errors": [asdict(error) for error in result.errors],
        **(side.watch.end() if result.ended == "ok" else {}),
        **({"given": given} if given else {}),
        **({"kept": place.kept} if place.kept else {}),
        **({"impact": impact} if impact else {}),
        **({"neighbour": neighbour.after_visit()} if neighbour else {}),
    }
    session.writer.append_visit(visit)
    session.visits.append(visit)
    if yielded:
        session.progress.note(f"gave way: {key} is measured again with 1/{1 / neighbour.share:.0f} of its load" if neighbour else "")
        return visit
    if result.ended == "cancelled":
        raise KeyboardInterrupt
    if result.ended != "ok":
        if not result.cleaned and not side.workspace.answers():
            side.workspace.leave_alone()
        raise _failure(result, side.workspace.path, key, side.target.trouble())
    return visit


def _failure(result: PlanResult, directory: Path, key: str, trouble: Sequence[str]) -> MeasurementError:
    """What the engine met, and which servers are not well."""
    if result.errors:
        error = result.errors[0]
        where = ", ".join(f"{name} {value}" for name, value in error.where.items())
        why = " ".join([f"{error.why.rstrip('.')}.", *trouble]) if trouble else error.why
        return MeasurementError(error.what, where=f"{directory}, {where} (cell {key})", why=why, remedy=error.remedy)
    return MeasurementError(
        f"the run ended as {result.ended!r}",
        where=f"{directory} (cell {key})",
        why=" ".join(trouble),
        remedy="The run's log in the store says what the engine wrote.",
    )


def shortest_limit_s(request: Request) -> float:
    return max(_SHORTEST_LIMIT_OF_ALL_S, min(SHORTEST_LIMIT_S, _LIMIT_BUDGETS * request.budget_s))


def usual_s(session: Session, key: str) -> float:
    durations = sorted(visit["elapsed_s"] for visit in session.visits if visit["cell"] == key)
    return float(durations[len(durations) // 2]) if durations else 0.0
