"""Errors of open and close on some ranks: only these ranks report them, nothing hangs, and no files are left."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mounts import FaultyMount, faulty_mounted
from runs.test_backends_by_mpi import KIB, PAUSE, RANKS, WAYS, Way, check_usable, in_pause, of, started_engines
from runs.test_mpi import pid_of
from strakes.model.plan import Plan
from strakes.runs.messages import PlanResult
from strakes.runs.mpi import MpiEngine
from strakes.targets.workspace import Workspace

pytestmark = pytest.mark.more

POSIX: Way = ("posix", "mpiexec")  # type: ignore[assignment]
# These backends open files as posix does.
LIKE_POSIX = [pytest.param((backend, "mpiexec"), marks=pytest.mark.long) for backend in ("stdio", "mmap", "uring")]
OPENS = {"open", "MPI_File_open", "H5Fcreate", "H5Fopen", "ncmpi_create", "ncmpi_open"}


@pytest.fixture(scope="module")
def faulty() -> Iterator[FaultyMount]:
    with faulty_mounted() as mount:
        yield mount


@pytest.fixture(scope="module")
def engines(faulty: FaultyMount) -> Iterator[Callable[[Way], MpiEngine]]:
    """Return engines that end before the unmount, because libraries keep files open that they failed to close."""
    with started_engines() as engines:
        yield engines


@pytest.fixture
def workspace(faulty: FaultyMount) -> Iterator[Workspace]:
    with Workspace.create(faulty.place, "20260101-000000-test-0000") as workspace:
        yield workspace


@pytest.fixture(
    params=[*WAYS, POSIX, *LIKE_POSIX], ids=lambda way: f"{way[0]}-{'openmpi' if 'openmpi' in way[1] else 'mpich'}"
)
def way(request: pytest.FixtureRequest) -> Way:
    chosen: Way = request.param
    return chosen


def check_told(result: PlanResult, ranks: set[int], operations: set[str], number: int) -> None:
    assert result.ended == "failed" and {error.where["rank"] for error in result.errors} == ranks
    for error in result.errors:
        assert (error.where["phase"], error.where["path"]) == ("x", "p/data.data")
        assert error.where["operation"] in operations and error.errno == errno.errorcode[number]
        assert os.strerror(number) in error.why and error.remedy
    assert result.samples[-1].name == "x" and (result.cleaned, result.left) == (True, ())


@pytest.mark.parametrize("unlucky", [{0}, {2, 3}], ids=["first", "last-two"])
def test_ranks_that_cannot_open_a_new_file_report_it(
    engines: Callable[[Way], MpiEngine], way: Way, faulty: FaultyMount, workspace: Workspace, unlucky: set[int]
) -> None:
    engine = engines(way)
    faulty.fail("open", "create", errno=errno.EIO, processes=[pid_of(engine, rank) for rank in unlucky])
    result = engine.run(Plan(RANKS, (of(way, "x", "write"), of(way, "never", "read"))), workspace.path, "p", 20)
    faulty.mend()
    check_told(result, unlucky, OPENS, errno.EIO)
    check_usable(engine, ("mpiio", way[1]), workspace.path)


@pytest.mark.parametrize("unlucky", [pytest.param({0}, marks=pytest.mark.long), {2, 3}], ids=["first", "last-two"])
@pytest.mark.parametrize(
    ("operation", "more"),
    [
        ("read", {"collective": True}),
        pytest.param("rewrite", {}, marks=pytest.mark.long),
        pytest.param("read", {"time_open": False}, marks=pytest.mark.long),
    ],
    ids=["read", "rewrite", "open-before"],
)
def test_ranks_that_cannot_open_an_existing_file_report_it(
    engines: Callable[[Way], MpiEngine],
    way: Way,
    faulty: FaultyMount,
    workspace: Workspace,
    operation: str,
    more: dict[str, Any],
    unlucky: set[int],
) -> None:
    engine = engines(way)
    pids = [pid_of(engine, rank) for rank in unlucky]
    phases = (of(way, "w", "write"), PAUSE, of(way, "x", operation, **(more if way in WAYS else {})))
    act = in_pause(lambda: faulty.fail("open", errno=errno.ESTALE, processes=pids))
    result = engine.run(Plan(RANKS, phases), workspace.path, "p", 20, act)
    faulty.mend()
    check_told(result, unlucky, OPENS, errno.ESTALE)
    check_usable(engine, ("mpiio", way[1]), workspace.path)


# Open MPI is left out, because it loses an error of close.
@pytest.mark.parametrize("way", [WAYS[0], POSIX], ids=["mpiio", "posix"], indirect=True)
def test_a_rank_that_cannot_close_the_file_reports_it(
    engines: Callable[[Way], MpiEngine], way: Way, faulty: FaultyMount, workspace: Workspace
) -> None:
    engine = engines(way)
    faulty.fail("flush", errno=errno.EDQUOT, processes=[pid_of(engine, 2)])
    result = engine.run(Plan(RANKS, (of(way, "x", "write", sync="close"),)), workspace.path, "p", 20)
    faulty.mend()
    check_told(result, {2}, {"close", "MPI_File_close"}, errno.EDQUOT)
    check_usable(engine, ("mpiio", way[1]), workspace.path)


@pytest.mark.parametrize(
    "way", WAYS, ids=lambda way: f"{way[0]}-{'openmpi' if 'openmpi' in way[1] else 'mpich'}", indirect=True
)
@pytest.mark.parametrize(
    "collective", [pytest.param(False, marks=pytest.mark.long), True], ids=["independent", "collective"]
)
def test_an_exceeded_quota_is_reported_by_the_ranks_that_met_it(
    engines: Callable[[Way], MpiEngine], way: Way, faulty: FaultyMount, workspace: Workspace, collective: bool
) -> None:
    engine = engines(way)
    faulty.fail("write", errno=errno.EDQUOT, after_bytes=600 * KIB)
    result = engine.run(
        Plan(RANKS, (of(way, "x", "write", collective=collective, sync="fsync"), of(way, "never", "read"))),
        workspace.path,
        "p",
        20,
    )
    faulty.mend()
    assert (result.ended, [sample.name for sample in result.samples], result.cleaned) == ("failed", ["x"], True)
    for error in result.errors:
        # Open MPI has no error class for EDQUOT, and may report nothing at all.
        assert error.errno == "EDQUOT" or (way != WAYS[0] and error.errno == ""), error
        assert "quota" in error.remedy, error
        assert error.where["path"] == "p/data.data"
    check_usable(engine, ("mpiio", way[1]), workspace.path)
