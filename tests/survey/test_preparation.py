"""Preparation before the first block: amounts that fit the target, the memory and the budget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench.truth.noise import log_normal
from bench.truth.simulated import SimulatedEngine, survey
from bench.truth.world import EQUAL
from hypothesis import given, settings
from hypothesis import strategies as st

from strakes.base.errors import BadInputError
from strakes.base.units import GIB, KIB, MIB
from strakes.model.cell import Cell
from strakes.model.phases import MetadataPhase, SmallFilesPhase
from strakes.model.plan import Plan
from strakes.model.record import from_record, to_record
from strakes.model.sample import Sample
from strakes.runs.messages import PlanResult
from strakes.runs.records import AmountsChosen
from strakes.studies.registry import studies, study_named
from strakes.studies.study import Pilot
from strakes.survey.amounts import LONG_ENOUGH_S
from strakes.survey.pilot import pilot_from_samples, pilot_plan, smallest_plan, with_write_back
from strakes.survey.preparation import CHOSEN_SHARE, FREE_SHARE, choose_cells, limits, make_context
from strakes.survey.request import Request


def facts(**changes: Any) -> dict[str, Any]:
    usual = {
        "path": "/scratch",
        "file_system": "xfs",
        "remote": False,
        "direct_io": True,
        "cpus": 2,
        "memory_bytes": 24 * GIB,
        "total_bytes": 200 * GIB,
        "free_bytes": 100 * GIB,
        "total_inodes": 10_000_000,
        "free_inodes": 9_000_000,
    }
    return {**usual, **changes}


def request(**changes: Any) -> Request:
    usual: dict[str, Any] = {
        "kind": "survey",
        "name": "survey",
        "directory": Path("/tmp"),
        "studies": studies(),
        "budget_s": 120.0,
        "confidence": 0.9,
        "relative_half_width": 0.1,
        "seed": 1,
        "command": "strakes survey /scratch",
    }
    return Request(**{**usual, **changes})


@given(free=st.integers(4 * MIB, 10**15), memory=st.integers(64 * MIB, 10**13), full=st.booleans())
def test_amounts_never_exceed_the_allowed_share_of_free_space(free: int, memory: int, full: bool) -> None:
    max_bytes, max_items = limits(facts(free_bytes=free), memory, full)
    assert max_bytes <= (FREE_SHARE if full else CHOSEN_SHARE) * free and max_items <= FREE_SHARE * 9_000_000


def test_a_file_system_in_memory_is_not_filled_with_the_memory() -> None:
    max_bytes, _ = limits(facts(file_system="tmpfs", free_bytes=24 * GIB), 20 * GIB, full=True)
    assert max_bytes <= 2 * GIB


def test_a_file_system_that_counts_no_inodes_or_bytes_is_not_full() -> None:
    assert limits(facts(file_system="btrfs", total_inodes=0, free_inodes=0), 8 * GIB, full=False)[1] > 1000
    assert limits(facts(total_bytes=0, free_bytes=0), 8 * GIB, full=False)[0] > MIB


@pytest.mark.parametrize(("lacking", "free"), [("bytes", 500 * KIB), ("inodes", 20)])
def test_too_little_room_is_refused_with_the_available_amount(lacking: str, free: int) -> None:
    with pytest.raises(BadInputError) as caught:
        limits(facts(**{f"free_{lacking}": free}), 8 * GIB, full=False)
    assert ("inodes" in caught.value.what, "20 inodes" in caught.value.why) == (lacking == "inodes",) * 2
    assert caught.value.remedy


@settings(deadline=None)
@given(
    budget_s=st.floats(5, 3600),
    rate=st.floats(1 * MIB, 50_000 * MIB),
    creates=st.floats(5, 1e6),
    room=st.integers(1 * MIB, 10**12),
)
def test_on_any_target_every_cell_fits(budget_s: float, rate: float, creates: float, room: int) -> None:
    asked = request(budget_s=budget_s)
    context = make_context(asked, facts(), Pilot(rate, rate, creates), (room, 100_000))
    many = replace(context, most_ranks=4096, max_bytes=1 << 50, max_items=1 << 30, least_priority=9)
    for cell in choose_cells(asked, many)[0]:
        assert all(ranks * getattr(phase, "transfer_bytes", 0) <= GIB for phase, ranks in cell.plan.each())
    cells, skipped = choose_cells(asked, context)
    assert cells and all(cell.plan.bytes_on_target() <= room for cell in cells)
    assert all(one.reason for one in skipped)


def test_a_larger_budget_gives_longer_phases() -> None:
    pilot = Pilot(1000.0 * MIB, 1000.0 * MIB, 50_000.0)
    short, long = (
        make_context(request(budget_s=budget_s), facts(), pilot, (GIB, 100_000)).phase_s for budget_s in (30.0, 600.0)
    )
    assert long > 5 * short


def test_small_files_of_many_ranks_that_need_more_memory_than_is_available_are_refused() -> None:
    units = SmallFilesPhase("fill", "accumulate", 1, 9, files_per_rank=1, write_unit_bytes=GIB)
    context = make_context(request(), facts(), Pilot(1e8, 1e8, 1e3), (GIB, 100_000))
    assert "needs 4 GiB of memory" in context.why_too_large(Plan(4096, (units,)), 5 * GIB - 1)
    assert not context.why_too_large(Plan(4096, (units,)), 6 * GIB)


def test_a_cell_survives_the_store() -> None:
    cells, _ = choose_cells(request(), make_context(request(), facts(), Pilot(1e9, 1e9, 1e5), (GIB, 100_000)))
    for cell in cells:
        assert from_record(Cell, to_record(cell)) == cell


def test_the_pilot_is_small_on_a_small_target() -> None:
    plan = pilot_plan(2, max_bytes=MIB, max_items=64, seconds=0.1, seed=1)
    assert plan.bytes_on_target() <= MIB and plan.inodes_on_target() <= 100
    assert 4096 * pilot_plan(4096, 1 << 40, 1 << 20, 0.1, 1).phases[0].transfer_bytes <= GIB  # type: ignore[union-attr]


@pytest.mark.parametrize("case", ["growing with the amount", "one small visit"])
def test_costs_that_are_not_fixed_for_each_visit_do_not_make_phases_shorter(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pilot moves far more data than a later phase, so its removal takes longer in proportion."""
    answer = SimulatedEngine.run
    small: list[Plan] = []

    def delayed(engine: SimulatedEngine, plan: Plan, *given: Any, **options: Any) -> PlanResult:
        result = answer(engine, plan, *given, **options)
        # A sleep advances the simulated clock.
        if case == "growing with the amount":
            engine._clock.sleep(0.3 * sum(sample.elapsed_s for sample in result.samples))
        elif plan == smallest_plan(plan.ranks, 1):
            engine._clock.sleep(0.0 if small else 0.5)
            small.append(plan)
        return result

    usual = survey(EQUAL, log_normal(0.05), 1, tmp_path / "usual")
    monkeypatch.setattr(SimulatedEngine, "run", delayed)
    slow = survey(EQUAL, log_normal(0.05), 1, tmp_path / "slow")
    lengths = [run.events_of(AmountsChosen)[0].phase_s for run in (usual, slow)]
    assert lengths[1] > 0.9 * lengths[0] and bool(small) == (case == "one small visit")
    assert lengths[1] >= LONG_ENOUGH_S or small


def test_a_device_that_takes_long_to_write_files_back_gets_fewer_of_them() -> None:
    pilot = Pilot(1000.0 * MIB, 1000.0 * MIB, 100_000.0)
    assert with_write_back(pilot, 40_000, 0.0).creates_per_s == pilot.creates_per_s
    assert with_write_back(pilot, 40_000, 11.6).creates_per_s == pytest.approx(40_000 / 12)


def test_a_pilot_that_did_nothing_in_time_still_gives_rates() -> None:
    pilot = pilot_from_samples([Sample("write"), Sample("read"), Sample("create"), Sample("remove")])
    assert pilot.write_bytes_per_s > 0 and pilot.creates_per_s > 0


def test_the_fingerprint_depends_on_amounts_and_not_on_budget_and_seed() -> None:
    def fingerprint(directory: str = "/tmp", **changes: float) -> str:
        return request(directory=Path(directory), **changes).fingerprint()

    assert fingerprint() == fingerprint(budget_s=60.0, seed=9)
    others = (fingerprint(confidence=0.95), fingerprint("/"), fingerprint(data_per_rank=GIB), fingerprint(phase_s=1.0))
    assert len({fingerprint(), *others}) == 5


def test_only_plans_with_metadata_alone_go_through_libcephfs() -> None:
    asked = request(libcephfs=True)
    cells, _ = choose_cells(asked, make_context(asked, facts(), Pilot(1e9, 1e9, 1e5), (GIB, 100_000)))
    inside = {cell.study for cell in cells if cell.plan.inside_ceph()}
    assert {"metadata-ops", "open-close"} <= inside
    assert not inside & {"transfer-size", "stream", "small-files"} and not Plan(1, ()).inside_ceph()
    names = [cell for cell in cells if all(isinstance(phase, MetadataPhase) for phase in cell.plan.phases)]
    # libcephfs cannot create files with fsync, the only operation of the study replication-cost.
    assert {cell.study for cell in names} - inside <= {"replication-cost"}
    assert asked.fingerprint() != request().fingerprint()


def test_libcephfs_is_refused_if_no_plan_would_use_it() -> None:
    asked = request(libcephfs=True, studies=(study_named("client-scaling"),))
    with pytest.raises(BadInputError, match="--libcephfs would have no effect on client-scaling"):
        choose_cells(asked, make_context(asked, facts(), Pilot(1e9, 1e9, 1e5), (GIB, 100_000)))
