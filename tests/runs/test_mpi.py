"""Ranks as MPI processes: plans, errors, killed and stopped ranks, and several nodes."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import wait_for
from mounts import loop_mounted
from runs.conftest import once
from strakes.base.errors import EnvironmentLacksError
from strakes.model.phases import MetadataPhase, MixedPhase, Part, ProbePhase, StagePhase, Stop, TransferPhase
from strakes.model.plan import Plan
from strakes.runs.engine import LocalEngine
from strakes.runs.impact import UNLIMITED, Impact
from strakes.runs.launch import Launch
from strakes.runs.mpi import MpiEngine, find_mpiexec, placed
from strakes.runs.mpi_family import find_mpi_engine
from strakes.targets.workspace import Workspace

KIB = 1 << 10
_FREEZE, _THAW = 0xC0045877, 0xC0045878
SHORT = Plan(
    4,
    (
        MetadataPhase("create", "file-create", "unique", items=20),
        MetadataPhase("stat", "file-stat", "unique", items=20),
    ),
)
ENDLESS = Plan(
    4, (SHORT.phases[0], MetadataPhase("stat", "file-stat", "unique", items=20, stop=Stop("seconds", 3600.0)))
)


def has_mpi() -> bool:
    try:
        find_mpi_engine(), find_mpiexec()
    except EnvironmentLacksError:
        return False
    return True


needs_mpi = pytest.mark.skipif(not has_mpi(), reason="the engine is not built for MPI")


@pytest.fixture(scope="module")
def engine() -> Iterator[MpiEngine]:
    with MpiEngine(Launch("mpi", 4)) as engine:
        yield engine


def pid_of(engine: MpiEngine, rank: int) -> int:
    return next(int(process.split()[1]) for process, number in engine.start().ranks.items() if number == rank)


@needs_mpi
def test_all_processes_together_keep_one_load_limit(engine: MpiEngine, workspace: Workspace) -> None:
    engine.impact = Impact(operations_per_s=400.0)
    try:
        result = engine.run(SHORT, workspace.path, "c1", 60)
    finally:
        engine.impact = UNLIMITED
    assert result.ended == "ok"
    for sample in result.samples:
        assert sample.operations_per_s <= 400.5
        assert sample.impact is not None and sample.impact.held_back_s > 0


def sockets_of(pid: int) -> set[str]:
    return {os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir() if "socket:" in os.readlink(each)}


def listening() -> dict[str, int]:
    rows = [line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()]
    return {f"socket:[{row[9]}]": int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A"}


@needs_mpi
@pytest.mark.parametrize("mpiexec", ["mpiexec", "mpiexec.openmpi"])
def test_other_users_reach_no_rank_of_one_node_by_bytes_or_shared_memory(workspace: Workspace, mpiexec: str) -> None:
    """Ranks inherit the launcher's port. The launcher must ignore bytes that its own processes did not send."""
    if mpiexec != "mpiexec" and shutil.which(mpiexec) is None:
        pytest.skip(f"{mpiexec} is not installed")
    with MpiEngine(Launch("mpi", 2, mpiexec=None if mpiexec == "mpiexec" else Path(mpiexec))) as engine:
        for process in engine.start().ranks:
            rank = int(process.split()[1])
            launcher = int(Path(f"/proc/{rank}/stat").read_text().rpartition(")")[2].split()[1])
            assert (sockets_of(rank) - sockets_of(launcher)).isdisjoint(listening())
            environment = Path(f"/proc/{launcher}/environ").read_bytes()
            assert b"HWLOC_COMPONENTS=-gl\0" in environment and b"OMPI_MCA_sharedfp=individual\0" in environment
            assert "STRAKES_SHARED_NAMES" in placed(Path("/x/mpiexec.openmpi"), Launch("mpi", 1))
            names = re.findall(r"/dev/shm/\S+|/\S+/pmix_dstor\S+", Path(f"/proc/{rank}/maps").read_text())
            private = "_[0-9a-f]{32}($|/)" + "|^/run/ompi" * (os.geteuid() == 0)
            assert names and all(re.search(private, name) for name in names)
            rows = [line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]
            assert not [row for row in rows if row[4] == str(rank) and int(row[2], 8) & 0o077]
            for port in {port for one, port in listening().items() if one in sockets_of(launcher)}:
                for garbage in (os.urandom(3000), bytes(3000), b"\xff" * 8):
                    with socket.create_connection(("localhost", port)) as connection:
                        connection.sendall(garbage)
        result = engine.run(Plan(2, SHORT.phases), workspace.path, "c", 60)
    assert (result.ended, result.errors) == ("ok", ())


@needs_mpi
def test_one_launch_serves_plans_with_different_numbers_of_ranks(engine: MpiEngine, workspace: Workspace) -> None:
    pid = engine.start().pid
    for ranks in (3, 1, 4, 2):
        result = engine.run(Plan(ranks, SHORT.phases), workspace.path, f"v{ranks}", 60)
        assert result.ended == "ok", result.errors
        assert len(result.samples[1].ranks) == ranks
    assert engine.start().pid == pid


@needs_mpi
def test_a_process_that_was_stopped_during_plans_of_other_ranks_runs_its_next_plan(
    engine: MpiEngine, workspace: Workspace
) -> None:
    pid = pid_of(engine, 3)
    os.kill(pid, signal.SIGSTOP)
    try:
        ended = [engine.run(Plan(1, SHORT.phases), workspace.path, f"alone{number}", 60).ended for number in range(3)]
    finally:
        os.kill(pid, signal.SIGCONT)
    assert ended == ["ok"] * 3
    result = engine.run(SHORT, workspace.path, "together", 60)
    assert (result.ended, result.errors) == ("ok", ()) and pid_of(engine, 3) == pid


@needs_mpi
def test_more_ranks_than_processes_are_refused_with_what_to_do(engine: MpiEngine, workspace: Workspace) -> None:
    result = engine.run(Plan(5, SHORT.phases), workspace.path, "r", 60)
    assert result.ended == "refused"
    assert (result.errors[0].where["key"], "--ranks" in result.errors[0].remedy) == ("team.ranks", True)


@needs_mpi
def test_a_cancelled_plan_ends_in_order(engine: MpiEngine, workspace: Workspace) -> None:
    pid = engine.start().pid
    result = engine.run(ENDLESS, workspace.path, "c", 3600, once(engine.cancel))
    assert (result.ended, result.cleaned) == ("cancelled", True)
    assert engine.run(SHORT, workspace.path, "after", 60).ended == "ok" and engine.start().pid == pid


@needs_mpi
@pytest.mark.parametrize(
    ("victim", "how"), [(2, signal.SIGKILL), (0, signal.SIGKILL), (3, signal.SIGSTOP), (0, signal.SIGSTOP)]
)
def test_a_killed_or_stopped_rank_is_named_and_the_run_ends_in_order(
    workspace: Workspace, victim: int, how: signal.Signals
) -> None:
    with MpiEngine(Launch("mpi", 4)) as engine:
        host = engine.start().host
        pid = pid_of(engine, victim)
        shared = dict(re.findall(r"(STRAKES_\w+)=(\w+)\0", Path(f"/proc/{pid}/environ").read_text()))[
            "STRAKES_SHARED_NAMES"
        ]
        struck: list[float] = []

        def strike() -> None:
            struck.append(time.monotonic())
            os.kill(pid, how)

        result = engine.run(ENDLESS, workspace.path, "k", 3600, once(strike))
        took_s = time.monotonic() - struck[0]
        assert {(error.where["host"], error.where["rank"]) for error in result.errors} == {(host, victim)}
        assert result.ended in ("failed", "died", "limit") and (result.cleaned, result.left) == (True, ())
        assert [sample.name for sample in result.samples] == ["create"]
        assert [path.name for path in workspace.path.iterdir()] == [".strakes-marker"]
        assert not list(Path("/dev/shm").glob(f"strakes{shared}"))
        assert engine.run(SHORT, workspace.path, "after", 60).ended == "ok"
    # If rank 0 is stopped, the launcher must be killed as well, which takes longer.
    assert took_s < (12 if (victim, how) == (0, signal.SIGSTOP) else 10)


@needs_mpi
def test_the_first_process_may_be_silent_for_the_set_time_and_the_file_system_is_not_blamed(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRAKES_SILENCE_S", "3")
    with MpiEngine(Launch("mpi", 4)) as engine:
        engine.start()
        pid = pid_of(engine, 0)
        result = engine.run(ENDLESS, workspace.path, "s", 3600, once(lambda: os.kill(pid, signal.SIGSTOP)))
    (error,) = result.errors
    assert error.what == "the engine sent no message for 3.00 s" and "file system" not in error.why + error.remedy


@needs_mpi
@pytest.mark.parametrize(("ranks", "started"), [(4, 4), (2, 3)])
def test_an_unsupervised_engine_ends_when_its_first_process_is_silent_and_names_it(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, ranks: int, started: int
) -> None:
    monkeypatch.setenv("STRAKES_SILENCE_S", "3")
    plan = Plan(ranks, ENDLESS.phases)
    request = {
        "type": "plan",
        "version": 1,
        "id": "alone",
        "directory": str(workspace.path),
        "limit_s": 3600,
        "plan": plan.to_json(),
    }
    with subprocess.Popen(
        MpiEngine(Launch("mpi", started)).command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as launcher:
        assert launcher.stdin is not None and launcher.stdout is not None
        late = threading.Timer(30, launcher.kill)
        late.start()
        launcher.stdin.write(json.dumps(request) + "\n")
        launcher.stdin.flush()
        errors: list[dict[str, Any]] = []
        hello: dict[str, Any] = {}
        stopped_at = 0.0
        for line in launcher.stdout:
            message = json.loads(line) if line.startswith("{") else {"type": "of the launcher"}
            if message["type"] == "hello":
                hello = message
            elif message["type"] == "progress" and stopped_at == 0:
                stopped_at = time.monotonic()
                os.kill(hello["pid"], signal.SIGSTOP)
            elif message["type"] == "error":
                errors.append(message)
        assert launcher.wait(20) != 0
        late.cancel()
        took_s = time.monotonic() - stopped_at
    assert [(error["what"], error["where"]["rank"]) for error in errors] == [("a rank does not answer", 0)]
    assert 3 < took_s < 15
    while Path(f"/proc/{hello['pid']}").exists() and took_s < 15:
        time.sleep(0.02)
        took_s = time.monotonic() - stopped_at
    assert took_s < 15


@contextmanager
def frozen(place: Path) -> Iterator[Callable[[], object]]:
    """Yield a function that freezes the file system at ``place``: writers then block and cannot be killed.

    The file system is thawed at the end.
    """
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield lambda: fcntl.ioctl(descriptor, _FREEZE, 0)
    finally:
        fcntl.ioctl(descriptor, _THAW, 0)
        os.close(descriptor)


@needs_mpi
def test_nothing_is_touched_while_a_rank_waits_for_a_file_system_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    swept: list[str] = []

    def sweep(_: Path, name: str) -> tuple[str, ...]:
        swept.append(name)
        return ()

    monkeypatch.setattr("strakes.runs.engine.sweep", sweep)
    write = TransferPhase("w", "write", "file-per-process", "segmented", KIB, 4 * KIB, stop=Stop("seconds", 60.0))
    with loop_mounted("ext4") as place, Workspace.create(place, "20260101-000000-test-0000") as workspace:
        with MpiEngine(Launch("mpi", 2)) as engine:
            pids = [pid_of(engine, rank) for rank in (0, 1)]
            with frozen(place) as freeze:
                result = engine.run(Plan(2, (write,)), workspace.path, "f", 2, once(freeze))
                assert all(Path(f"/proc/{pid}").exists() for pid in pids)
        assert (result.ended, result.cleaned, bool(result.left), swept) == ("failed", False, True, [])
        assert {error.where["host"] for error in result.errors} == {platform.node()}
        wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
        assert (workspace.path / "f").is_dir()


@pytest.fixture
def two_nodes(tmp_path: Path) -> Iterator[MpiEngine]:
    wrapper = tmp_path / "engine"
    wrapper.write_text(
        f"""#!/bin/sh
        [ "$PMI_RANK" -lt 2 ] && exec {find_mpi_engine()} "$@"
        exec unshare --uts sh -c 'hostname other-node && exec "$@"' sh {find_mpi_engine()} "$@"
        """
    )
    wrapper.chmod(0o755)
    if os.geteuid() != 0:
        pytest.skip("another host name needs root")
    with MpiEngine(Launch("mpi", 4), wrapper) as engine:
        yield engine


@needs_mpi
def test_every_node_has_counters(two_nodes: MpiEngine, workspace: Workspace) -> None:
    hosts = list(two_nodes.start().nodes)
    assert hosts[1:] == ["other-node"]
    plan = Plan(4, (SHORT.phases[0], MetadataPhase("stat", "file-stat", "unique", items=20, stop=Stop("seconds", 0.5))))
    result = two_nodes.run(plan, workspace.path, "n", 60)
    assert result.errors == ()
    here, there = result.samples[1].nodes
    assert [here.host, there.host] == hosts
    assert all(node.counters["cpu_user_s"] + node.counters["cpu_idle_s"] > 0 for node in (here, there))


@needs_mpi
@pytest.mark.parametrize(("grouping", "writers"), [("node", 1), ("global", 3)])
def test_writers_merge_across_nodes(two_nodes: MpiEngine, workspace: Workspace, grouping: str, writers: int) -> None:
    read = TransferPhase(
        "r", "read", "shared-file", "strided", 16 * KIB, 64 * KIB, segments=9, rank_shift=1, verify=True
    )
    write = replace(read, name="w", operation="write", rank_shift=0, verify=False, writers=writers, grouping=grouping)  # type: ignore[arg-type]
    result = two_nodes.run(Plan(4, (write, read)), workspace.path, "w", 60)
    assert (result.ended, result.errors) == ("ok", ())
    assert result.samples[1].effective["verified_bytes"] == 4 * 9 * 64 * KIB
    assert sum(row[3] > 0 for row in result.samples[0].ranks) == (2 * writers if grouping == "node" else writers)


@needs_mpi
@pytest.mark.parametrize(
    ("block", "piece", "broadcast"),
    [
        (300 * KIB, 32 * KIB, False),
        (300 * KIB, 32 * KIB, True),
        # MPI counts bytes in an int, which is too small for a piece of 2 GiB.
        pytest.param((1 << 29) + 64 * KIB, (1 << 31) + 256 * KIB, True, marks=pytest.mark.long),
    ],
)
def test_a_stage_passes_on_what_few_ranks_of_each_node_read(
    two_nodes: MpiEngine, workspace: Workspace, block: int, piece: int, broadcast: bool
) -> None:
    size = 4 * block
    if os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 6 * size:
        pytest.skip("two nodes that hold the file each, and their page cache, do not fit into memory")
    write = TransferPhase("w", "write", "shared-file", "segmented", 4 * KIB, block)
    stage = StagePhase("load", piece, readers_per_node=1, broadcast=broadcast, verify=True)
    result = two_nodes.run(Plan(4, (write, stage)), workspace.path, "s", 600)
    assert (result.ended, result.errors) == ("ok", ())
    load = result.samples[1]
    assert load.bytes == load.effective["verified_bytes"] == 4 * size
    readers = 1 if broadcast and piece >= size else 2
    assert load.staged == {"readers": readers, "read_bytes": size if broadcast else 2 * size}


@needs_mpi
def test_parts_of_a_mixed_phase_do_the_same_as_with_threads(engine: MpiEngine, workspace: Workspace) -> None:
    dump = TransferPhase("dump", "write", "shared-file", "segmented", 16 * KIB, 64 * KIB, preallocate=True)
    make = MetadataPhase("make", "file-create", "shared", items=20, depth=1, branch=3, file_bytes=100)
    watch = ProbePhase("watch", "file-stat", rate_per_s=200, seconds=0.1, log=True)
    mixed = MixedPhase("both", (Part(2, dump), Part(1, make), Part(1, watch)))
    read = TransferPhase("read", "read", "shared-file", "segmented", 16 * KIB, 64 * KIB, rank_shift=1, verify=True)
    look = MetadataPhase("look", "file-read", "shared", items=20, depth=1, branch=3, file_bytes=100, rank_shift=1)
    plan = Plan(4, (mixed, read, look))
    with LocalEngine() as threads:
        for one in (engine, threads):
            result = one.run(plan, workspace.path, "m", 60)
            assert (result.ended, result.errors) == ("ok", ())
            both, again, seen = result.samples
            parts = both.parts
            expected = [("dump", [0, 1]), ("make", [2]), ("watch", [3])]
            assert [(part.name, [row[0] for row in part.ranks]) for part in parts] == expected
            assert [(part.operations, part.bytes) for part in parts] == [(8, 128 * KIB), (20, 2000), (20, 0)]
            assert [set(part.histograms) for part in parts] == [{"write"}, {"file-create"}, {"lag", "file-stat"}]
            assert again.effective["verified_bytes"] == 128 * KIB and seen.operations == 20
            assert [(row.phase, row.rank) for row in result.log] == [("watch", 3)] * 20


@needs_mpi
def test_another_number_of_ranks_than_launched_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [find_mpi_engine()],
        env={**os.environ, "SLURM_PROCID": "0", "SLURM_NTASKS": "4"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (3, "") and "4 tasks (SLURM_NTASKS), but MPI joined 1" in done.stderr
    assert "Use --mpi=pmi2 with srun." in done.stderr


def test_a_missing_mpiexec_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(EnvironmentLacksError) as caught,
        MpiEngine(Launch("mpi", 2, mpiexec=tmp_path / "none")) as engine,
    ):
        engine.start()
    assert caught.value.where == str(tmp_path / "none")
