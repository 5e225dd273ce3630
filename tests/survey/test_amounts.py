"""How much is measured at a time: by the budget, or as asked for; what does not fit is refused with what would."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench.truth.__main__ import USUAL
from bench.truth.newest import truth_named
from bench.truth.noise import noise_named
from bench.truth.simulated import survey
from hypothesis import given, settings
from hypothesis import strategies as st

from strakes.analysis.build import study_portrait
from strakes.analysis.collect import ENOUGH_CELLS
from strakes.analysis.warnings import dropped_cells
from strakes.errors import BadInputError
from strakes.findings.cell import Cell
from strakes.findings.portrait import SkippedCell
from strakes.plan import MetadataPhase, TransferPhase
from strakes.store.records import CellSkipped
from strakes.studies.data_per_process import DataPerProcess
from strakes.studies.lasting import LastingRates, visit_s
from strakes.studies.metadata_ops import MetadataOps
from strakes.studies.registry import SURVEY
from strakes.studies.study import LASTING_S, Context, Pilot
from strakes.studies.transfer_size import TransferSize
from strakes.survey.amounts import LONG_ENOUGH_S, MEASURE_SHARE, long_enough_s
from strakes.survey.preparation import choose_cells, make_context, refuse_amounts, why_left_out
from strakes.units import GIB, MIB, parse_bytes, parse_seconds
from survey.test_preparation import facts, request

ROOM = (64 * GIB, 10_000_000)
PILOT = Pilot(400.0 * MIB, 800.0 * MIB, 10_000.0, 0.01)


def chosen(pilot: Pilot = PILOT, **changes: Any) -> tuple[Context, list[Cell], list[SkippedCell]]:
    where = facts(remote=changes.pop("remote", False))
    asked = request(**{"studies": SURVEY, **changes})
    context = make_context(asked, where, pilot, ROOM)
    return context, *choose_cells(asked, context)


def transfers(cells: list[Cell]) -> list[TransferPhase]:
    return [phase for cell in cells for phase in cell.plan.phases if isinstance(phase, TransferPhase)]


@settings(deadline=None)
@given(
    budget_s=st.floats(10, 7200),
    rate=st.floats(10 * MIB, 5000 * MIB),
    creates=st.floats(50, 1e5),
    remote=st.booleans(),
)
def test_cells_are_left_out_before_phases_become_too_short(
    budget_s: float, rate: float, creates: float, remote: bool
) -> None:
    context, cells, skipped = chosen(Pilot(rate, rate, creates, 0.01), budget_s=budget_s, remote=remote)
    lasting_s = sum(cell.visits * visit_s(cell, context.pilot) for cell in cells if cell.study == LastingRates.name)
    long_enough = long_enough_s("xfs", budget_s - lasting_s / MEASURE_SHARE, remote=remote)
    least = {cell.priority for cell in cells} == {1}
    assert context.phase_s >= long_enough or least
    left_out = [one for one in skipped if "a larger --budget measures it, too" in one.reason]
    assert left_out or context.least_priority == max(cell.priority for cell in cells)


# Writes and reads in MiB/s, creations per second: a disk, a solid state disk, a fast one, a loop device.
_USUAL = [(150, 150, 900), (450, 500, 15_000), (2000, 3000, 40_000), (250, 600, 18_000)]


@pytest.mark.parametrize("rates", _USUAL)
def test_with_a_larger_budget_phases_become_lasting_before_more_is_measured(rates: tuple[int, int, int]) -> None:
    write, read, creates = rates
    pilot = Pilot(write * MIB, read * MIB, creates, 0.03)
    planned = [chosen(pilot, budget_s=budget_s)[:2] for budget_s in (60.0, 120.0, 300.0, 600.0, 1800.0)]
    assert all(context.phase_s >= LASTING_S for context, _ in planned[3:])
    # Rates that last are those of the same work, where phases of that are shorter.
    numbers = [sum(cell.study != LastingRates.name for cell in cells) for _, cells in planned]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize(("times", "longer"), [(0.5, 1.0), (1.0, 1.0), (1.7, 1.7), (8.0, 2.0)])
def test_lasting_writes_take_longer_where_reads_of_what_they_wrote_would_be_too_short(
    times: float, longer: float
) -> None:
    rate = 400.0 * MIB
    context = replace(chosen()[0], pilot=Pilot(rate, times * rate, 1e4), phase_s=1.0)
    # Whole quarters of a power of two are a fifth less at most.
    assert 0.8 * longer <= context.amount_bytes(2) * 2 / rate <= longer


def test_a_short_budget_has_a_few_phases_that_last_for_what_is_told_first() -> None:
    for rates in _USUAL:
        write, read, creates = rates
        context, cells, _ = chosen(Pilot(write * MIB, read * MIB, creates, 0.03, 2.0 * creates), budget_s=120.0)
        assert context.phase_s < LASTING_S
        lasting = [cell for cell in cells if cell.study == LastingRates.name]
        assert {cell.key for cell in lasting} >= {
            "lasting-rates/buffered",
            "lasting-rates/names",
            "lasting-rates/crowd",
        }
        rate_of = {"write": write * MIB, "read": read * MIB, "file-create": creates, "file-remove": 2.0 * creates}
        for cell in lasting:
            assert cell.visits
            for phase in cell.plan.phases:
                assert isinstance(phase, TransferPhase | MetadataPhase)
                amount = phase.operations(cell.plan.ranks) * getattr(phase, "transfer_bytes", 1)
                # A third faster, it still lasts; and it ends, whatever the rate.
                assert amount / rate_of[phase.operation] >= 1.3 * LASTING_S
                assert LASTING_S < (phase.stop.seconds or 0.0) < 4.0 * LASTING_S
        # All of them together leave most of the time to what is compared.
        assert sum(cell.visits * visit_s(cell, context.pilot) for cell in lasting) <= 0.5 * MEASURE_SHARE * 120.0


@pytest.mark.parametrize("rates", _USUAL)
@pytest.mark.parametrize("budget_s", [20.0, 40.0, 60.0])
def test_a_short_budget_measures_fewer_studies_and_more_that_lasts(
    rates: tuple[int, int, int], budget_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, read, creates = rates
    pilot = Pilot(write * MIB, read * MIB, creates, 0.03, 2.0 * creates)
    context, cells, skipped = chosen(pilot, budget_s=budget_s)
    with monkeypatch.context() as patched:
        patched.setattr("strakes.survey.preparation.with_fewer_studies", lambda _, __, planned, ___: planned)
        before, all_cells, _ = chosen(pilot, budget_s=budget_s)
    if before.phase_s >= 0.5 * LONG_ENOUGH_S:
        assert context == before
        return
    assert len(cells) < len(all_cells)
    assert len(cells) >= ENOUGH_CELLS
    # Spare blocks take a fifth of what is long enough.
    assert context.phase_s >= 0.8 * 0.5 * LONG_ENOUGH_S
    lasting, lasting_before = (sum(len(cell.measures) for cell in some if cell.visits) for some in (cells, all_cells))
    assert budget_s < 40.0 or lasting > lasting_before
    # Names and data, and a study is whole or left out.
    assert len({isinstance(phase, MetadataPhase) for cell in cells for phase in cell.plan.phases}) == 2
    assert not {cell.part for cell in cells} & context.left_out
    assert {one.reason for one in skipped if one.study in context.left_out} == {why_left_out(context)}


@pytest.mark.parametrize("rates", _USUAL)
def test_two_minutes_leave_no_study_out(rates: tuple[int, int, int]) -> None:
    write, read, creates = rates
    context, _, _ = chosen(Pilot(write * MIB, read * MIB, creates, 0.03, 2.0 * creates), budget_s=120.0)
    assert not context.left_out


def test_where_all_phases_last_or_were_asked_for_none_are_measured_apart() -> None:
    for budget_s, phase_s in ((3600.0, None), (3600.0, 0.2)):
        _, cells, skipped = chosen(budget_s=budget_s, phase_s=phase_s)
        assert LastingRates.name not in {cell.study for cell in cells} | {left_out.study for left_out in skipped}


def test_the_head_of_the_report_tells_how_many_cells_wait_for_a_larger_budget(tmp_path: Path) -> None:
    run, _ = survey(truth_named("churn"), noise_named(USUAL), 1, SURVEY, tmp_path)
    waiting = sum("a larger --budget measures it, too" in event.reason for event in run.events_of(CellSkipped))
    assert waiting
    measured, all_cells = len(run.cells) - len(dropped_cells(run)), len(run.cells) + waiting
    told = f"; {measured} of {all_cells} cells measured, the others need a larger --budget; "
    assert told in study_portrait(run).scope


def test_the_largest_calls_are_several_or_are_left_out_with_the_option_that_measures_them() -> None:
    for rate in (20, 200, 2000, 20_000):
        _, cells, skipped = chosen(Pilot(rate * MIB, rate * MIB, 10_000.0))
        for phase in transfers([cell for cell in cells if cell.study == "transfer-size"]):
            assert phase.block_bytes >= 4 * phase.transfer_bytes
        for one in skipped:
            if one.study == "transfer-size" and one.settings.get("transfer_bytes") == 8 * MIB and "calls" in one.reason:
                assert "--data-per-rank 64MiB" in one.reason


def test_data_per_rank_is_what_every_rank_moves() -> None:
    _, cells, _ = chosen(budget_s=7200.0, data_per_rank=GIB)
    by_study = {study: transfers([cell for cell in cells if cell.study == study]) for study in ("transfer-size",)}
    assert {phase.block_bytes for phase in by_study["transfer-size"]} == {GIB}
    per_node = [cell for cell in cells if cell.study == "processes-per-node"]
    assert {cell.plan.ranks * phase.block_bytes for cell in per_node for phase in transfers([cell])} == {2 * GIB}


def test_phases_that_were_asked_for_are_long_enough_to_move_what_was_asked_for() -> None:
    asked = request(studies=(TransferSize(),), kind="study", full=True, budget_s=1e6, data_per_rank=4 * GIB)
    context = make_context(asked, facts(), PILOT, ROOM)
    seconds = context.stonewall().seconds
    assert seconds is not None
    assert seconds > 2 * 4 * GIB / PILOT.write_bytes_per_s


def test_data_per_process_goes_up_to_what_was_asked_for() -> None:
    context = Context(**{**vars(chosen()[0]), "full": True, "data_per_rank": 3 * GIB})
    levels = [cell.settings["data_bytes"] for cell in DataPerProcess().cells(context) if isinstance(cell, Cell)]
    assert levels[-1] == 3 * GIB
    assert sorted(levels, key=float) == levels


@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_files_are_those_of_all_ranks_together(ranks: int) -> None:
    context = replace(chosen()[0], files=1000, most_ranks=ranks)
    for cell in MetadataOps().cells(context):
        assert isinstance(cell, Cell)
        create = next(phase for phase in cell.plan.phases if phase.name == "file-create")
        assert isinstance(create, MetadataPhase)
        assert 1000 <= create.items * cell.plan.ranks < 1000 + cell.plan.ranks


@pytest.mark.parametrize("asked", [{"phase_s": 30.0}, {"data_per_rank": 16 * GIB}, {"files": 2_000_000}])
def test_amounts_beyond_the_budget_are_refused_with_a_budget_that_suffices(asked: dict[str, Any]) -> None:
    with pytest.raises(BadInputError) as caught:
        chosen(budget_s=60.0, **asked)
    budget_s = parse_seconds(caught.value.remedy.split("--budget ")[1].split(",")[0])
    context, cells, _ = chosen(budget_s=budget_s, **asked)
    assert cells
    assert context.phase_s >= asked.get("phase_s", 1.0)


def test_more_data_than_there_is_room_for_is_refused_with_what_fits() -> None:
    with pytest.raises(BadInputError, match="more than may be used here") as caught:
        chosen(budget_s=7200.0, data_per_rank=40 * GIB)
    assert "--data-per-rank 32GiB" in caught.value.remedy


def test_all_amounts_that_do_not_fit_are_told_at_once_and_what_is_told_fits() -> None:
    where = {key: value for key, value in facts().items() if key not in ("cpus", "memory_bytes")}
    asked = request(studies=SURVEY, budget_s=120.0, data_per_rank=1 << 50, files=1 << 50, phase_s=7200.0)
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


def test_amounts_are_part_of_what_a_run_is_resumed_by() -> None:
    assert request(data_per_rank=GIB).fingerprint() != request().fingerprint() != request(phase_s=1.0).fingerprint()
    assert request(files=9, phase_s=2.0).options()["phase_s"] == 2.0
