"""Measuring in interleaved blocks until every interval is reached, nothing more can change, or the budget is spent."""

from __future__ import annotations

from strakes.analysis.build import rule_of
from strakes.findings.cell import UNITS, Cell
from strakes.store.records import CellDropped
from strakes.survey.amounts import LATE_SHARE, MEASURE_SHARE, fewest_blocks
from strakes.survey.schedule import Schedule
from strakes.survey.session import LIMIT_FACTOR, Session, note_others, shortest_limit_s, visit_cell
from strakes.units import counted, format_value


def measure_in_blocks(session: Session, cells: list[Cell], phase_s: float) -> None:
    """Blocks over all open cells until every interval is reached or the measuring share of the budget is spent."""
    request = session.request
    session.cells = cells
    # Fixed beforehand: findings are not looked at to decide when to stop.
    fewest = fewest_blocks(request.confidence, sum(not cell.visits for cell in cells))
    schedule = Schedule(cells, rule_of(request.options()), request.seed, phase_s, fewest)
    for visit in session.visits:
        if visit.is_measurement:
            schedule.record(visit)
    schedule.under(session.engine.impact, session.visits)
    # One cell is measured whatever the preparations have taken; a first block goes on until the whole budget is spent.
    while session.left_s(share := _share(session, schedule)) > 0 or schedule.block == 0:
        schedule.take_back(session.left_s(share))
        for cell in schedule.fit(session.left_s(share)):
            reason = f"the budget was too short for {fewest} runs"
            session.writer.append_event(CellDropped(cell.key, reason, schedule.runs(cell.key)))
        note_others(session, "meanwhile")
        block = schedule.next_block()
        if not block:
            return
        before = len(session.visits)
        for cell in block:
            expected_s = schedule.expected_s(cell)
            if schedule.block > 1 and expected_s > session.left_s(share):
                continue
            if session.left_s(share if schedule.block > 1 else 1.0) <= 0 and len(session.visits) > before:
                _drop_rest(session, schedule)
                return
            _tell(session, schedule, cell)
            limit_s = max(shortest_limit_s(session.request), LIMIT_FACTOR * expected_s)
            visit = visit_cell(session, cell, "measure", schedule.block, limit_s)
            schedule.take(visit, session.visits)
        # What is left of this block takes longer than what is left of the time.
        if len(session.visits) == before:
            return


def _drop_rest(session: Session, schedule: Schedule) -> None:
    """Tell which cells the first block did not come to."""
    for cell in schedule.open_cells():
        if not schedule.runs(cell.key):
            session.writer.append_event(CellDropped(cell.key, "the budget was spent", 0))


def _share(session: Session, schedule: Schedule) -> float:
    """Return the share of the budget for blocks: more than usual where that lets them decide something."""
    # The time for fresh runs is not for blocks beyond those that decide.
    needed_s = schedule.needed_s(least=True)
    lacking = session.left_s(MEASURE_SHARE) < needed_s <= session.left_s(LATE_SHARE)
    return LATE_SHARE if lacking else MEASURE_SHARE


def _tell(session: Session, schedule: Schedule, cell: Cell) -> None:
    """Show what is measured now, what is known of it, and how far all the others are."""
    open_cells = schedule.open_cells()
    widths = {open_cell.key: schedule.width(open_cell.key) for open_cell in open_cells}
    session.progress.cells(len(session.cells) - len(open_cells), len(session.cells), widths)
    measure = cell.measures[0]
    judgement = schedule.judge(cell.key, measure.suffix)
    detail = f"block {schedule.block}, {counted(len(schedule.open_cells()), 'cell')} open"
    if judgement is not None and judgement.estimate.interval is not None:
        unit = UNITS[measure.metric]
        low, high = judgement.estimate.interval.low, judgement.estimate.interval.high
        so_far = (
            f"{format_value(judgement.estimate.median, unit)} [{format_value(low, unit)} - {format_value(high, unit)}]"
        )
        detail = f"{measure.phase} {so_far}; {detail}"
    session.progress.update(cell.key, session.elapsed_s() / session.request.budget_s, detail)
