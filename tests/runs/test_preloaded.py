"""Preloaded libraries see the engine's calls and the placement of its ranks, and their errors are reported."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from runs.conftest import compiled
from runs.test_faults import marked
from runs.test_mpi import needs_mpi
from strakes.model.phases import Backend, MetadataPhase, StagePhase, TransferPhase
from strakes.model.plan import Plan
from strakes.runs.engine import Engine, LocalEngine
from strakes.runs.launch import Launch
from strakes.runs.mpi import MpiEngine
from strakes.targets.workspace import Workspace

KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("preloaded", tmp_path_factory.mktemp("preloaded"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return marked(tmp_path)


def moves(backend: Backend) -> Plan:
    files = {"layout": "file-per-process", "access": "segmented", "transfer_bytes": KIB, "block_bytes": 100 * KIB}
    return Plan(
        2,
        (
            TransferPhase("write", "write", **files, backend=backend),  # type: ignore[arg-type]
            TransferPhase("read", "read", **files, backend=backend, verify=True),  # type: ignore[arg-type]
            MetadataPhase("make", "file-create", "unique", 50, backend=backend),
            MetadataPhase("look", "file-stat", "unique", 50, backend=backend),
            MetadataPhase("remove", "file-remove", "unique", 50, backend=backend),
        ),
    )


def counts_of(backend: Backend, library: Path, place: Path, tmp_path: Path, patch: pytest.MonkeyPatch) -> list[int]:
    counts = tmp_path / "counts"
    counts.unlink(missing_ok=True)
    patch.setenv("LD_PRELOAD", str(library))
    patch.setenv("PRELOADED_COUNTS", str(counts))
    with LocalEngine() as engine:
        result = engine.run(moves(backend), place, "p1", 60)
    assert (result.ended, result.errors) == ("ok", ())
    assert {sample.effective["backend"] for sample in result.samples} == {backend}
    return [int(number) for number in counts.read_text().split()]


def test_a_preloaded_library_sees_every_call(
    library: Path, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, writes, opens, others, _, clashes = counts_of("posix", library, place, tmp_path, monkeypatch)
    assert (reads, writes, clashes) == (200, 200, 0) and opens >= 4 + 100 and others >= 200
    assert counts_of("raw", library, place, tmp_path, monkeypatch)[:2] == [0, 0]
    # The library may return its own descriptors.
    monkeypatch.setenv("PRELOADED_OWN", "1")
    assert counts_of("posix", library, place, tmp_path, monkeypatch)[:2] == [200, 200]
    assert [path.name for path in place.iterdir()] == [".strakes-marker"]


@needs_mpi
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="ranks that share a processor let each other have it")
def test_ranks_with_a_processor_each_do_not_sleep_while_they_gather(
    library: Path, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = tmp_path / "counts"
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("PRELOADED_COUNTS", str(counts))
    write = TransferPhase("write", "write", "shared-file", "segmented", 4 * MIB, 32 * MIB, writers=1, grouping="global")
    with MpiEngine(Launch("mpi", 2)) as engine:
        result = engine.run(Plan(2, (write,)), place, "p1", 60)
    assert (result.ended, result.samples[0].bytes) == ("ok", 64 * MIB)
    naps = [int(line.split()[4]) for line in counts.read_text().splitlines()]
    assert len(naps) >= 2 and sum(naps) == 0


@needs_mpi
def test_a_call_of_mpi_that_fails_ends_the_run_and_names_rank_and_call(
    library: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("PRELOADED_FAIL", "isend")
    monkeypatch.setenv("PRELOADED_RANK", "1")
    plan = Plan(
        3, (TransferPhase("write", "write", "shared-file", "segmented", KIB, 64 * KIB, writers=1, grouping="global"),)
    )
    began = time.monotonic()
    with MpiEngine(Launch("mpi", 3)) as engine:
        result = engine.run(plan, place, "p1", 120)
    assert time.monotonic() - began < 60 and result.ended != "ok"
    assert [error.where["rank"] for error in result.errors] == [1] and "MPI_Isend" in result.errors[0].why
    assert "The file system is not the cause" in result.errors[0].remedy


@needs_mpi
def test_a_plan_that_one_node_refuses_is_refused_and_the_node_is_named(
    library: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("dropping caches needs root")
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("PRELOADED_FAIL", "drop")
    monkeypatch.setenv("PRELOADED_RANK", "2")
    plan = Plan(
        3,
        (
            TransferPhase("write", "write", "shared-file", "segmented", KIB, 64 * KIB),
            StagePhase("stage", KIB, cache="drop-system"),
        ),
    )
    with MpiEngine(Launch("mpi", 3)) as engine:
        result = engine.run(plan, place, "p1", 60)
        assert result.ended == "refused" and [error.where["rank"] for error in result.errors] == [2]
        assert result.errors[0].where["key"] == "phases[1].cache"
        # The engine still accepts plans.
        assert engine.run(Plan(3, plan.phases[:1]), place, "p2", 60).ended == "ok"


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
        assert result.ended == "refused" and {error.where["key"] for error in result.errors} == {"team.processors"}
        assert "16383" in result.errors[0].what
