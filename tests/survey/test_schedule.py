"""The schedule: interleaved randomised blocks, cells that are done drop out, resumed runs go on where they stopped."""

from __future__ import annotations

from dataclasses import replace

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
