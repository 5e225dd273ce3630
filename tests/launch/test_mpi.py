"""Ranks that are processes, in good days and bad."""

from __future__ import annotations

import fcntl
import os
import platform
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mounts import loop_mounted
from strakes.errors import EnvironmentLacksError
from strakes.launch.messages import Progress
from strakes.launch.mpi import MpiEngine, find_mpi_engine, find_mpiexec
from strakes.plan import MetadataPhase, Plan, Stop, TransferPhase
from strakes.targets.workspace import Workspace

KIB = 1 << 10
_FREEZE, _THAW = 0xC0045877, 0xC0045878
SHORT = Plan(4, (MetadataPhase("create", "file-create", "unique", items=20), MetadataPhase("stat", "file-stat", "unique", items=20)))
ENDLESS = Plan(4, (SHORT.phases[0], MetadataPhase("stat", "file-stat", "unique", items=20, stop=Stop("seconds", 3600.0))))


def has_mpi() -> bool:
    try:
        find_mpi_engine(), find_mpiexec()
    except EnvironmentLacksError:
        return False
    return True


needs_mpi = pytest.mark.skipif(not has_mpi(), reason="the engine is not built for MPI")


@pytest.fixture(scope="module")
def engine() -> Iterator[MpiEngine]:
    with MpiEngine(ranks=4) as engine:
        yield engine


def pid_of(engine: MpiEngine, rank: int) -> int:
    return next(int(process.split()[1]) for process, number in engine.start().ranks.items() if number == rank)


def when_running(act: Callable[[], object]) -> Callable[[Progress], None]:
    """Calls ``act`` at the first progress, once."""
    calls = [act]

    def on_progress(progress: Progress) -> None:
        if calls:
            calls.pop()()

    return on_progress


@needs_mpi
def test_the_engine_says_who_takes_part(engine: MpiEngine) -> None:
    hello = engine.start()
    assert hello.mpi
    assert dict(hello.nodes) == {hello.host: 4}


@needs_mpi
def test_a_plan_gives_the_samples_that_threads_give(engine: MpiEngine, workspace: Workspace) -> None:
    result = engine.run(SHORT, workspace.path, "c1", 60)
    assert (result.ended, result.errors, result.cleaned, result.left) == ("ok", (), True, ())
    assert [(sample.name, sample.operations) for sample in result.samples] == [("create", 80), ("stat", 80)]
    assert [row[0] for row in result.samples[0].raw["ranks"]] == [0, 1, 2, 3]
    assert [path.name for path in workspace.path.iterdir()] == [".strakes-marker"]


@needs_mpi
def test_one_launch_serves_plans_of_different_teams(engine: MpiEngine, workspace: Workspace) -> None:
    pid = engine.start().pid
    for ranks in (3, 1, 4, 2):
        result = engine.run(Plan(ranks, SHORT.phases), workspace.path, f"v{ranks}", 60)
        assert (result.ended, len(result.samples[1].raw["ranks"])) == ("ok", ranks)
    assert engine.start().pid == pid


@needs_mpi
def test_more_ranks_than_processes_are_refused_with_what_to_do(engine: MpiEngine, workspace: Workspace) -> None:
    result = engine.run(Plan(5, SHORT.phases), workspace.path, "r", 60)
    assert result.ended == "refused"
    assert (result.errors[0].where["key"], "--ranks" in result.errors[0].remedy) == ("team.ranks", True)


@needs_mpi
def test_what_one_process_wrote_another_reads(engine: MpiEngine, workspace: Workspace) -> None:
    write = TransferPhase("write", "write", "file-per-process", "segmented", 64 * KIB, 256 * KIB, preallocate=True, rank_shift=1)
    read = TransferPhase("read", "read", "file-per-process", "segmented", 64 * KIB, 256 * KIB, verify=True, rank_shift=2)
    result = engine.run(Plan(4, (write, read)), workspace.path, "s", 60)
    assert (result.ended, result.errors) == ("ok", ())
    assert result.samples[1].raw["effective"]["verified_bytes"] == 4 * 256 * KIB


@needs_mpi
def test_a_cancelled_plan_ends_in_order(engine: MpiEngine, workspace: Workspace) -> None:
    pid = engine.start().pid
    result = engine.run(ENDLESS, workspace.path, "c", 3600, when_running(engine.cancel))
    assert (result.ended, result.cleaned) == ("cancelled", True)
    assert engine.run(SHORT, workspace.path, "after", 60).ended == "ok"
    assert engine.start().pid == pid


@needs_mpi
@pytest.mark.parametrize(("victim", "how"), [(2, signal.SIGKILL), (0, signal.SIGKILL), (3, signal.SIGSTOP), (0, signal.SIGSTOP)])
def test_a_rank_that_goes_is_named_and_the_run_ends_in_order(workspace: Workspace, victim: int, how: signal.Signals) -> None:
    with MpiEngine(ranks=4) as engine:
        host = engine.start().host
        pid = pid_of(engine, victim)
        struck: list[float] = []

        def strike() -> None:
            struck.append(time.monotonic())
            os.kill(pid, how)

        result = engine.run(ENDLESS, workspace.path, "k", 3600, when_running(strike))
        took_s = time.monotonic() - struck[0]
        assert {(error.where["host"], error.where["rank"]) for error in result.errors} == {(host, victim)}
        assert result.ended in ("failed", "died", "limit")
        assert (result.cleaned, result.left) == (True, ())
        assert [sample.name for sample in result.samples] == ["create"]
        assert [path.name for path in workspace.path.iterdir()] == [".strakes-marker"]
        assert engine.run(SHORT, workspace.path, "after", 60).ended == "ok"
    assert took_s < 10


@contextmanager
def frozen(place: Path) -> Iterator[Callable[[], None]]:
    """Whoever writes to it after the call waits and cannot be killed; until the end."""
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield lambda: fcntl.ioctl(descriptor, _FREEZE, 0)
    finally:
        fcntl.ioctl(descriptor, _THAW, 0)
        os.close(descriptor)


@needs_mpi
def test_nothing_is_touched_while_a_rank_waits_for_a_file_system_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    swept: list[str] = []
    monkeypatch.setattr("strakes.launch.mpi.sweep", lambda _, name: swept.append(name))
    write = TransferPhase("w", "write", "file-per-process", "segmented", KIB, 4 * KIB, stop=Stop("seconds", 60.0))
    with loop_mounted("ext4") as place, Workspace.create(place, "20260101-000000-test-0000") as workspace:
        with MpiEngine(ranks=2) as engine:
            pids = [pid_of(engine, rank) for rank in (0, 1)]
            with frozen(place) as freeze:
                result = engine.run(Plan(2, (write,)), workspace.path, "f", 2, when_running(freeze))
                assert all(Path(f"/proc/{pid}").exists() for pid in pids)
        assert (result.ended, result.cleaned, bool(result.left), swept) == ("failed", False, True, [])
        assert {error.where["host"] for error in result.errors} == {platform.node()}
        while any(Path(f"/proc/{pid}").exists() for pid in pids):
            time.sleep(0.02)
        assert (workspace.path / "f").is_dir()


@needs_mpi
def test_another_number_of_ranks_than_launched_is_refused(tmp_path: Path) -> None:
    done = subprocess.run([find_mpi_engine()], env={**os.environ, "SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, "")
    assert "4 tasks (SLURM_NTASKS), but MPI joined 1" in done.stderr
    assert "Use --mpi=pmi2 with srun." in done.stderr


def test_without_the_engine_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STRAKES_ENGINE_MPI", str(tmp_path / "none"))
    with pytest.raises(EnvironmentLacksError) as caught, MpiEngine(ranks=2) as engine:
        engine.start()
    assert caught.value.exit_status == 3


def test_an_mpiexec_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLacksError) as caught, MpiEngine(ranks=2, mpiexec=tmp_path / "none") as engine:
        engine.start()
    assert caught.value.where == str(tmp_path / "none")
