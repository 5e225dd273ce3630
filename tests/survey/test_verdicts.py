"""A study measures the verdicts that its budget allows, and names the budgets that the other verdicts need."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from strakes.model.cell import Cell
from strakes.studies.access_patterns import AccessPatterns
from strakes.studies.against import Against
from strakes.studies.open_close import OpenClose
from strakes.studies.study import Pilot, Study
from strakes.studies.transfer_size import TransferSize
from strakes.survey import choosing
from strakes.survey.amounts import FEWEST_BLOCKS, MEASURE_SHARE, WANTED_BLOCKS
from strakes.survey.schedule import Schedule
from strakes.survey.session import Session
from strakes.survey.verdicts import Verdict, budgets_of, larger_budgets, verdicts_of, visit_s
from studies.world import context, flat, stored, visits_of

FACTS = {"remote": False, "memory_bytes": 1 << 34}
PILOT = Pilot(1e9, 2e9, 1e5, 0.01)


def cells_of(*studies: Study) -> list[Cell]:
    return [one for study in studies for one in study.cells(context(full=True, striping=None)) if isinstance(one, Cell)]


def schedule(cells: list[Cell], *studies: Study) -> tuple[Schedule, dict[str, float]]:
    visits_s = dict.fromkeys((cell.key for cell in cells), 0.1)
    verdicts = verdicts_of(studies, cells, FACTS, visits_s, 1e6)
    return Schedule(cells, studies, 0.1, 3, 0.1, verdicts, visits_s), visits_s


def planned(*studies: Study, budget_s: float = 1e6, large: str = "") -> list[Verdict]:
    cells = cells_of(*studies)
    visits_s = {cell.key: 10.0 if cell.key == large else 0.1 for cell in cells}
    return verdicts_of(studies, cells, FACTS, visits_s, budget_s)


def test_every_study_has_a_first_verdict_before_second_ones_and_begins_with_its_extreme_levels() -> None:
    studies = (TransferSize(), OpenClose())
    verdicts = planned(*studies)
    assert [verdict.study for verdict in verdicts[:2]] == ["transfer-size", "open-close"]
    assert verdicts[0].cells == ("transfer-size/buffered/4096", "transfer-size/buffered/8388608")
    assert max(map(len, (verdict.cells for verdict in verdicts))) > 2
    assert next(index for index, verdict in enumerate(verdicts) if len(verdict.cells) > 2) >= 6


def test_an_expensive_level_does_not_prevent_the_verdict_on_the_others() -> None:
    large = "transfer-size/buffered/8388608"
    cells = [verdict.cells for verdict in planned(TransferSize(), budget_s=100.0, large=large)]
    ends = ("transfer-size/buffered/4096", "transfer-size/buffered/4194304")
    assert cells.index(ends) < cells.index((ends[0], large))


def test_verdicts_on_cells_of_a_higher_priority_come_first() -> None:
    cells = [replace(cell, priority=1 + ("direct" in cell.key)) for cell in cells_of(TransferSize())]
    visits_s = dict.fromkeys((cell.key for cell in cells), 0.1)
    ends = verdicts_of([TransferSize()], cells, FACTS, visits_s, 1e6)[:6]
    with_direct = [any("direct" in key for key in verdict.cells) for verdict in ends]
    assert with_direct == sorted(with_direct) and with_direct[0] < with_direct[-1]


def test_every_cell_has_a_verdict() -> None:
    for study in (TransferSize(), OpenClose(), AccessPatterns()):
        cells = cells_of(study)
        verdicts = planned(study)
        assert {key for verdict in verdicts for key in verdict.cells} == {cell.key for cell in cells}


def test_verdicts_that_fit_are_measured_and_the_others_are_named_with_their_budget() -> None:
    study = TransferSize()
    cells = cells_of(study)
    plan, visits_s = schedule(cells, study)
    plan.plan(4 * 0.1 * WANTED_BLOCKS)
    assert len(plan.open_cells()) == 4 and plan.needed_s(WANTED_BLOCKS) <= 4 * 0.1 * WANTED_BLOCKS + 1e-9
    verdicts = planned(study)
    budgets = budgets_of(verdicts, visits_s, prepared_s=20.0)
    # A question that was left out needs more than the budget of this run, which includes 20 s of preparation.
    left = [budget_s for index, budget_s in enumerate(budgets) if index not in plan.planned]
    assert min(left) > (20.0 + 4 * 0.1 * WANTED_BLOCKS) / MEASURE_SHARE
    assert budgets_of(verdicts, visits_s)[-1] > len(cells) * 0.1 * WANTED_BLOCKS
    option = larger_budgets(verdicts, budgets, set(range(len(verdicts))) - plan.planned)["transfer-size"]
    assert option.startswith("--budget ") and ", all --budget " in option
    plan.plan(1e6)
    assert plan.open_cells() == cells


def test_time_saved_by_an_early_verdict_goes_to_the_next() -> None:
    study = OpenClose()
    cells = cells_of(study)
    plan, _ = schedule(cells, study)
    left_s = 2 * 0.1 * WANTED_BLOCKS
    plan.plan(left_s)
    first = {cell.key for cell in plan.open_cells()}
    assert first == {"open-close/1", "open-close/256"}
    visits = stored(visits_of(plan.open_cells(), flat, 6, 0.01))
    for visit in visits:
        plan.record(visit)
    plan.look(visits, 0.9, FACTS)
    assert plan.open_cells() == []
    plan.plan(left_s - 6 * 2 * 0.1)
    assert plan.open_cells() and not first & {cell.key for cell in plan.open_cells()}


def test_slow_visits_put_off_the_last_verdict_and_not_the_first() -> None:
    study = TransferSize()
    cells = cells_of(study)
    plan, _ = schedule(cells, study)
    plan.plan(1e6)
    planned = set(plan.planned)
    plan.fit(4 * 0.1 * FEWEST_BLOCKS)
    assert plan.planned < planned and 0 in plan.planned
    plan.plan(0.1 * FEWEST_BLOCKS * len(cells))
    assert plan.planned == planned


def test_a_level_added_after_its_question_was_answered_still_lacks_runs() -> None:
    study = OpenClose()
    cells = cells_of(study)
    plan, _ = schedule(cells, study)
    plan.plan(1e6)
    visits = stored([*visits_of([cells[0], cells[-1]], flat, 6, 0.01), *visits_of(cells[1:-1], flat, 1, 0.01)])
    for visit in visits:
        plan.record(visit)
    plan.look(visits, 0.9, FACTS)
    assert plan.open_cells() == plan.lacking() == cells[1:-1]


def test_the_duration_of_a_visit_is_estimated_from_the_pilot_and_limited() -> None:
    cells = {cell.key: cell for cell in cells_of(TransferSize())}
    assert 0.1 < visit_s(cells["transfer-size/buffered/4096"], PILOT, 0.1) < 0.5
    assert visit_s(cells["transfer-size/buffered/4096"], Pilot(1e3, 1e3, 1.0), 0.1) < 1.0


def test_both_values_of_a_setting_are_measured_with_the_same_plans_and_compared_first() -> None:
    study = Against(OpenClose(), "vm.dirty_ratio", "2", "40")
    assert planned(study)[0].cells == ("A/open-close/1", "B/open-close/1")
    sides = cells_of(study)
    assert [cell.knobs["vm.dirty_ratio"] for cell in sides[:2]] == ["2", "40"]
    assert sides[0].plan == sides[1].plan and not sides[1].place.target


def test_slow_visits_lengthen_the_estimates_for_other_cells() -> None:
    study = OpenClose()
    cells = cells_of(study)
    plan, _ = schedule(cells, study)
    plan.plan(1e6)
    (visit,) = stored(visits_of(cells[:1], flat, 1, 0.01))
    plan.record(replace(visit, elapsed_s=1.0))
    assert plan.expected_s(cells[-1]) == pytest.approx(1.0)


def test_trials_that_take_longer_than_the_pilot_predicts_reduce_its_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = cells_of(TransferSize())
    asked: list[str] = []

    def slow(_: Session, cell: Cell, expected_s: float) -> SimpleNamespace:
        asked.append(cell.key)
        return SimpleNamespace(elapsed_s=PILOT.overhead_s + {1: 50.0, 2: 2.0, 3: 4.0}[len(asked)] * expected_s)

    monkeypatch.setattr(choosing, "_piloted", slow)
    at = replace(context(full=True, striping=None), pilot=PILOT)
    corrected = choosing._sustained(cast("Session", None), cells, at)
    assert corrected == replace(PILOT, write_bytes_per_s=1e9 / 4, read_bytes_per_s=2e9 / 4)
    assert len(asked) == 3 and all(key.startswith("pilot/") for key in asked)
