"""The real engine with ranks as threads: plans, errors, cancellation, and engines and front ends that are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from strakes.errors import EnvironmentLacksError
from strakes.launch.engine import LocalEngine, find_engine
from strakes.launch.messages import Progress
from strakes.plan import MetadataPhase, Plan, Stop, TransferPhase
from strakes.targets.workspace import Workspace
from strakes.version import __version__

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


def write_plan(bytes_per_rank: int) -> Plan:
    return Plan(2, (TransferPhase("write", "write", "file-per-process", "segmented", MIB, bytes_per_rank),))


def when_running(act: Callable[[], object]) -> Callable[[Progress], None]:
    """Return a progress callback that calls ``act`` once, at the first progress."""
    done = threading.Event()

    def on_progress(progress: Progress) -> None:
        if not done.is_set():
            done.set()
            act()

    return on_progress


def test_the_engine_says_what_it_is(engine: LocalEngine) -> None:
    hello = engine.start()
    assert hello.engine == __version__
    assert "posix" in hello.backends
    assert set(hello.kinds) >= {"transfer", "metadata"}
    assert engine.start() is hello


def test_a_plan_gives_a_sample_for_every_phase(engine: LocalEngine, workspace: Workspace) -> None:
    result = engine.run(SHORT, workspace.path, "c1.v1", 60)
    assert (result.ended, result.errors, result.cleaned, result.left) == ("ok", (), True, ())
    assert [(sample.name, sample.operations) for sample in result.samples] == [("create", 100), ("stat", 100)]
    assert result.samples[0].extra["id"] == "c1.v1"
    assert [path.name for path in workspace.path.iterdir()] == [".strakes-marker"]


def test_one_engine_serves_plan_after_plan(engine: LocalEngine, workspace: Workspace) -> None:
    pid = engine.start().pid
    assert [engine.run(SHORT, workspace.path, f"v{number}", 60).ended for number in range(5)] == ["ok"] * 5
    assert engine.start().pid == pid


def test_files_to_keep_stay(engine: LocalEngine, workspace: Workspace) -> None:
    result = engine.run(SHORT, workspace.path, "kept", 60, keep=True)
    assert result.ended == "ok"
    assert any((workspace.path / "kept").rglob("*"))


def test_every_visit_and_every_run_write_other_data(engine: LocalEngine, workspace: Workspace, tmp_path: Path) -> None:
    other_run = tmp_path / "other run"
    other_run.mkdir()
    (other_run / ".strakes-marker").touch()
    units: list[bytes] = []
    for directory, visit in ((workspace.path, "v1"), (workspace.path, "v2"), (other_run, "v1")):
        assert engine.run(write_plan(MIB), directory, visit, 60, keep=True).ended == "ok"
        for path in sorted((directory / visit).glob("*.data")):
            data = path.read_bytes()
            units += [data[at : at + 4096] for at in range(0, len(data), 4096)]
    assert len(units) == 3 * 2 * 256
    # No block occurs twice within a file, or between ranks, visits or runs.
    assert len(set(units)) == len(units)


def test_progress_is_reported(engine: LocalEngine, workspace: Workspace) -> None:
    seen: list[Progress] = []
    plan = Plan(
        2, (*ENDLESS.phases[:1], MetadataPhase("stat", "file-stat", "unique", items=20, stop=Stop("seconds", 1.2)))
    )
    engine.run(plan, workspace.path, "p", 60, seen.append)
    assert {(progress.phase, progress.name) for progress in seen} == {(1, "stat")}
    assert seen[0].operations > 0


def test_a_directory_whose_name_is_not_utf_8_is_measured(engine: LocalEngine, tmp_path: Path) -> None:
    place = tmp_path / os.fsdecode(b"caf\xe9")
    place.mkdir()
    with Workspace.create(place, "20260101-000000-test-0000") as workspace:
        assert engine.run(SHORT, workspace.path, "p", 30.0).ended == "ok"


def test_a_request_that_the_engine_does_not_read_is_refused_at_once(
    engine: LocalEngine, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strakes.launch.engine._directory_of", lambda path: {"directory": path + "x" * (5 << 20)})
    result = engine.run(SHORT, workspace.path, "p", 30.0)
    assert (result.ended, result.errors[0].what) == ("refused", "the line is too long")


def test_a_refused_plan_names_the_key(engine: LocalEngine, workspace: Workspace) -> None:
    contradiction = Plan(1, (MetadataPhase("stat", "file-stat", "unique", items=5),))
    result = engine.run(contradiction, workspace.path, "r", 60)
    assert result.ended == "refused"
    assert str(result.errors[0].where["key"]).startswith("phases[0]")
    assert engine.run(SHORT, workspace.path, "after", 60).ended == "ok"


def test_a_directory_that_is_not_a_workspace_is_refused(engine: LocalEngine, tmp_path: Path) -> None:
    result = engine.run(SHORT, tmp_path, "r", 60)
    assert result.ended == "refused"
    assert list(tmp_path.iterdir()) == []


def test_a_full_target_fails_with_a_message_and_is_left_clean(engine: LocalEngine, small_workspace: Workspace) -> None:
    result = engine.run(write_plan(8 * MIB), small_workspace.path, "full", 60)
    assert (result.ended, result.cleaned) == ("failed", True)
    error = result.errors[0]
    assert (error.errno, error.why) == ("ENOSPC", "No space left on device")
    assert {"rank", "path", "operation"} <= set(error.where)
    assert error.to_exception().remedy
    assert engine.run(write_plan(MIB), small_workspace.path, "fits", 60).ended == "ok"


def test_a_plan_over_its_limit_is_ended_and_a_rank_is_named(engine: LocalEngine, workspace: Workspace) -> None:
    result = engine.run(ENDLESS, workspace.path, "long", 0.7)
    assert (result.ended, result.cleaned) == ("failed", True)
    assert "limit" in result.errors[0].what
    assert "rank" in result.errors[0].where


def test_a_cancelled_plan_ends_in_order(engine: LocalEngine, workspace: Workspace) -> None:
    result = engine.run(ENDLESS, workspace.path, "c", 3600, when_running(engine.cancel))
    assert (result.ended, result.cleaned) == ("cancelled", True)
    assert engine.run(SHORT, workspace.path, "after", 60).ended == "ok"


def test_a_cancel_comes_from_any_thread(engine: LocalEngine, workspace: Workspace) -> None:
    timer = threading.Timer(0.3, engine.cancel)
    timer.start()
    assert engine.run(ENDLESS, workspace.path, "c", 3600).ended == "cancelled"
    timer.join()


def test_a_cancel_comes_from_a_signal_handler(engine: LocalEngine, workspace: Workspace) -> None:
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
        engine.run(ENDLESS, workspace.path, "c", 3600, when_running(interrupt))
    assert [path.name for path in workspace.path.iterdir()] == [".strakes-marker"]
    assert engine.run(SHORT, workspace.path, "after", 60).ended == "ok"
    assert engine.start().pid == pid


def test_a_killed_engine_is_reported_swept_up_after_and_replaced(engine: LocalEngine, workspace: Workspace) -> None:
    pid = engine.start().pid
    result = engine.run(ENDLESS, workspace.path, "k", 3600, when_running(lambda: os.kill(pid, signal.SIGKILL)))
    assert (result.ended, result.cleaned, result.left) == ("died", True, ())
    assert "SIGKILL" in result.errors[-1].why
    assert result.errors[-1].where["operation"] == "stat"
    assert [sample.name for sample in result.samples] == ["create"]
    assert [path.name for path in workspace.path.iterdir()] == [".strakes-marker"]
    assert engine.run(SHORT, workspace.path, "after", 60).ended == "ok"
    assert engine.start().pid != pid


def test_an_engine_killed_between_plans_is_replaced_unnoticed(engine: LocalEngine, workspace: Workspace) -> None:
    pid = engine.start().pid
    os.kill(pid, signal.SIGKILL)
    while Path(f"/proc/{pid}/stat").exists() and ") Z " not in Path(f"/proc/{pid}/stat").read_text():
        time.sleep(0.01)
    assert engine.run(SHORT, workspace.path, "after", 60).ended == "ok"


def test_a_stopped_engine_is_over_its_limit(
    engine: LocalEngine, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strakes.launch.engine._OVERTIME_S", 0.5)
    monkeypatch.setattr("strakes.launch.engine._STOP_S", 0.5)
    pid = engine.start().pid
    result = engine.run(ENDLESS, workspace.path, "s", 1.0, when_running(lambda: os.kill(pid, signal.SIGSTOP)))
    assert (result.ended, result.cleaned) == ("limit", True)
    assert result.errors[-1].where["operation"] == "stat"
    assert "1.50 s" in result.errors[-1].what
    assert engine.run(SHORT, workspace.path, "after", 60).ended == "ok"


def test_a_closed_engine_is_gone(engine: LocalEngine) -> None:
    pid = engine.start().pid
    engine.close()
    engine.close()
    assert not Path(f"/proc/{pid}").exists()


def test_a_missing_engine_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRAKES_ENGINE", str(tmp_path / "none"))
    with pytest.raises(EnvironmentLacksError, match="missing") as caught:
        find_engine()
    assert caught.value.where == str(tmp_path / "none")
    assert caught.value.remedy


FRONT_END = """
import json, sys
from pathlib import Path
from strakes.launch.engine import LocalEngine
from strakes.plan import plan_from_json

engine = LocalEngine()
print(engine.start().pid, flush=True)
plan = plan_from_json(json.loads(sys.argv[2]))
engine.run(plan, Path(sys.argv[1]), "v1", 3600, lambda progress: print("running", flush=True))
"""


def front_end(workspace: Workspace) -> tuple[subprocess.Popen[str], int]:
    """Start a front end that runs an endless plan; return its process and the pid of its engine."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    process = subprocess.Popen(
        [sys.executable, "-c", FRONT_END, str(workspace.path), json.dumps(ENDLESS.to_json())],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    assert process.stdout is not None and process.stderr is not None
    first = process.stdout.readline()
    assert first, process.stderr.read()
    assert process.stdout.readline() == "running\n"
    return process, int(first)


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 20
    while Path(f"/proc/{pid}/stat").exists() and ") Z " not in Path(f"/proc/{pid}/stat").read_text():
        assert time.monotonic() < deadline, "the engine outlives its front end"
        time.sleep(0.05)


def test_the_engine_of_a_killed_front_end_cleans_up_and_leaves(engine: LocalEngine, workspace: Workspace) -> None:
    process, pid = front_end(workspace)
    process.kill()
    process.communicate()
    wait_until_gone(pid)
    assert [path.name for path in workspace.path.iterdir()] == [".strakes-marker"]


def test_ctrl_c_in_a_terminal_reaches_the_engine_through_the_front_end_only(
    engine: LocalEngine, workspace: Workspace
) -> None:
    process, pid = front_end(workspace)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, errors = process.communicate(timeout=60)
    assert errors.rstrip().endswith("KeyboardInterrupt")
    wait_until_gone(pid)
    assert [path.name for path in workspace.path.iterdir()] == [".strakes-marker"]
