"""The schedule: interleaved randomised blocks, cells that are done drop out, resumed runs go on where they stopped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strakes.findings.cell import Cell
from strakes.statistics.stopping import StoppingRule
from strakes.studies.processes_per_node import ProcessesPerNode
from strakes.studies.recovery import RecoveryStudy
from strakes.survey.schedule import Schedule
from studies.world import context, flat, stored, visits_of


def cells() -> list[Cell]:
    return [one for one in ProcessesPerNode().cells(context()) if isinstance(one, Cell)]


def schedule(of: list[Cell], precision: float = 0.1) -> Schedule:
    return Schedule(of, StoppingRule(0.9, precision), seed=3, phase_s=0.1, min_runs=5)


def test_a_block_visits_every_open_cell_once_in_an_order_that_changes() -> None:
    some = cells()
    plan = schedule(some)
    orders = []
    for block in range(1, 5):
        order = plan.next_block()
        orders.append(tuple(cell.key for cell in order))
        assert sorted(orders[-1]) == sorted(cell.key for cell in some)
        for visit in stored(visits_of(order, flat, 1, 0.5)):
            plan.record(replace(visit, block=block))
    assert len(set(orders)) > 1


def test_a_cell_with_a_number_of_visits_gets_them_spread_over_the_blocks_that_others_need() -> None:
    some = cells()
    few = replace(some[0], visits=3)
    plan = Schedule([few, *some[1:]], StoppingRule(0.9, 1e-6), seed=3, phase_s=0.1, min_runs=12)
    blocks = []
    for block in range(1, 16):
        order = plan.next_block()
        assert len(order) in (len(some), len(some) - 1)
        blocks += [block] * (few in order)
        for visit in stored(visits_of(order, flat, 1, 0.5)):
            plan.record(replace(visit, block=block))
    assert len(blocks) == few.visits
    assert blocks[0] == 1 and 7 <= blocks[-1] <= 12
    assert plan.finished(few.key)


def test_where_only_cells_with_a_number_of_visits_are_open_they_are_made_at_once() -> None:
    few = replace(cells()[0], visits=3)
    plan = Schedule([few], StoppingRule(0.9, 0.1), seed=3, phase_s=0.1, min_runs=12)
    for block in range(1, 4):
        assert plan.next_block() == [few]
        for visit in stored(visits_of([few], flat, 1, 0.5)):
            plan.record(replace(visit, block=block))
    assert plan.next_block() == []


def test_the_same_seed_gives_the_same_order() -> None:
    assert [cell.key for cell in schedule(cells()).next_block()] == [
        cell.key for cell in schedule(cells()).next_block()
    ]


def test_a_cell_whose_intervals_are_reached_is_not_visited_again() -> None:
    some = cells()
    plan = schedule(some)
    for visit in stored(visits_of(some[:1], flat, 6, 0.001)):
        plan.record(visit)
    assert some[0].key not in {cell.key for cell in plan.next_block()}


def test_a_visit_counts_once_for_each_of_several_measures_of_one_phase() -> None:
    some = [one for one in RecoveryStudy().cells(context()) if isinstance(one, Cell)]
    plan = schedule(some)
    for block, visit in enumerate(stored(visits_of(some, flat, 4, 0.001)), 1):
        plan.record(replace(visit, block=block))
    assert {plan.judge(some[0].key, measure.suffix).estimate.runs for measure in some[0].measures} == {4}  # type: ignore[union-attr]
    assert plan.open_cells() == some


def test_a_resumed_schedule_finishes_the_block_that_was_cut_short() -> None:
    some = cells()
    whole = schedule(some)
    order = [cell.key for cell in whole.next_block()]
    resumed = schedule(some)
    done = order[:2]
    for visit in stored(visits_of([cell for cell in some if cell.key in done], flat, 1, 0.5)):
        resumed.record(visit)
    assert [cell.key for cell in resumed.next_block()] == order[2:]


def test_cells_that_cannot_get_enough_runs_are_dropped_least_important_first() -> None:
    some = [replace(cell, priority=1) for cell in cells()]
    some[-1] = replace(some[-1], priority=3)
    some[-2] = replace(some[-2], priority=2)
    plan = schedule(some)
    assert [cell.key for cell in plan.fit(remaining_s=0.1)] == [some[-1].key, some[-2].key]
    assert len(plan.open_cells()) == len(some) - 2


def test_nothing_is_dropped_while_there_is_time() -> None:
    assert schedule(cells()).fit(remaining_s=1000.0) == []


@pytest.mark.parametrize("seconds", [5.0, 8.0, 15.0, 40.0])
@pytest.mark.parametrize("visit_s", [0.02, 0.05, 0.2])
def test_no_cell_stays_dropped_for_a_guess_while_time_is_left_to_measure_it(seconds: float, visit_s: float) -> None:
    """Runs the schedule on a clock of its own: what it leaves out would not have fitted into what it leaves over."""
    some = [replace(cell, priority=2) for cell in cells()]
    plan = schedule(some)
    left_s = seconds
    blocks: dict[str, set[int]] = {cell.key: set() for cell in some}
    while left_s > 0:
        plan.take_back(left_s)
        plan.fit(left_s)
        block = plan.next_block()
        if not block:
            break
        for cell in block:
            (visit,) = stored(visits_of([cell], flat, 1, 0.001))
            plan.record(replace(visit, block=plan.block, elapsed_s=visit_s))
            blocks[cell.key].add(plan.block)
            left_s -= visit_s
    measured = [key for key, seen in blocks.items() if len(seen) >= 5]
    if len(measured) < len(some):
        assert left_s < 5 * visit_s * len(some)
    else:
        # They are compared in blocks that measured both.
        assert len(set.intersection(*blocks.values())) >= 5


def test_cells_are_not_taken_back_before_any_visit_tells_how_long_they_take() -> None:
    plan = schedule([replace(cell, priority=2) for cell in cells()])
    assert plan.fit(remaining_s=0.1)
    assert plan.take_back(remaining_s=0.1) == []


def test_cells_that_are_taken_back_give_every_cell_more_runs_as_time_allows() -> None:
    """More statements share the error: with the same runs as before fewer of them could be decided."""
    some = [replace(cell, priority=2) for cell in cells()]
    plan = schedule(some)
    assert plan.fit(remaining_s=5.0)
    for visit in stored(visits_of(plan.next_block(), flat, 1, 0.001)):
        plan.record(replace(visit, block=1, elapsed_s=0.001))
    before_s, least_s = plan.needed_s(), plan.needed_s(least=True)
    assert plan.take_back(remaining_s=100.0)
    assert least_s == before_s and plan.needed_s(least=True) < plan.needed_s()
    runs = plan.needed_s() / sum(plan.expected_s(cell) for cell in plan.open_cells())
    assert before_s < plan.needed_s() <= 100.0
    assert runs > 5
