"""The part of a plan that remains if the engine lacks some of its backends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from strakes.base.errors import EnvironmentLacksError
from strakes.model.cell import Cell
from strakes.model.phases import MixedPhase, Part, StagePhase, StreamPhase, TransferPhase
from strakes.model.plan import Plan
from strakes.studies.plan_run import PlanRun
from strakes.studies.recovery import RecoveryStudy
from strakes.survey.choosing import refuse_all
from strakes.survey.lacking import reasons, without_absent
from studies.world import context

ABSENT = {"mpiio": {"why": "there is no MPI", "remedy": "Get one."}}


def transfer(name: str, operation: str, backend: str = "posix", **more: Any) -> TransferPhase:
    return TransferPhase(name, operation, "shared-file", "segmented", 4096, 4096, backend=backend, **more)  # type: ignore[arg-type]


def cell(*phases: Any) -> Cell:
    (found,) = PlanRun(Plan(4, phases)).cells(None)  # type: ignore[arg-type]
    assert isinstance(found, Cell)
    return found


def test_a_plan_of_available_interfaces_is_unchanged() -> None:
    whole = cell(transfer("w", "write"), transfer("r", "read"))
    assert without_absent([whole], ABSENT) == ([whole], [])


def test_a_phase_of_an_absent_interface_is_skipped_with_the_reason() -> None:
    (kept,), skipped = without_absent(
        [cell(transfer("w", "write"), transfer("r", "read", "mpiio"), transfer("p", "read"))], ABSENT
    )
    assert [phase.name for phase in kept.plan.phases] == ["w", "p"]
    assert [measure.phase for measure in kept.measures] == ["w", "p"]
    assert [(one.settings["phase"], one.reason) for one in skipped] == [("r", "mpiio: there is no MPI")]


def test_phases_that_need_files_of_a_skipped_phase_are_skipped_until_a_phase_writes_them() -> None:
    phases = (
        transfer("w", "write", "mpiio"),
        transfer("r", "read"),
        StagePhase("s", 4096),
        transfer("w2", "write"),
        transfer("r2", "read"),
    )
    assert list(reasons(Plan(4, phases), ABSENT)) == ["w", "r", "s"]


def test_a_mixed_phase_is_skipped_as_a_whole() -> None:
    parts = (Part(2, transfer("a", "write", "mpiio")), Part(2, StreamPhase("b", "write", 4096, 1)))
    assert without_absent([cell(MixedPhase("both", parts))], ABSENT)[0] == []


def test_recovery_without_libcephfs_is_refused_with_the_package_that_brings_it() -> None:
    why = {"why": "this engine was built without libcephfs", "remedy": "Install libcephfs-dev and build strakes again."}
    cells = [one for one in RecoveryStudy().cells(context(file_system="ceph")) if isinstance(one, Cell)]
    assert len(cells) > 1
    kept, skipped = without_absent(cells, {"cephfs": why})
    assert not kept
    session = SimpleNamespace(request=SimpleNamespace(directory="/mnt/ceph"))
    with pytest.raises(EnvironmentLacksError) as refused:
        refuse_all(session, skipped, {"cephfs": why})  # type: ignore[arg-type]
    assert refused.value.why == "cephfs: this engine was built without libcephfs"
    assert "libcephfs-dev" in refused.value.remedy
