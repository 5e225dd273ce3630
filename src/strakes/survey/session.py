"""State of a run in progress, and the execution of one trial."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from strakes.base.machine import other_programs
from strakes.model.cell import Cell
from strakes.runs.engine import Engine
from strakes.runs.records import InterruptionsEnded, LoadSeen, OthersSeen, TroubleSeen, Visit
from strakes.runs.run import Run
from strakes.runs.writer import RunWriter
from strakes.studies.measure_directories import grown, rounds_begun
from strakes.studies.measure_visit import INTERRUPTED, MOST_INTERRUPTED, Site, make_visit, note_unread, require_end
from strakes.studies.study import Pilot
from strakes.survey.pilot import NO_PILOT
from strakes.survey.request import ProgressDisplay, Request
from strakes.targets.clean import others_at_work
from strakes.targets.description import Description
from strakes.targets.target import Target
from strakes.targets.workspace import Workspace

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from strakes.studies.neighbour import Neighbour

# A plan counts as hanging after 20 times its expected duration, but not before 60 seconds.
LIMIT_FACTOR = 20.0
SHORTEST_LIMIT_S = 60.0
# Pause after a fail-over in seconds, because file systems record the end of a fail-over only in whole seconds.
_SETTLED_S = 1.0
# Maximum seconds to wait for a server. A fail-over takes one or two minutes.
_BACK_WITHIN_S = 120.0
_LIMIT_BUDGETS = 2.0  # Maximum time limit of a trial as a multiple of the budget. The longest wait grows in proportion.
_SHORTEST_LIMIT_OF_ALL_S = 20.0
BESIDE = "beside"
# Minimum pause between searches for other strakes runs: in seconds, and as a multiple of the time that a search takes.
_LOOK_EVERY_S = 3.0
_LOOK_SHARE = 100.0


@dataclass
class Session:
    """State of a run in progress.

    Keys of ``sides``: "" for the measured file system, "against" for the second file system, ``BESIDE`` and a number
    for a further directory.
    """

    request: Request
    writer: RunWriter
    engine: Engine
    sides: Mapping[str, Site]
    progress: ProgressDisplay
    started: float
    spent_before_s: float
    visits: list[Visit]
    neighbour: Neighbour | None = None
    cells: list[Cell] = field(default_factory=list)
    description: Description | None = None
    pilot: Pilot = NO_PILOT
    look_again_s: float = 0.0
    others: set[str] = field(default_factory=set)

    @property
    def workspace(self) -> Workspace:
        """Return the working directory of this run on the measured file system."""
        return self.sides[""].workspace

    @property
    def target(self) -> Target:
        """Return the measured file system."""
        return self.sides[""].target

    def elapsed_s(self) -> float:
        """Return the seconds spent on the run, including the time before it was resumed."""
        return self.spent_before_s + time.monotonic() - self.started

    def left_s(self, share: float = 1.0) -> float:
        """Return the seconds left if only ``share`` (0 to 1) of the budget may be used. Negative if exceeded."""
        return self.request.budget_s * share - self.elapsed_s()


def visit_cell(session: Session, cell: Cell, purpose: str, block: int, limit_s: float) -> Visit:
    """Execute one trial, store its samples, and return its record.

    ``ended`` is "yielded" if the trial stopped to protect other users. After a fail-over, repeat the trial. Raises
    MeasurementError if the file system fails, StoppedForOthersError if even the smallest load disturbs others.
    """
    for _ in range(MOST_INTERRUPTED):
        visit = _visit_once(session, cell, purpose, block, limit_s)
        if visit.ended != INTERRUPTED:
            break
        session.progress.note(f"{visit.interruptions[-1]} {cell.key} is measured again")
        _wait_until_served(session.sides[cell.place.target].target)
    if visit.ended != "yielded":
        require_end(visit, session.sides[cell.place.target])
    return visit


def _wait_until_served(target: Target) -> None:
    deadline = time.monotonic() + _BACK_WITHIN_S
    while any(lost.ended_unix_s is None for lost in target.interruptions()) and time.monotonic() < deadline:
        time.sleep(_SETTLED_S)
    time.sleep(_SETTLED_S)


def _visit_once(session: Session, cell: Cell, purpose: str, block: int, limit_s: float) -> Visit:
    site, neighbour = session.sides[cell.place.target], session.neighbour
    on_progress = None
    if neighbour is not None:
        on_progress = neighbour.while_it_runs(session.engine, may_yield=cell.place.is_left_empty())
        session.engine.impact = replace(session.request.impact, share=neighbour.before_visit())
        limit_s /= neighbour.share
    to_run = cell
    if cell.place.kept:
        resumed = Run(session.writer.path).manifest.get("resumed", [])
        rounds = rounds_begun(session.visits, cell.place.kept, len(resumed))
        to_run = replace(cell, plan=grown(cell.plan, rounds))
    planned = Visit(len(session.visits), block, purpose)
    conditions: AbstractContextManager[object] | None = None
    if cell.knobs:
        from strakes.control.knob_change import changed

        conditions = changed(site.target, cell.knobs)
    visit = make_visit(
        site, to_run, planned, limit_s, on_progress=on_progress, run_plan=session.request.visit, conditions=conditions
    )
    note_unread(site, session.writer, session.progress.note)
    if neighbour is not None:
        yielded = neighbour.yielded and visit.ended == "cancelled"
        visit = replace(visit, ended="yielded" if yielded else visit.ended, neighbour=neighbour.after_visit())
    session.writer.append_visit(visit)
    session.visits.append(visit)
    if visit.ended == "yielded" and neighbour is not None:
        session.progress.note(
            f"to protect other users, {cell.key} is measured again with 1/{1 / neighbour.share:.0f} of its load"
        )
    return visit


def shortest_limit_s(request: Request) -> float:
    """Return the minimum time limit of a trial in seconds. It depends on the budget."""
    return max(_SHORTEST_LIMIT_OF_ALL_S, min(SHORTEST_LIMIT_S, _LIMIT_BUDGETS * request.budget_s))


def note_others(session: Session, when: str) -> None:
    """Record the other strakes runs that measure in the directory at the same time.

    ``when``: "before", "meanwhile" or "after" the measurement. With "meanwhile", frequent calls are ignored.
    """
    now_s = time.monotonic()
    if when == "meanwhile" and now_s < session.look_again_s:
        return
    others = [
        who
        for side in session.sides.values()
        for who in others_at_work(side.workspace.path.parent, session.writer.id)
        if who not in session.others
    ]
    # A search in a directory with a million names takes long, so search there less often.
    session.look_again_s = now_s + max(_LOOK_EVERY_S, _LOOK_SHARE * (time.monotonic() - now_s))
    if others:
        session.others.update(others)
        session.writer.append_event(OthersSeen(when, tuple(others)))
        session.progress.note(
            f"another measurement runs in this directory, and both disturb each other: {'; '.join(others)}"
        )


def note_load(session: Session) -> None:
    """Record the load by other programs. No trial may be running."""
    if load := other_programs():
        session.writer.append_event(LoadSeen(*load))


def note_trouble(session: Session, when: str) -> None:
    """Record servers that report trouble or do not answer. ``when``: "before" or "after" the measurement."""
    for side in session.sides.values():
        sentences = side.target.trouble() if side.target.mount.remote else ()
        if sentences:
            session.writer.append_event(TroubleSeen(when, sentences))
            session.progress.note(" ".join(sentences))


def note_ends(session: Session) -> None:
    """Record the ends of server interruptions that lasted longer than their trial."""
    lasting = {lost.target for visit in session.visits for lost in visit.interruptions if lost.ended_unix_s is None}
    for side in session.sides.values() if lasting else ():
        known = tuple(lost for lost in side.target.interruptions() if lost.target in lasting)
        if known:
            session.writer.append_event(InterruptionsEnded(known))
