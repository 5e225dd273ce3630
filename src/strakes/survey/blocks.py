"""Measure all cells in interleaved rounds until all questions are answered, or measure them in sequence."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from strakes.base.errors import BadInputError
from strakes.base.units import counted, format_seconds, typed_seconds
from strakes.model.cell import Cell
from strakes.model.phases import MetadataPhase
from strakes.model.plan import Plan
from strakes.runs.records import CellDropped, PopulationRemoved
from strakes.studies.measure_directories import files_kept
from strakes.survey.amounts import FEWEST_BLOCKS, MEASURE_SHARE, WANTED_BLOCKS
from strakes.survey.schedule import Schedule
from strakes.survey.session import (
    LIMIT_FACTOR,
    SHORTEST_LIMIT_S,
    Session,
    note_load,
    note_others,
    shortest_limit_s,
    visit_cell,
)
from strakes.survey.verdicts import budgets_of, larger_budgets, verdicts_of, visit_s


def measure_in_blocks(session: Session, cells: list[Cell], phase_s: float, facts: Mapping[str, Any]) -> None:
    """Repeat the measurements in rounds until all questions are answered or the time is spent."""
    request = session.request
    session.cells = cells
    visits_s = {cell.key: visit_s(cell, session.pilot, phase_s) for cell in cells}
    verdicts = verdicts_of(request.studies, cells, facts, visits_s, request.budget_s) if request.full else []
    schedule = Schedule(cells, request.studies, request.relative_half_width, request.seed, phase_s, verdicts, visits_s)
    for visit in session.visits:
        if visit.is_measurement:
            schedule.record(visit)
    schedule.under(session.engine.impact, session.visits)
    schedule.plan(session.left_s(MEASURE_SHARE))
    prepared_s = session.elapsed_s()
    if len(schedule.planned) < len(verdicts):
        count = f"{len(schedule.planned)} of {len(verdicts)} comparisons fit into this budget"
        session.progress.note(f"{count}, the most important first; the result says which --budget the others need")
    _measure(session, schedule, facts)
    lacking = schedule.lacking() if verdicts else []
    missing = {cell.key for cell in lacking}
    spent_s = {cell.key: schedule.expected_s(cell) * max(1, schedule.runs(cell.key) / WANTED_BLOCKS) for cell in cells}
    left = [index for index, verdict in enumerate(verdicts) if not missing.isdisjoint(verdict.cells)]
    options = larger_budgets(verdicts, budgets_of(verdicts, spent_s, prepared_s), left)
    # Also suggest --phase. Otherwise, strakes would use the larger budget for longer phases.
    phase = "" if request.amounts() else f" (with --phase {typed_seconds(phase_s)})"
    for cell in lacking:
        runs = schedule.runs(cell.key)
        often = {0: "", 1: "only once, and "}.get(runs, f"only {runs} times, and ")
        reason = f"{often}a comparison needs {options[cell.study]}{phase}"
        session.writer.append_event(CellDropped(cell.key, reason, runs))


def _measure(session: Session, schedule: Schedule, facts: Mapping[str, Any]) -> None:
    request = session.request
    while session.left_s(MEASURE_SHARE) > 0 or schedule.block == 0:
        if schedule.block > 0:
            schedule.look(session.visits, request.confidence, facts)
            schedule.plan(session.left_s(MEASURE_SHARE))
        for cell in schedule.fit(session.left_s(MEASURE_SHARE)) if schedule.block > 0 else ():
            reason = f"the budget was too short for {FEWEST_BLOCKS} runs"
            session.writer.append_event(CellDropped(cell.key, reason, schedule.runs(cell.key)))
        note_others(session, "meanwhile")
        if schedule.block > 0:
            note_load(session)
        block = schedule.next_block()
        if not block:
            return
        before = len(session.visits)
        for cell in block:
            if request.full:
                schedule.fit(session.left_s(MEASURE_SHARE))
                if cell not in schedule.open_cells():
                    continue
            expected_s = schedule.expected_s(cell)
            if schedule.block > 1 and expected_s > session.left_s(MEASURE_SHARE):
                continue
            if session.left_s(MEASURE_SHARE if schedule.block > 1 else 1.0) <= 0 and len(session.visits) > before:
                _drop_unreached(session, schedule.open_cells(), keep=False)
                return
            detail = f"round {schedule.block}, {counted(len(schedule.open_cells()), 'measurement')} unfinished"
            session.progress.update(cell.key, session.elapsed_s() / request.budget_s, detail)
            limit_s = max(shortest_limit_s(request), LIMIT_FACTOR * expected_s)
            visit = visit_cell(session, cell, "measure", schedule.block, limit_s)
            schedule.take(visit, session.visits)
        if len(session.visits) == before:
            return


# Time to remove files, as a share of the time to create them (measured: XFS 0.61, CephFS 0.68).
_REMOVAL_SHARE = 0.7


def measure_in_sequence(session: Session, cells: list[Cell], phase_s: float) -> bool:
    """Measure the cells one after another, then remove the files unless --keep is given.

    Return False if the budget ends first. A resumed run then measures the remaining cells.
    """
    visits = max(study.visits_in_sequence for study in session.request.studies)
    done = [visit.cell for visit in session.visits if visit.is_measurement and visit.ended_well]
    wanted = [(cell, block) for cell in cells for block in range(1, visits + 1) if block > done.count(cell.key)]
    kept = {session.sides[cell.place.target].workspace.path / cell.place.kept for cell in cells if cell.place.kept}
    if done and not all(path.exists() for path in kept):
        remedy = "Start again without --resume. Add --keep if you want to resume the new run."
        raise BadInputError("the files of this run are gone", where=", ".join(map(str, sorted(kept))), remedy=remedy)
    keep, whole = session.request.keep, True
    for number, (cell, block) in enumerate(wanted, start=len(done) + 1):
        made_s = sum(visit.elapsed_s for visit in session.visits if visit.is_measurement)
        if session.left_s() <= (0.0 if keep else _REMOVAL_SHARE * made_s) and number > len(done) + 1:
            whole = False
            _drop_unreached(session, cells, keep=keep)
            break
        session.progress.update(
            cell.key, number / (len(done) + len(wanted)), f"round {number} of {len(done) + len(wanted)}"
        )
        visit_cell(session, cell, "measure", block, max(SHORTEST_LIMIT_S, LIMIT_FACTOR * phase_s))
    if not keep:
        _remove_files(session, cells)
    return whole or not keep


def _drop_unreached(session: Session, cells: list[Cell], *, keep: bool) -> None:
    reached = {visit.cell for visit in session.visits if visit.ended_well}
    reason = "the budget was spent; to continue, run the same command with --resume" if keep else "the budget was spent"
    for cell in cells:
        if cell.key not in reached:
            session.writer.append_event(CellDropped(cell.key, reason, runs=0))


def _remove_files(session: Session, cells: list[Cell]) -> None:
    for target, name in dict.fromkeys((cell.place.target, cell.place.kept) for cell in cells if cell.place.kept):
        side = session.sides[target]
        plan = Plan(cells[0].plan.ranks, (MetadataPhase("last", "file-create", "shared", 1),), session.request.seed)
        files, made_s = files_kept(session.visits, name), sum(visit.elapsed_s for visit in session.visits)
        session.progress.update(
            "removing the files", 1.0, f"{counted(files, 'file')}, made in {format_seconds(made_s)}"
        )
        started = time.monotonic()
        result = session.engine.run(plan, side.workspace.path, name, SHORTEST_LIMIT_S + made_s, prepared=True)
        elapsed_s = time.monotonic() - started
        if result.ended == "ok" and result.cleaned:
            session.writer.append_event(PopulationRemoved(files, elapsed_s))
