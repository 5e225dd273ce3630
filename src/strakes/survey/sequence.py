"""Measure cells in sequence, each with the files of the previous one, and time the removal of the files."""

from __future__ import annotations

import time

from strakes.base.errors import BadInputError
from strakes.base.units import counted, format_seconds
from strakes.model.cell import Cell
from strakes.model.phases import MetadataPhase
from strakes.model.plan import Plan
from strakes.runs.records import CellDropped, PopulationRemoved
from strakes.studies.measure_directories import files_kept
from strakes.survey.session import LIMIT_FACTOR, SHORTEST_LIMIT_S, Session, visit_cell

# Removing a population takes up to 0.7 times as long as creating it (XFS 0.61, CephFS 0.68). Without this reserve a run
# exceeds its budget by that much.
_REMOVAL_SHARE = 0.7


def measure_in_sequence(session: Session, cells: list[Cell], phase_s: float) -> bool:
    """Visit each cell as often as the study needs, in sequence; then remove the files and store the time of that.

    Return whether the run is complete. A kept population below its final size is not: it can still grow.
    """
    visits = max(study.visits_in_sequence for study in session.request.studies)
    done = [visit.cell for visit in session.visits if visit.is_measurement and visit.ended_well]
    wanted = [(cell, block) for cell in cells for block in range(1, visits + 1) if block > done.count(cell.key)]
    kept = {session.sides[cell.place.target].workspace.path / cell.place.kept for cell in cells if cell.place.kept}
    if done and not all(path.exists() for path in kept):
        remedy = "Start again without --resume. Add --keep if you want to interrupt and resume it."
        raise BadInputError("the files of this run are gone", where=", ".join(map(str, sorted(kept))), remedy=remedy)
    keep, whole = session.request.keep, True
    for number, (cell, block) in enumerate(wanted, start=len(done) + 1):
        made_s = sum(visit.elapsed_s for visit in session.visits if visit.is_measurement)
        # At least one round, even if the preparation has used up the budget, so that each call makes progress.
        if session.left_s() <= (0.0 if keep else _REMOVAL_SHARE * made_s) and number > len(done) + 1:
            whole = False
            _drop(session, cells, keep=keep)
            break
        session.progress.update(
            cell.key, number / (len(done) + len(wanted)), f"round {number} of {len(done) + len(wanted)}"
        )
        visit_cell(session, cell, "measure", block, max(SHORTEST_LIMIT_S, LIMIT_FACTOR * phase_s))
    if not keep:
        _clear(session, cells)
    return whole or not keep


def _drop(session: Session, cells: list[Cell], *, keep: bool) -> None:
    """Record the cells that the budget did not reach."""
    reached = {visit.cell for visit in session.visits if visit.ended_well}
    reason = "the budget was spent; to continue, run the same command with --resume" if keep else "the budget was spent"
    for cell in cells:
        if cell.key not in reached:
            session.writer.append_event(CellDropped(cell.key, reason, runs=0))


def _clear(session: Session, cells: list[Cell]) -> None:
    """Let all ranks of the engine remove the files in kept directories, and store the time."""
    for target, name in dict.fromkeys((cell.place.target, cell.place.kept) for cell in cells if cell.place.kept):
        side = session.sides[target]
        plan = Plan(cells[0].plan.ranks, (MetadataPhase("last", "file-create", "shared", 1),), session.request.seed)
        files, made_s = files_kept(session.visits, name), sum(visit.elapsed_s for visit in session.visits)
        session.progress.update(
            "removing the population", 1.0, f"{counted(files, 'file')}, made in {format_seconds(made_s)}"
        )
        started = time.monotonic()
        result = session.engine.run(plan, side.workspace.path, name, SHORTEST_LIMIT_S + made_s, prepared=True)
        elapsed_s = time.monotonic() - started
        if result.ended == "ok" and result.cleaned:
            session.writer.append_event(PopulationRemoved(files, elapsed_s))
