"""State of a run in progress, and the visit of a cell."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from strakes.control.knob_change import changed
from strakes.model.cell import Cell
from strakes.runs.engine import Engine
from strakes.runs.records import InterruptionsEnded, OthersSeen, TroubleSeen, Visit
from strakes.runs.run import Run
from strakes.runs.writer import RunWriter
from strakes.studies.measure_directories import grown, rounds_begun
from strakes.studies.measure_visit import INTERRUPTED, MOST_INTERRUPTED, Site, make_visit, require_end
from strakes.studies.neighbour import Neighbour
from strakes.studies.study import Pilot
from strakes.survey.pilot import NO_PILOT
from strakes.survey.request import ProgressDisplay, Request
from strakes.targets.clean import others_at_work
from strakes.targets.description import Description
from strakes.targets.target import Target
from strakes.targets.workspace import Workspace

# A plan is stopped after this many times the expected time, and not before this many seconds.
LIMIT_FACTOR = 20.0
SHORTEST_LIMIT_S = 60.0
# Wait in seconds after an interruption. Its times are in whole seconds, and it must not overlap the next plan.
_SETTLED_S = 1.0
# Longest wait for a server in seconds. A fail-over takes one or two minutes.
_BACK_WITHIN_S = 120.0
# With a small budget the time limit of a visit is this many budgets, but at least _SHORTEST_LIMIT_OF_ALL_S.
_LIMIT_BUDGETS = 2.0
_SHORTEST_LIMIT_OF_ALL_S = 20.0
# Key of further directories in ``Session.sides``, before a number. The engine assigns them to ranks.
BESIDE = "beside"
# Seconds between searches for other measurements. The pause is at least 100 times as long as a search takes.
_LOOK_EVERY_S = 3.0
_LOOK_SHARE = 100.0


@dataclass
class Session:
    """State of a run in progress.

    ``sides``: the measured file system has the key "", a second one the key "against", and further directories of the
    ranks have ``BESIDE`` and a number.
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
        """Workspace on the measured file system."""
        return self.sides[""].workspace

    @property
    def target(self) -> Target:
        """The measured file system; the other side of a comparison is in ``sides``."""
        return self.sides[""].target

    def elapsed_s(self) -> float:
        """Return seconds spent, including the time before a resume."""
        return self.spent_before_s + time.monotonic() - self.started

    def left_s(self, share: float = 1.0) -> float:
        """Return the seconds left of a share (0 to 1) of the budget, negative if it is overspent."""
        return self.request.budget_s * share - self.elapsed_s()


def visit_cell(session: Session, cell: Cell, purpose: str, block: int, limit_s: float) -> Visit:
    """Run the plan of a cell and store its samples. ``ended`` is "yielded" if it was stopped to protect other users.

    A plan that a fail-over of servers interrupted is repeated. Raises MeasurementError if the target failed, and
    StoppedForOthersError if even the smallest load disturbs others.
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
    """Wait until all servers are back, because a plan started earlier would be interrupted again."""
    deadline = time.monotonic() + _BACK_WITHIN_S
    while any(lost.ended_unix_s is None for lost in target.interruptions()) and time.monotonic() < deadline:
        time.sleep(_SETTLED_S)
    time.sleep(_SETTLED_S)


def _visit_once(session: Session, cell: Cell, purpose: str, block: int, limit_s: float) -> Visit:
    site, neighbour = session.sides[cell.place.target], session.neighbour
    on_progress = None
    if neighbour is not None:
        # In a kept directory, files of a stopped visit would remain for the next one.
        on_progress = neighbour.while_it_runs(session.engine, may_yield=cell.place.is_left_empty())
        session.engine.impact = session.request.impact.with_share(neighbour.before_visit())
        limit_s /= neighbour.share
    to_run = cell
    if cell.place.kept:
        resumed = Run(session.writer.path).manifest.get("resumed", [])
        rounds = rounds_begun(session.visits, cell.place.kept, len(resumed))
        to_run = replace(cell, plan=grown(cell.plan, rounds))
    planned = Visit(len(session.visits), block, purpose)
    visit = make_visit(
        site,
        to_run,
        planned,
        limit_s,
        on_progress=on_progress,
        run_plan=session.request.visit,
        conditions=changed(site.target, cell.knobs) if cell.knobs else None,
    )
    if neighbour is not None:
        yielded = neighbour.yielded and visit.ended == "cancelled"
        visit = replace(visit, ended="yielded" if yielded else visit.ended, neighbour=neighbour.after_visit())
    session.writer.append_visit(visit)
    session.visits.append(visit)
    if visit.ended == "yielded" and neighbour is not None:
        session.progress.note(
            f"slowed down for other users: {cell.key} is measured again with 1/{1 / neighbour.share:.0f} of its load"
        )
    return visit


def shortest_limit_s(request: Request) -> float:
    """Return the shortest time limit of a visit, in seconds, for a request's budget."""
    return max(_SHORTEST_LIMIT_OF_ALL_S, min(SHORTEST_LIMIT_S, _LIMIT_BUDGETS * request.budget_s))


def note_others(session: Session, when: str) -> None:
    """Record other strakes measurements in the directory, each once. ``when``: "before", "meanwhile" or "after".

    Meanwhile, the directory is only searched from time to time.
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
    # A directory of a million names takes long to list.
    session.look_again_s = now_s + max(_LOOK_EVERY_S, _LOOK_SHARE * (time.monotonic() - now_s))
    if others:
        session.others.update(others)
        session.writer.append_event(OthersSeen(when, tuple(others)))
        session.progress.note(
            f"another measurement works in this directory, and both disturb each other: {'; '.join(others)}"
        )


def note_trouble(session: Session, when: str) -> None:
    """Record servers with trouble. ``when``: "before" or "after"."""
    for side in session.sides.values():
        # A local file system has no servers.
        sentences = side.target.trouble() if side.target.mount.remote else ()
        if sentences:
            session.writer.append_event(TroubleSeen(when, sentences))
            session.progress.note(" ".join(sentences))


def note_ends(session: Session) -> None:
    """Record the present state of interruptions that had not ended when their visit ended."""
    lasting = {lost.target for visit in session.visits for lost in visit.interruptions if lost.ended_unix_s is None}
    for side in session.sides.values() if lasting else ():
        known = tuple(lost for lost in side.target.interruptions() if lost.target in lasting)
        if known:
            session.writer.append_event(InterruptionsEnded(known))
