"""The real engine with ranks as threads: plans, errors, cancellation, and engines and front ends that are killed."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from conftest import wait_for
from runs.conftest import once
from strakes.model.phases import MetadataPhase, ProbePhase, SmallFilesPhase, Stop, TransferPhase
from strakes.model.plan import Plan
from strakes.runs.engine import LocalEngine
from strakes.runs.messages import LoggedOperation, Progress
from strakes.targets.workspace import Workspace

MIB = 1 << 20
SHORT = Plan(
    2,
    (
        MetadataPhase("create", "file-create", "unique", items=50),
        MetadataPhase("stat", "file-stat", "unique", items=50),
    ),
)
ENDLESS = Plan(
    2,
    (
        MetadataPhase("create", "file-create", "unique", items=20),
        MetadataPhase("stat", "file-stat", "unique", items=20, stop=Stop("seconds", 3600.0)),
    ),
)


def test_a_plan_gives_a_sample_for_every_phase(engine: LocalEngine, workspace: Workspace) -> None:
    result = engine.run(SHORT, workspace.path, "c1.v1", 60)
    assert (result.ended, result.errors, result.cleaned, result.left) == ("ok", (), True, ())
    assert [(sample.name, sample.operations) for sample in result.samples] == [("create", 100), ("stat", 100)]
    assert [path.name for path in workspace.path.iterdir()] == [".strakes-marker"]


def test_every_visit_and_run_writes_different_data(engine: LocalEngine, workspace: Workspace, tmp_path: Path) -> None:
    plan = Plan(
        2,
        (
            TransferPhase("write", "write", "file-per-process", "segmented", MIB, MIB),
            MetadataPhase("make", "file-create", "unique", items=20, file_bytes=8192),
            SmallFilesPhase("fill", "accumulate", 4096, 8192, files_per_rank=20),
        ),
    )
    other_run = tmp_path / "other run"
    other_run.mkdir()
    (other_run / ".strakes-marker").touch()
    blocks: list[bytes] = []
    for directory, visit in ((workspace.path, "v1"), (workspace.path, "v2"), (other_run, "v1")):
        assert engine.run(plan, directory, visit, 60, keep=True).ended == "ok"
        for path in filter(Path.is_file, (directory / visit).rglob("*")):
            data = path.read_bytes()
            blocks += [data[at : at + 4096] for at in range(0, len(data) - 4095, 4096)]
    assert len(blocks) >= 3 * (2 * 256 + 40 * 2 + 40)
    # No block occurs twice within a file, or between files, ranks, visits or runs.
    assert len(set(blocks)) == len(blocks)


def test_the_log_and_the_progress_of_a_probe_are_complete(engine: LocalEngine, workspace: Workspace) -> None:
    phase = ProbePhase("watch", "write-fsync", rate_per_s=20, seconds=2.6, file_bytes=512, log=True)
    told, seen = list[Sequence[LoggedOperation]](), list[Progress]()
    result = engine.run(Plan(2, (phase,)), workspace.path, "c0.v0", 30, seen.append, on_log=told.append, progress_s=0.1)
    assert sorted((one.rank, one.number) for one in result.log) == [(rank, at) for rank in (0, 1) for at in range(52)]
    assert all(one.acknowledged and one.due_s <= one.begun_s <= one.ended_s for one in result.log)
    assert sum(map(len, told)) == 104 and len(told) >= 10
    assert {(progress.phase, progress.name) for progress in seen} == {(0, "watch")}
    (sample,) = result.samples
    assert abs(min(one.begun_s for one in result.log) - sample.origin_unix_s) < 1


def test_a_directory_whose_name_is_not_utf_8_is_measured(engine: LocalEngine, tmp_path: Path) -> None:
    place = tmp_path / os.fsdecode(b"caf\xe9")
    place.mkdir()
    with Workspace.create(place, "20260101-000000-test-0000") as workspace:
        assert engine.run(SHORT, workspace.path, "p", 30.0).ended == "ok"


def test_a_request_that_the_engine_does_not_read_is_refused_at_once(
    engine: LocalEngine, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strakes.runs.engine._directory_of", lambda path: {"directory": path + "x" * (5 << 20)})
    result = engine.run(SHORT, workspace.path, "p", 30.0)
    assert (result.ended, result.errors[0].what) == ("refused", "the line is too long")


def test_a_refused_plan_names_the_key(engine: LocalEngine, workspace: Workspace) -> None:
    contradiction = Plan(1, (MetadataPhase("stat", "file-stat", "unique", items=5),))
    result = engine.run(contradiction, workspace.path, "r", 60)
    assert result.ended == "refused" and str(result.errors[0].where["key"]).startswith("phases[0]")
    assert engine.run(SHORT, workspace.path, "after", 60).ended == "ok"


def test_any_thread_and_a_signal_handler_can_cancel_a_plan(engine: LocalEngine, workspace: Workspace) -> None:
    timer = threading.Timer(0.3, engine.cancel)
    timer.start()
    assert engine.run(ENDLESS, workspace.path, "c", 3600).ended == "cancelled"
    timer.join()
    before = signal.signal(signal.SIGUSR1, lambda *_: engine.cancel())
    try:
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1))
        timer.start()
        assert engine.run(ENDLESS, workspace.path, "c", 3600).ended == "cancelled"
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_an_exception_during_a_plan_ends_it_in_order(engine: LocalEngine, workspace: Workspace) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    pid = engine.start().pid
    with pytest.raises(KeyboardInterrupt):
        engine.run(ENDLESS, workspace.path, "c", 3600, once(interrupt))
    assert [path.name for path in workspace.path.iterdir()] == [".strakes-marker"]
    assert engine.run(SHORT, workspace.path, "after", 60).ended == "ok" and engine.start().pid == pid


def test_a_killed_engine_is_reported_and_replaced_and_its_files_are_removed(
    engine: LocalEngine, workspace: Workspace
) -> None:
    pid = engine.start().pid
    result = engine.run(ENDLESS, workspace.path, "k", 3600, once(lambda: os.kill(pid, signal.SIGKILL)))
    assert (result.ended, result.cleaned, result.left) == ("died", True, ()) and "SIGKILL" in result.errors[-1].why
    assert result.errors[-1].where["operation"] == "stat" and [sample.name for sample in result.samples] == ["create"]
    assert [path.name for path in workspace.path.iterdir()] == [".strakes-marker"]
    assert engine.run(SHORT, workspace.path, "after", 60).ended == "ok" and engine.start().pid != pid


def test_an_engine_killed_between_plans_is_replaced_unnoticed(engine: LocalEngine, workspace: Workspace) -> None:
    pid = engine.start().pid
    os.kill(pid, signal.SIGKILL)
    wait_until_gone(pid)
    assert engine.run(SHORT, workspace.path, "after", 60).ended == "ok"


FEW = (resource.RLIMIT_NOFILE, (3, 3))  # fewer than the descriptors that the engine has open and polls
FRONT_END = """
import json, sys
from pathlib import Path
from strakes.runs.engine import LocalEngine
from strakes.model.plan_read import plan_from_json

engine = LocalEngine()
print(engine.start().pid, flush=True)
plan = plan_from_json(json.loads(sys.argv[2]))
engine.run(plan, Path(sys.argv[1]), "v1", 3600, progress_s=60)  # no write tells the engine that nobody listens
"""


def front_end(workspace: Workspace) -> tuple[subprocess.Popen[str], int]:
    process = subprocess.Popen(
        [sys.executable, "-c", FRONT_END, str(workspace.path), json.dumps(ENDLESS.to_json())],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None and process.stderr is not None
    first = process.stdout.readline()
    assert first, process.stderr.read()
    wait_for((workspace.path / "v1").exists)
    return process, int(first)


def wait_until_gone(pid: int) -> None:
    stat = Path(f"/proc/{pid}/stat")
    wait_for(lambda: not stat.exists() or ") Z " in stat.read_text(), 20)


@pytest.mark.parametrize("fate", ["killed", "interrupted", "killed without descriptors"])
def test_the_engine_of_a_killed_or_interrupted_front_end_cleans_up_and_ends(
    engine: LocalEngine, workspace: Workspace, fate: str
) -> None:
    process, pid = front_end(workspace)
    if few := fate == "killed without descriptors":
        resource.prlimit(pid, *FEW)
    if fate == "interrupted":
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    else:
        process.kill()
    _, errors = process.communicate(timeout=60)
    assert errors.rstrip().endswith("KeyboardInterrupt") == (fate == "interrupted")
    wait_until_gone(pid)
    assert few or [path.name for path in workspace.path.iterdir()] == [".strakes-marker"]


def test_an_engine_whose_limit_of_files_is_lowered_says_so_and_ends(engine: LocalEngine, workspace: Workspace) -> None:
    pid = engine.start().pid
    result = engine.run(ENDLESS, workspace.path, "f", 3600, once(lambda: resource.prlimit(pid, *FEW)))
    assert (result.ended, result.errors[0].what) == ("failed", "poll failed")
    assert "ulimit -n" in result.errors[0].remedy
    wait_until_gone(pid)
