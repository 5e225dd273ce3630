"""MPI-IO, HDF5 and PnetCDF backends with ranks as processes: transfers, errors, cancellation and killed ranks."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from mounts import tmpfs_mounted
from runs.conftest import once
from runs.test_mpi import pid_of
from strakes.base.errors import EnvironmentLacksError
from strakes.model.phases import ProbePhase, Stop, TransferPhase
from strakes.model.plan import Plan
from strakes.runs.engine import LocalEngine
from strakes.runs.launch import Launch
from strakes.runs.messages import PlanResult, Progress
from strakes.runs.mpi import MpiEngine, find_mpiexec
from strakes.runs.mpi_family import find_mpi_engine
from strakes.targets.workspace import Workspace

pytestmark = pytest.mark.more

KIB = 1 << 10
RANKS = 4
Backend = Literal["mpiio", "hdf5", "pnetcdf"]
Way = tuple[Backend, str]
# Backend and mpiexec. MPICH has ROMIO for MPI-IO, Open MPI has OMPIO.
WAYS: list[Way] = [
    ("mpiio", "mpiexec"),
    ("mpiio", "mpiexec.openmpi"),
    ("hdf5", "mpiexec.openmpi"),
    ("pnetcdf", "mpiexec.openmpi"),
]
SHAPES = [
    ("file-per-process", "segmented"),
    ("file-per-process", "random"),
    ("shared-file", "segmented"),
    ("shared-file", "strided"),
    ("shared-file", "random"),
]
# A pause of 1.1 s, during which the test changes files.
PAUSE = ProbePhase("pause", "file-stat", rate_per_s=2.0, seconds=1.1)
ALL_BYTES = RANKS * 4 * 64 * KIB


def of(
    way: Way, name: str, operation: str, layout: str = "shared-file", access: str = "segmented", **more: object
) -> TransferPhase:
    sizes = {"transfer_bytes": 16 * KIB, "block_bytes": 64 * KIB, "segments": 4, "backend": way[0]}
    return TransferPhase(name, operation, layout, access, **{**sizes, **more})  # type: ignore[arg-type]


@contextmanager
def started_engines() -> Iterator[Callable[[Way], MpiEngine]]:
    """Yield a function that returns the engine for an mpiexec, and starts it at the first call.

    The function skips the test if the engine lacks the backend.
    """
    with ExitStack() as stack:
        started: dict[str, MpiEngine] = {}

        def engine_of(way: Way) -> MpiEngine:
            if way[1] not in started:
                started[way[1]] = stack.enter_context(new_engine(way))
            return with_backend(started[way[1]], way)

        yield engine_of


@pytest.fixture(scope="module")
def engines() -> Iterator[Callable[[Way], MpiEngine]]:
    with started_engines() as engines:
        yield engines


def with_backend(engine: MpiEngine, way: Way) -> MpiEngine:
    if why := engine.start().absent.get(way[0]):
        pytest.skip(why["why"])
    return engine


def new_engine(way: Way) -> MpiEngine:
    found = None if way[1] == "mpiexec" else shutil.which(way[1])
    try:
        if way[1] != "mpiexec" and found is None:
            pytest.skip(f"{way[1]} is not installed")
        mpiexec = find_mpiexec(Path(found) if found else None)
        find_mpi_engine(mpiexec)
    except EnvironmentLacksError as error:
        pytest.skip(f"{error.what}: {error.why}")
    return MpiEngine(Launch("mpi", RANKS, mpiexec=mpiexec))


@pytest.fixture(params=WAYS, ids=lambda way: f"{way[0]}-{'openmpi' if 'openmpi' in way[1] else 'mpich'}")
def way(request: pytest.FixtureRequest) -> Way:
    chosen: Way = request.param
    return chosen


@pytest.fixture
def engine(engines: Callable[[Way], MpiEngine], way: Way) -> MpiEngine:
    return engines(way)


def in_pause(act: Callable[[], object]) -> Callable[[Progress], None]:
    return once(act, lambda progress: progress.name == "pause")


def effective(result: PlanResult, phase: str) -> dict[str, Any]:
    return dict(next(one.effective for one in result.samples if one.name == phase))


def check_usable(engine: MpiEngine, way: Way, directory: Path) -> None:
    pid = engine.start().pid
    plan = Plan(RANKS, (of(way, "w", "write", collective=True), of(way, "r", "read", collective=True, verify=True)))
    result = engine.run(plan, directory, "after", 60)
    assert (result.ended, result.errors, engine.start().pid) == ("ok", (), pid)


@pytest.mark.parametrize("collective", [False, True], ids=["independent", "collective"])
def test_written_data_is_read_back_in_every_layout_and_access(
    engine: MpiEngine, way: Way, workspace: Workspace, collective: bool
) -> None:
    for layout, access in SHAPES:
        phases = [
            of(way, "w", "write", layout, access, collective=collective, sync="fsync"),
            of(way, "r", "read", layout, access, collective=collective, verify=True, cache="drop"),
            of(way, "again", "rewrite", layout, access, collective=collective, time_open=False),
            of(way, "shifted", "read", layout, access, collective=collective, verify=True, rank_shift=1, sync="none"),
            of(
                way, "other", "read", layout, access, collective=not collective, verify=True, stop=Stop("seconds", 0.01)
            ),
        ]
        if not collective:
            phases.append(of(way, "m", "mixed", layout, access, verify=True, read_percent=40))
        result = engine.run(Plan(RANKS, tuple(phases)), workspace.path, "c", 120)
        assert (result.ended, result.errors, result.cleaned) == ("ok", (), True), (layout, access)
        assert [sample.operations for sample in result.samples[:4]] == [RANKS * 16] * 4
        assert [effective(result, name)["verified_bytes"] for name in ("r", "shifted")] == [ALL_BYTES] * 2
        assert effective(result, "w")["collective"] == collective and result.samples[4].stopped_by == "seconds"


def test_every_rank_reads_the_whole_file(engine: MpiEngine, way: Way, workspace: Workspace) -> None:
    reads = [
        of(way, f"r{collective:d}", "read", access="whole", collective=collective, verify=True)
        for collective in (False, True)
    ]
    result = engine.run(Plan(RANKS, (of(way, "w", "write"), *reads)), workspace.path, "c", 60)
    assert (result.ended, result.errors) == ("ok", ())
    assert [sample.bytes for sample in result.samples] == [ALL_BYTES, RANKS * ALL_BYTES, RANKS * ALL_BYTES]


def test_hdf5_reads_what_it_stored_in_chunks(engines: Callable[[Way], MpiEngine], workspace: Workspace) -> None:
    way: Way = ("hdf5", "mpiexec.openmpi")
    engine = engines(way)
    for collective in (False, True):
        write = of(way, "w", "write", access="strided", chunk_bytes=24 * KIB, collective=collective, sync="fsync")
        read = of(way, "r", "read", access="strided", collective=not collective, verify=True, rank_shift=1)
        result = engine.run(Plan(RANKS, (write, read)), workspace.path, "c", 60)
        assert (result.ended, result.errors) == ("ok", ()) and effective(result, "r")["verified_bytes"] == ALL_BYTES


def kept_files(engine: LocalEngine | MpiEngine, plan: Plan, directory: Path, name: str) -> dict[str, bytes]:
    result = engine.run(plan, directory, name, 60, keep=True)
    assert (result.ended, result.errors) == ("ok", ())
    return {path.name: path.read_bytes() for path in (directory / name).iterdir()}


def test_mpiio_leaves_the_bytes_that_posix_leaves(engines: Callable[[Way], MpiEngine], workspace: Workspace) -> None:
    for way in (one for one in WAYS if one[0] == "mpiio"):
        engine = engines(way)
        for layout, access in SHAPES:
            by_posix: Way = ("posix", "")  # type: ignore[assignment]
            expected = kept_files(
                engine, Plan(RANKS, (of(by_posix, "w", "write", layout, access),)), workspace.path, "p"
            )
            shutil.rmtree(workspace.path / "p")
            write = of(way, "w", "write", layout, access, collective=layout == "shared-file")
            # The data written depend on the directory and the name, so both are the same here.
            assert kept_files(engine, Plan(RANKS, (write,)), workspace.path, "p") == expected
            shutil.rmtree(workspace.path / "p")


@pytest.mark.parametrize("collective", [False, True], ids=["independent", "collective"])
def test_a_write_that_ran_out_of_time_is_read_back_by_collective_calls(
    engine: MpiEngine, way: Way, workspace: Workspace, collective: bool
) -> None:
    late = Stop("stonewall", 0.1 if collective else 0.03)
    write = of(way, "w", "write", segments=100_000, collective=collective, stop=late)
    read = of(way, "r", "read", segments=100_000, collective=True, verify=True)
    result = engine.run(Plan(RANKS, (write, read)), workspace.path, "s", 120)
    assert (result.ended, result.errors, result.samples[0].stopped_by) == ("ok", (), "seconds")
    written, read_back = ([row[4] for row in sample.ranks] for sample in result.samples)
    assert written == read_back and (len(set(written)) == 1 or not collective)
    assert 0 < result.samples[0].bytes == result.samples[1].bytes == effective(result, "r")["verified_bytes"]


def test_a_cancelled_collective_phase_ends_in_order(engine: MpiEngine, way: Way, workspace: Workspace) -> None:
    endless = of(way, "w", "write", collective=True, stop=Stop("seconds", 3600.0))
    # Cancel only once: after a second cancel the engine is not given time to end in order.
    result = engine.run(Plan(RANKS, (endless,)), workspace.path, "c", 3600, once(engine.cancel))
    assert (result.ended, result.errors, result.cleaned) == ("cancelled", (), True)
    check_usable(engine, way, workspace.path)


def test_the_hints_in_effect_are_reported_and_ignored_hints_are_named(
    engine: MpiEngine, way: Way, workspace: Workspace
) -> None:
    asked = (("cb_buffer_size", "1048576"), ("no_such_hint", "1"))
    result = engine.run(Plan(RANKS, (of(way, "w", "write", collective=True, hints=asked),)), workspace.path, "h", 60)
    assert (result.ended, result.errors) == ("ok", ())
    told = effective(result, "w")
    wanted = {name: [value, told["hints"].get(name, "")] for name, value in asked if told["hints"].get(name) != value}
    assert told["hints_not_in_effect"] == wanted
    if way == WAYS[0]:
        assert told["hints"]["cb_buffer_size"] == "1048576" and list(wanted) == ["no_such_hint"]


@pytest.mark.parametrize(
    "collective", [pytest.param(False, marks=pytest.mark.long), True], ids=["independent", "collective"]
)
def test_wrong_data_are_found(engine: MpiEngine, way: Way, workspace: Workspace, collective: bool) -> None:
    def corrupt() -> None:
        path = workspace.path / "x" / "data.data"
        with path.open("r+b") as file:
            file.seek(path.stat().st_size // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 0x40]))

    phases = (of(way, "w", "write", sync="fsync"), PAUSE, of(way, "r", "read", collective=collective, verify=True))
    result = engine.run(Plan(RANKS, phases), workspace.path, "x", 60, in_pause(corrupt))
    assert result.ended == "failed"
    assert [error.what for error in result.errors] == ["the data read are not the data written"]
    assert result.errors[0].where["path"] == "x/data.data" and result.cleaned
    check_usable(engine, way, workspace.path)


@pytest.mark.parametrize("layout", ["shared-file", pytest.param("file-per-process", marks=pytest.mark.long)])
def test_a_missing_file_is_reported_and_no_rank_waits_for_the_ranks_that_miss_it(
    engine: MpiEngine, way: Way, workspace: Workspace, layout: str
) -> None:
    def remove() -> None:
        for path in (workspace.path / "x").glob("data*.data"):
            path.unlink()

    phases = (of(way, "w", "write", layout), PAUSE, of(way, "r", "read", layout, collective=True))
    result = engine.run(Plan(RANKS, phases), workspace.path, "x", 60, in_pause(remove))
    assert result.ended == "failed"
    # Open MPI hides errors of a collective open, so each rank first opens the file itself and reports its own error.
    alone = layout != "shared-file" or way[1] == "mpiexec.openmpi"
    assert {error.where["rank"] for error in result.errors} == (set(range(RANKS)) if alone else {0})
    assert all(error.errno == "ENOENT" and error.why and error.remedy for error in result.errors)
    assert result.samples[-1].name == "r"
    check_usable(engine, way, workspace.path)


@pytest.mark.parametrize("layout", ["shared-file", pytest.param("file-per-process", marks=pytest.mark.long)])
def test_a_full_file_system_fails_the_phase_even_if_the_library_hides_the_error(way: Way, layout: str) -> None:
    log: list[str] = []
    with (
        tmpfs_mounted("4m") as place,
        Workspace.create(place, "20260101-000000-test-0000") as workspace,
        new_engine(way) as engine,
    ):
        engine._hear = log.append  # type: ignore[assignment]
        with_backend(engine, way)
        for collective in (False, True):
            write = of(
                way,
                "w",
                "write",
                layout,
                transfer_bytes=256 * KIB,
                block_bytes=2048 * KIB,
                collective=collective,
                sync="fsync",
            )
            result = engine.run(Plan(RANKS, (write, of(way, "never", "read", layout))), workspace.path, "f", 60)
            assert result.ended == "failed"
            assert [sample.name for sample in result.samples] == ["w"], result.errors
            for error in result.errors:
                assert error.where["rank"] in range(RANKS) and str(error.where["path"]).startswith("f/data")
                assert error.errno == "ENOSPC" and error.why and error.remedy
            assert result.cleaned
        check_usable(engine, way, workspace.path)
    # HDF5 crashes at exit if it could not close a file.
    assert not any("was ended by signal" in line for line in log), log


@pytest.mark.parametrize("way", [WAYS[0], WAYS[2]], ids=["mpiio-mpich", "hdf5-openmpi"], indirect=True)
def test_a_rank_killed_in_collective_calls_is_named_and_the_run_ends(way: Way, workspace: Workspace) -> None:
    with new_engine(way) as engine:
        with_backend(engine, way)
        victim = pid_of(engine, 2)
        endless = of(way, "w", "write", collective=True, stop=Stop("seconds", 3600.0))
        result = engine.run(
            Plan(RANKS, (endless,)), workspace.path, "k", 3600, once(lambda: os.kill(victim, signal.SIGKILL))
        )
        assert result.ended in ("failed", "died", "limit") and {error.where["rank"] for error in result.errors} == {2}
        assert (result.cleaned, result.left) == (True, ())


def test_a_backend_that_needs_processes_refuses_ranks_that_are_threads(workspace: Workspace) -> None:
    with LocalEngine() as engine:
        for backend in ("mpiio", "hdf5", "pnetcdf"):
            result = engine.run(Plan(2, (of((backend, ""), "w", "write"),)), workspace.path, "t", 60)
            assert (result.ended, result.errors[0].where["key"]) == ("refused", "phases[0].backend")
            assert "ranks that are processes" in result.errors[0].what and "--launcher mpi" in result.errors[0].remedy
