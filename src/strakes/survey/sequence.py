"""Measuring cells one after the other, each going on where the one before ended; what they made is removed, and that is timed."""

from __future__ import annotations

import time

from strakes.errors import BadInputError
from strakes.plan import MetadataPhase, Plan
from strakes.studies.base import Cell
from strakes.survey.prepared import files_kept
from strakes.survey.session import LIMIT_FACTOR, SHORTEST_LIMIT_S, Session, visit_cell
from strakes.units import format_seconds


def measure_in_sequence(session: Session, cells: list[Cell], phase_s: float) -> bool:
    """Every cell its number of visits, one after the other; then what they left is removed, and how long that takes is kept.

    Returns whether nothing is left to go on with: a kept population that is smaller than it was to be can grow on.
    """
    visits = max(study.visits_in_sequence for study in session.request.studies)
    done = [visit["cell"] for visit in session.visits if visit["purpose"] == "measure" and visit["ended"] == "ok"]
    wanted = [(cell, block) for cell in cells for block in range(1, visits + 1) if block > done.count(cell.key)]
    kept = {session.sides[cell.place.target].workspace.path / cell.place.kept for cell in cells if cell.place.kept}
    if done and not all(path.exists() for path in kept):
        remedy = "Begin anew without --resume, and with --keep where it is to be interrupted."
        raise BadInputError("what this run had made is gone", where=", ".join(map(str, sorted(kept))), remedy=remedy)
    keep, whole = session.request.keep, True
    for number, (cell, block) in enumerate(wanted, start=len(done) + 1):
        # One round whatever the preparations have taken, so that every call comes further.
        if session.left_s() <= 0 and number > len(done) + 1:
            whole = False
            _drop(session, cells, keep=keep)
            break
        session.progress.update(cell.key, number / (len(done) + len(wanted)), f"round {number} of {len(done) + len(wanted)}")
        visit_cell(session, cell, "measure", block, max(SHORTEST_LIMIT_S, LIMIT_FACTOR * phase_s))
    if not keep:
        _clear(session, cells)
    return whole or not keep


def _drop(session: Session, cells: list[Cell], *, keep: bool) -> None:
    """What the budget did not reach."""
    reached = {visit["cell"] for visit in session.visits if visit["ended"] == "ok"}
    reason = "the budget was spent; the same command with --resume goes on" if keep else "the budget was spent"
    for cell in cells:
        if cell.key not in reached:
            session.writer.append_event({"event": "dropped", "cell": cell.key, "runs": 0, "reason": reason})


def _clear(session: Session, cells: list[Cell]) -> None:
    """Removes what kept places hold by the engine, with all its ranks, and keeps how long that took."""
    for target, name in dict.fromkeys((cell.place.target, cell.place.kept) for cell in cells if cell.place.kept):
        side = session.sides[target]
        plan = Plan(cells[0].plan.ranks, (MetadataPhase("last", "file-create", "shared", 1),), session.request.seed)
        files, made_s = files_kept(session.visits, name), sum(visit["elapsed_s"] for visit in session.visits)
        session.progress.update("removing the population", 1.0, f"{files:,} files, made in {format_seconds(made_s)}")
        started = time.monotonic()
        result = session.engine.run(plan, side.workspace.path, name, SHORTEST_LIMIT_S + made_s, prepared=True)
        elapsed_s = time.monotonic() - started
        if result.ended == "ok" and result.cleaned:
            session.writer.append_event({"event": "clean-up", "files": files, "elapsed_s": elapsed_s})
