"""Measuring in interleaved blocks until every interval is reached, nothing more can change, or the budget is spent."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from strakes.portrait.build import rule_of
from strakes.portrait.collect import cell_record, collect
from strakes.statistics.interval import smallest_runs
from strakes.studies.base import UNITS, Cell
from strakes.survey.preparation import MEASURE_SHARE
from strakes.survey.schedule import Schedule
from strakes.survey.session import LIMIT_FACTOR, Session, shortest_limit_s, visit_cell
from strakes.survey.settled import is_settled, runs_saved
from strakes.units import format_value

# Looking for cells that need no more runs takes at most this share of the time.
_THINKING_SHARE = 0.02


def measure_in_blocks(session: Session, cells: list[Cell], phase_s: float, facts: Mapping[str, Any]) -> None:
    """Blocks over all open cells until every interval is reached or the measuring share of the budget is spent."""
    request = session.request
    session.cells = cells
    schedule = Schedule(cells, rule_of(request.options()), request.seed, phase_s, smallest_runs(request.confidence))
    for visit in session.visits:
        if visit["purpose"] == "measure":
            schedule.record(visit)
    schedule.under(session.limit(), session.visits)
    for event in session.writer.run.events:
        if event["event"] == "settled":
            schedule.settle(event["cell"])
    share = MEASURE_SHARE
    # One block is measured whatever the preparations have taken: a run that says nothing is worse than one that takes longer.
    while session.left_s(share) > 0 or schedule.block == 0:
        _settle(session, schedule, facts)
        for cell in schedule.fit(session.left_s(share)):
            reason = f"no time for {smallest_runs(request.confidence)} runs within the budget"
            session.writer.append_event({"event": "dropped", "cell": cell.key, "runs": schedule.runs(cell.key), "reason": reason})
        block = schedule.next_block()
        if not block:
            return
        for cell in block:
            expected_s = schedule.expected_s(cell)
            if schedule.block > 1 and expected_s > session.left_s(share):
                continue
            if session.left_s(share) <= 0 and schedule.block > 1:
                return
            _tell(session, schedule, cell)
            limit_s = max(shortest_limit_s(session.request), LIMIT_FACTOR * expected_s)
            visit = visit_cell(session, cell, "measure", schedule.block, limit_s)
            schedule.take(visit, session.visits)
        if all(schedule.expected_s(cell) > session.left_s(share) for cell in schedule.open_cells()):
            return


def _settle(session: Session, schedule: Schedule, facts: Mapping[str, Any]) -> None:
    """Ends the cells that can change nothing any more; thinking about it may take a small share of the time that has passed."""
    rule = rule_of(session.request.options())
    open_cells = [cell for cell in schedule.open_cells() if schedule.runs(cell.key) >= max(rule.smallest_runs, cell.least_runs)]
    if not open_cells or session.block_thought_of == schedule.block:
        return
    session.block_thought_of = schedule.block
    began = time.monotonic()
    records = [cell_record(cell) for study in session.request.studies for cell in session.cells if cell.study == study.name]
    everything = collect(records, session.visits, rule, facts)
    for cell in open_cells:
        if session.thought_s + time.monotonic() - began > _THINKING_SHARE * session.elapsed_s():
            break
        study = next(one for one in session.request.studies if one.name == cell.study)
        results = everything.of_study(study.name)
        ids = frozenset(f"{cell.key}:{measure.suffix}" for measure in cell.measures if not measure.is_side)
        if is_settled(study, results, ids, rule.relative_half_width):
            saved_s = runs_saved([results.get(one) for one in ids], rule) * schedule.expected_s(cell)
            session.writer.append_event({"event": "settled", "cell": cell.key, "runs": schedule.runs(cell.key), "saved_s": saved_s})
            schedule.settle(cell.key)
    session.thought_s += time.monotonic() - began


def _tell(session: Session, schedule: Schedule, cell: Cell) -> None:
    """What is measured now and what is known of it."""
    measure = cell.measures[0]
    judgement = schedule.judge(cell.key, measure.suffix)
    detail = f"block {schedule.block}, {len(schedule.open_cells())} cells open"
    if judgement is not None and judgement.estimate.interval is not None:
        unit = UNITS[measure.metric]
        low, high = judgement.estimate.interval.low, judgement.estimate.interval.high
        so_far = f"{format_value(judgement.estimate.median, unit)} [{format_value(low, unit)} - {format_value(high, unit)}]"
        detail = f"{measure.phase} {so_far}; {detail}"
    session.progress.update(cell.key, session.elapsed_s() / session.request.budget_s, detail)
