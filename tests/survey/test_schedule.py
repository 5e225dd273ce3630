"""The schedule of a survey: blocks in random order, no visits for answered questions, and resumption."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strakes.model.cell import Cell
from strakes.model.phases import TransferPhase
from strakes.model.plan import Phase
from strakes.studies.overview import Overview
from strakes.studies.replication_cost import ReplicationCost
from strakes.studies.study import Study
from strakes.survey.amounts import FEWEST_BLOCKS
from strakes.survey.schedule import MOST_RUNS, Schedule
from studies.world import cells_of, flat, stored, visits_of

FACTS = {"remote": False, "memory_bytes": 1 << 34}


def schedule(of: list[Cell], study: Study | None = None, precision: float = 0.1) -> Schedule:
    return Schedule(of, [study or Overview()], precision, seed=3, phase_s=0.1)


def test_a_block_visits_every_open_cell_once_in_an_order_that_changes() -> None:
    some = cells_of(Overview(), striping=None)
    plan = schedule(some)
    orders = []
    for block in range(1, 5):
        order = plan.next_block()
        orders.append(tuple(cell.key for cell in order))
        assert sorted(orders[-1]) == sorted(cell.key for cell in some)
        for visit in stored(visits_of(order, flat, 1, 0.5)):
            plan.record(replace(visit, block=block))
    assert len(set(orders)) == len(orders) and [cell.key for cell in schedule(some).next_block()] == list(orders[0])


def direct_is_fast(phase: Phase, ranks: int) -> float:
    return flat(phase, ranks) * (4.0 if isinstance(phase, TransferPhase) and phase.direct else 1.0)


def test_cells_of_answered_questions_are_not_visited_again() -> None:
    some = cells_of(Overview(), striping=None)
    plan = schedule(some)
    # At this noise the first look answers every question: O_DIRECT is faster, other settings are alike.
    visits = stored(visits_of(some, direct_is_fast, 6, 0.01))
    for visit in visits:
        plan.record(visit)
    assert len(plan.open_cells()) == len(some)
    plan.look(visits, 0.9, FACTS)
    assert plan.open_cells() == []


def test_undecided_cells_stay_open_until_the_maximum_number_of_runs() -> None:
    some = cells_of(Overview(), striping=None)
    plan = schedule(some)
    visits = stored(visits_of(some, flat, MOST_RUNS, 0.8))
    for visit in visits:
        plan.record(visit)
        plan.look(visits[: visit.visit], 0.9, FACTS)
    assert plan.open_cells() == []


def test_a_cell_without_a_question_is_open_until_it_is_precise() -> None:
    study = ReplicationCost()
    some = cells_of(study, striping=None)
    plans = [schedule(some, study, precision) for precision in (0.5, 0.001)]
    visits = stored(visits_of(some, flat, 6, 0.1))
    for plan in plans:
        for visit in visits:
            plan.record(visit)
        plan.look(visits, 0.9, FACTS)
    assert plans[0].open_cells() == [] and plans[1].open_cells() == some


def test_a_resumed_schedule_finishes_the_block_that_was_cut_short() -> None:
    some = cells_of(Overview(), striping=None)
    order = [cell.key for cell in schedule(some).next_block()]
    resumed = schedule(some)
    for visit in stored(visits_of([cell for cell in some if cell.key in order[:2]], flat, 1, 0.5)):
        resumed.record(visit)
    assert [cell.key for cell in resumed.next_block()] == order[2:]


def test_cells_that_cannot_get_enough_runs_are_dropped_least_important_first() -> None:
    some = [replace(cell, priority=1) for cell in cells_of(Overview(), striping=None)]
    some[-2:] = replace(some[-2], priority=2), replace(some[-1], priority=3)
    plan = schedule(some)
    assert [cell.key for cell in plan.fit(remaining_s=0.1)] == [some[-1].key, some[-2].key]
    assert len(plan.open_cells()) == len(some) - 2


@pytest.mark.parametrize("visit_s", [0.1, 1.0])
def test_only_cells_that_do_not_fit_are_dropped(visit_s: float) -> None:
    some = [replace(cell, priority=2) for cell in cells_of(Overview(), striping=None)]
    plan = schedule(some)
    for visit in stored(visits_of(some, flat, 1, 0.5)):
        plan.record(replace(visit, elapsed_s=visit_s))
    whole_s = plan.needed_s()
    assert whole_s == pytest.approx((FEWEST_BLOCKS - 1) * len(some) * visit_s) and plan.fit(whole_s) == []
    assert len(plan.fit(whole_s / 2)) == pytest.approx(len(some) / 2, abs=1)
