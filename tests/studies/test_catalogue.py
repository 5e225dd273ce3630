"""Every study has valid and bounded plans and unique keys, and gives no advice for a flat file system."""

from __future__ import annotations

import pytest

from strakes.base.units import MIB
from strakes.model.plan_read import validate_plan_document
from strakes.studies.compose import WRITE_AND_READ
from strakes.studies.registry import studies, study_named
from strakes.studies.study import Study
from studies.world import answered, cells_of, context, flat, measured

each_study = pytest.mark.parametrize("study", studies(), ids=lambda study: study.name)


@each_study
@pytest.mark.parametrize("full", [False, True])
def test_every_plan_is_valid(study: Study, full: bool) -> None:
    cells = cells_of(study, full=full)
    assert cells
    for cell in cells:
        validate_plan_document(cell.plan.to_json())
        assert {measure.phase for measure in cell.measures} <= {phase.name for phase in cell.plan.phases}


@each_study
def test_keys_of_cells_and_ids_of_their_measures_are_unique(study: Study) -> None:
    cells = cells_of(study, full=True)
    keys = [cell.key for cell in cells]
    ids = [f"{cell.key}:{measure.suffix}" for cell in cells for measure in cell.measures]
    assert len(set(keys)) == len(keys) and len(set(ids)) == len(ids)
    assert all(cell.study == study.name for cell in cells_of(study))


def test_a_setting_of_both_a_cell_and_its_measure_is_refused() -> None:
    with pytest.raises(ValueError, match="measure write both set"):
        study_named("striping").cell(context(), "k", {"ranks": 1, "operation": "read"}, (), WRITE_AND_READ)


@each_study
def test_no_plan_exceeds_the_available_room(study: Study) -> None:
    for room in (4 * MIB, 64 * MIB):
        for cell in cells_of(study, max_bytes=room, max_items=2000):
            if study.name != "data-per-process":
                assert cell.plan.bytes_on_target() <= room, cell.key
            assert cell.plan.inodes_on_target() <= 2200, cell.key


@each_study
def test_a_flat_file_system_yields_figures_with_points_and_findings_with_evidence(study: Study) -> None:
    results = measured(study, flat)
    ids = {one.id for one in results.measured}
    for figure in study.figures(results):
        assert figure.series and {point.cell for series in figure.series for point in series.points} <= ids
    for finding in study.findings(results):
        assert set(finding.evidence) <= ids and "{" not in finding.statement
    questions = study.questions(results)
    assert len({question.id for question in questions}) == len(questions)
    assert {one for question in questions for option in question.options for one in option.measures} <= ids


@each_study
def test_settings_that_are_equal_are_never_called_different(study: Study) -> None:
    results = measured(study, flat)
    answers = answered(study, results)
    rates = {one.id: one.unit for one in results.measured}
    same = [answer for answer in answers.values() if rates[answer.measure] == "B/s"]
    assert [answer.id for answer in same if answer.grade in ("sure", "likely")] == []


@each_study
def test_too_few_runs_decide_nothing(study: Study) -> None:
    results = measured(study, flat, blocks=2)
    assert answered(study, results) == {}
    assert all(finding.verdict in ("inconclusive", "unknown") and finding.needs for finding in study.findings(results))
