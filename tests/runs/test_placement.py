"""Ranks run on the processors of the plan, with buffers in its kind of pages; a preloaded library observes both."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from runs.conftest import compiled
from runs.test_mpi import needs_mpi
from strakes.base.units import KIB
from strakes.model.phases import TransferPhase
from strakes.model.plan import Plan
from strakes.runs.engine import Engine
from strakes.runs.launch import Launch
from strakes.runs.mpi import MpiEngine
from strakes.targets.workspace import Workspace

PLAN = Plan(2, (TransferPhase("write", "write", "file-per-process", "segmented", 64 * KIB, 256 * KIB),))
HERE = sorted(os.sched_getaffinity(0))


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Preload a library into later engines; return the file to which it writes the placement of each rank."""
    file = tmp_path / "told"
    monkeypatch.setenv("LD_PRELOAD", str(compiled("placed_writes", tmp_path)))
    monkeypatch.setenv("PLACED_WRITES", str(file))
    return file


def places(engine: Engine, plan: Plan, folder: Path, told: Path) -> list[str]:
    """Run the plan; return the allowed processors of each rank, sorted."""
    told.write_text("")
    with Workspace.create(folder, "placed") as workspace:
        result = engine.run(plan, workspace.path, "p", limit_s=60)
    assert (result.ended, result.errors) == ("ok", ())
    return sorted(line.split()[0] for line in told.read_text().splitlines())


@needs_mpi
def test_processes_keep_to_their_processors_for_one_plan(told: Path, tmp_path: Path) -> None:
    ends = [str(HERE[0]), str(HERE[-1])]
    with MpiEngine(Launch("mpi", 2)) as engine:
        before = places(engine, PLAN, tmp_path, told)
        assert places(engine, replace(PLAN, processors=",".join(ends)), tmp_path, told) == sorted(ends)
        assert places(engine, PLAN, tmp_path, told) == before


@needs_mpi
def test_a_missing_processor_is_refused_by_every_process(tmp_path: Path) -> None:
    with MpiEngine(Launch("mpi", 2)) as engine, Workspace.create(tmp_path, "placed") as workspace:
        result = engine.run(replace(PLAN, processors="0,16383"), workspace.path, "p", limit_s=60)
        assert result.ended == "refused"
        assert {error.where["key"] for error in result.errors} == {"team.processors"}
        assert "16383" in result.errors[0].what
