"""Measure in interleaved blocks until every question is answered or the budget is spent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from strakes.base.units import counted
from strakes.model.cell import Cell
from strakes.runs.records import CellDropped
from strakes.survey.amounts import FEWEST_BLOCKS, MEASURE_SHARE
from strakes.survey.schedule import Schedule
from strakes.survey.session import LIMIT_FACTOR, Session, note_others, shortest_limit_s, visit_cell
from strakes.survey.verdicts import budgets_of, larger_budgets, left_to_larger_budgets, verdicts_of, visit_s


def measure_in_blocks(session: Session, cells: list[Cell], phase_s: float, facts: Mapping[str, Any]) -> None:
    """Run blocks over all open cells until nothing is open or the share of the budget for measuring is spent."""
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
    if note := left_to_larger_budgets(verdicts, budgets_of(verdicts, visits_s, prepared_s), schedule.planned):
        session.progress.note(note)
    _measure(session, schedule, facts)
    put_off = schedule.put_off() if verdicts else []
    missing = {cell.key for cell in put_off}
    budgets = budgets_of(verdicts, {cell.key: schedule.expected_s(cell) for cell in cells}, prepared_s)
    left = [index for index, verdict in enumerate(verdicts) if not missing.isdisjoint(verdict.cells)]
    options = larger_budgets(verdicts, budgets, left)
    for cell in put_off:
        session.writer.append_event(CellDropped(cell.key, f"the next comparison takes {options[cell.study]}", 0))


def _measure(session: Session, schedule: Schedule, facts: Mapping[str, Any]) -> None:
    request = session.request
    # At least one cell is measured, even if the preparation has used up the budget. The first block may take all of it.
    while session.left_s(MEASURE_SHARE) > 0 or schedule.block == 0:
        if schedule.block > 0:
            schedule.look(session.visits, request.confidence, facts)
            schedule.plan(session.left_s(MEASURE_SHARE))
        for cell in schedule.fit(session.left_s(MEASURE_SHARE)) if schedule.block > 0 else ():
            reason = f"the budget was too short for {FEWEST_BLOCKS} runs"
            session.writer.append_event(CellDropped(cell.key, reason, schedule.runs(cell.key)))
        note_others(session, "meanwhile")
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
                _drop_rest(session, schedule)
                return
            _show(session, schedule, cell)
            limit_s = max(shortest_limit_s(session.request), LIMIT_FACTOR * expected_s)
            visit = visit_cell(session, cell, "measure", schedule.block, limit_s)
            schedule.take(visit, session.visits)
        # No cell of the block fits into the remaining time.
        if len(session.visits) == before:
            return


def _drop_rest(session: Session, schedule: Schedule) -> None:
    """Record the cells that the first block did not reach."""
    for cell in schedule.open_cells():
        if not schedule.runs(cell.key):
            session.writer.append_event(CellDropped(cell.key, "the budget was spent", 0))


def _show(session: Session, schedule: Schedule, cell: Cell) -> None:
    """Show the current cell, and how many cells are still open."""
    still_open = len(schedule.open_cells())
    session.progress.cells(len(session.cells) - still_open, len(session.cells))
    detail = f"block {schedule.block}, {counted(still_open, 'cell')} open"
    session.progress.update(cell.key, session.elapsed_s() / session.request.budget_s, detail)
