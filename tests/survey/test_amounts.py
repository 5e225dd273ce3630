"""Amounts of work follow from the budget or from options. If they do not fit, the error names amounts that do."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench.truth.noise import log_normal
from bench.truth.simulated import survey
from bench.truth.world import EQUAL
from hypothesis import given, settings
from hypothesis import strategies as st

from strakes.base.errors import BadInputError
from strakes.base.units import GIB, MIB, parse_bytes, parse_seconds
from strakes.model.cell import Cell
from strakes.model.phases import MetadataPhase, TransferPhase
from strakes.model.portrait import SkippedCell
from strakes.report.summary import render_summary
from strakes.runs.records import CellSkipped
from strakes.studies.data_per_process import DataPerProcess
from strakes.studies.metadata_ops import MetadataOps
from strakes.studies.registry import survey_studies
from strakes.studies.study import Context, Pilot
from strakes.studies.transfer_size import TransferSize
from strakes.survey.amounts import LONG_ENOUGH_S
from strakes.survey.analysis_build import study_portrait
from strakes.survey.analysis_warnings import dropped_cells
from strakes.survey.preparation import choose_cells, make_context, refuse_amounts
from survey.test_preparation import facts, request

ROOM = (64 * GIB, 10_000_000)
PILOT = Pilot(400.0 * MIB, 800.0 * MIB, 10_000.0, 0.01)


def chosen(pilot: Pilot = PILOT, **changes: Any) -> tuple[Context, list[Cell], list[SkippedCell]]:
    where = facts(remote=changes.pop("remote", False))
    asked = request(**{"studies": survey_studies(), **changes})
    context = make_context(asked, where, pilot, ROOM)
    return context, *choose_cells(asked, context)


@settings(deadline=None)
@given(
    budget_s=st.floats(10, 7200), rate=st.floats(10 * MIB, 5000 * MIB), creates=st.floats(50, 1e5), remote=st.booleans()
)
def test_cells_are_left_out_before_phases_become_too_short(
    budget_s: float, rate: float, creates: float, remote: bool
) -> None:
    context, cells, skipped = chosen(Pilot(rate, rate, creates, 0.01), budget_s=budget_s, remote=remote)
    least = {cell.priority for cell in cells} == {1}
    assert context.phase_s >= LONG_ENOUGH_S or least
    assert not any("fits here" in one.reason for one in skipped)  # there is room for every cell
    left_out = [one for one in skipped if "more important cells" in one.reason]
    assert left_out or context.least_priority == max(cell.priority for cell in cells)


@pytest.mark.parametrize(("write", "read", "creates"), [(150, 150, 900), (450, 500, 15_000), (2000, 3000, 40_000)])
def test_two_minutes_cover_every_question_on_a_usual_file_system(write: int, read: int, creates: int) -> None:
    pilot = Pilot(write * MIB, read * MIB, creates, 0.03, 2.0 * creates)
    context, cells, _ = chosen(pilot, budget_s=120.0)
    assert {cell.priority for cell in cells} == {1, 2} and context.phase_s >= LONG_ENOUGH_S


def test_the_report_states_how_many_cells_need_a_larger_budget(tmp_path: Path) -> None:
    run = survey(EQUAL, log_normal(0.05), 1, tmp_path, budget_s=20.0)
    waiting = sum("more important cells" in event.reason for event in run.events_of(CellSkipped))
    assert waiting
    measured, all_cells = len(run.cells) - len(dropped_cells(run)), len(run.cells) + waiting
    told = f"; {measured} of {all_cells} cells measured, the others need a larger --budget"
    assert told in study_portrait(run).scope


def test_a_level_that_was_left_out_is_measured_with_the_options_that_its_reason_names(tmp_path: Path) -> None:
    portrait = study_portrait(survey(EQUAL, log_normal(0.05), 1, tmp_path, 10.0, TransferSize()))
    skipped = next(one for one in portrait.skipped if "a comparison needs" in one.reason)
    assert skipped.reason in " ".join(render_summary(portrait, width=100, colour=False).split())
    named = re.search(r"a comparison needs --budget (\w+).* \(with --phase (\w+)\)$", skipped.reason)
    assert named
    budget_s, phase_s = map(parse_seconds, named.groups())
    again = study_portrait(survey(EQUAL, log_normal(0.05), 2, tmp_path, budget_s, TransferSize(), phase_s))
    measured = [cell for cell in again.cells if skipped.settings.items() <= cell.settings.items()]
    assert budget_s > 10 and measured and all(cell.runs >= 6 for cell in measured)


def test_data_per_rank_is_the_amount_of_each_rank() -> None:
    _, cells, _ = chosen(budget_s=7200.0, data_per_rank=GIB)
    moving = [cell for cell in cells if any(isinstance(phase, TransferPhase) for phase in cell.plan.phases)]
    assert {cell.plan.bytes_on_target() for cell in moving} == {2 * GIB}


def test_phases_are_long_enough_for_the_requested_data() -> None:
    asked = request(studies=(TransferSize(),), kind="study", full=True, budget_s=1e6, data_per_rank=4 * GIB)
    seconds = make_context(asked, facts(), PILOT, ROOM).stonewall().seconds
    assert seconds is not None and seconds > 2 * 4 * GIB / PILOT.write_bytes_per_s


def test_data_per_process_goes_up_to_the_requested_amount() -> None:
    context = Context(**{**vars(chosen()[0]), "full": True, "data_per_rank": 3 * GIB})
    levels = [cell.settings["data_bytes"] for cell in DataPerProcess().cells(context) if isinstance(cell, Cell)]
    assert levels[-1] == 3 * GIB and sorted(levels, key=float) == levels


@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_the_number_of_files_is_that_of_all_ranks_together(ranks: int) -> None:
    context = replace(chosen()[0], files=1000, most_ranks=ranks)
    for cell in MetadataOps().cells(context):
        assert isinstance(cell, Cell)
        create = next(phase for phase in cell.plan.phases if phase.name == "file-create")
        assert isinstance(create, MetadataPhase) and 1000 <= create.items * cell.plan.ranks < 1000 + cell.plan.ranks


@pytest.mark.parametrize("asked", [{"phase_s": 30.0}, {"data_per_rank": 16 * GIB}, {"files": 2_000_000}])
def test_amounts_beyond_the_budget_are_refused_with_a_budget_that_suffices(asked: dict[str, Any]) -> None:
    with pytest.raises(BadInputError) as caught:
        chosen(budget_s=60.0, **asked)
    budget_s = parse_seconds(caught.value.remedy.split("--budget ")[1].split(",")[0])
    context, cells, _ = chosen(budget_s=budget_s, **asked)
    assert cells and context.phase_s >= asked.get("phase_s", 1.0)


def test_more_data_than_the_available_room_is_refused_with_an_amount_that_fits() -> None:
    with pytest.raises(BadInputError, match="GiB is too large") as caught:
        chosen(budget_s=7200.0, data_per_rank=40 * GIB)
    assert "--data-per-rank 32GiB" in caught.value.remedy


def test_all_amounts_that_do_not_fit_are_reported_together_and_the_suggested_ones_fit() -> None:
    where = {key: value for key, value in facts().items() if key not in ("cpus", "memory_bytes")}
    asked = request(studies=survey_studies(), budget_s=120.0, data_per_rank=1 << 50, files=1 << 50, phase_s=7200.0)
    with pytest.raises(BadInputError, match="do not fit") as caught:
        refuse_amounts(asked, where, 2)
    said = {
        option: caught.value.remedy.split(f"{option} ")[1].split()[0].strip(".,")
        for option in ("--data-per-rank", "--files", "--budget")
    }
    data, files = parse_bytes(said["--data-per-rank"]), int(said["--files"])
    fitting = replace(asked, budget_s=parse_seconds(said["--budget"]), data_per_rank=data, files=files)
    refuse_amounts(fitting, where, 2)
    with pytest.raises(BadInputError):
        refuse_amounts(replace(fitting, files=files + 1), where, 2)
    with pytest.raises(BadInputError):
        refuse_amounts(replace(fitting, budget_s=0.9 * fitting.budget_s), where, 2)
