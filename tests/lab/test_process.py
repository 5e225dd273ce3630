from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from lab.running import SOURCES
from strakes.base.processes import process_start
from strakes.lab.process import GatedProcess, is_alive, kill_all, members, run, users_of
from strakes.lab.state import ProcessRecord


def gated(tmp_path: Path, *argv: str, lab: str = "gate-test") -> GatedProcess:
    return GatedProcess(argv, log=tmp_path / "log", lab_id=lab)


def wait_for(condition: object, seconds: float = 20) -> None:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_program_does_not_run_before_its_release(tmp_path: Path) -> None:
    process = gated(tmp_path, "touch", str(tmp_path / "made"))
    time.sleep(0.2)
    assert not (tmp_path / "made").exists() and process.status() is None
    process.release()
    wait_for(lambda: process.status() == 0)
    assert (tmp_path / "made").exists()


def test_a_program_whose_starter_dies_before_its_release_never_runs(tmp_path: Path) -> None:
    script = f"""
        import os, sys
        from pathlib import Path
        from strakes.lab.process import GatedProcess
        process = GatedProcess(["touch", "{tmp_path}/made"], log=Path("{tmp_path}/log"), lab_id="gate-test")
        print(process.pid, process.started, flush=True)
        os.kill(os.getpid(), 9)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == -signal.SIGKILL
    pid, started = map(int, done.stdout.split())
    wait_for(lambda: not is_alive(ProcessRecord("x", pid, started)))
    assert not (tmp_path / "made").exists()


def test_the_release_keeps_the_process_id_and_start_time(tmp_path: Path) -> None:
    process = gated(tmp_path, "sleep", "60")
    process.release()
    wait_for(lambda: Path(f"/proc/{process.pid}/comm").read_text().strip() == "sleep")
    assert process_start(process.pid) == process.started
    os.kill(process.pid, signal.SIGKILL)
    wait_for(lambda: process.status() == -signal.SIGKILL)


def test_all_processes_of_a_lab_and_their_descendants_are_found_and_killed(tmp_path: Path) -> None:
    process = gated(tmp_path, "/bin/sh", "-c", "setsid sleep 61 & setsid sleep 62 & wait", lab="find-test")
    process.release()
    wait_for(lambda: len(members("find-test", (), ())) == 3)
    assert not members("find", (), ())
    assert not kill_all("find-test", (), (), patience_s=20)
    assert not members("find-test", (), ())
    wait_for(lambda: process.status() is not None)


def test_a_process_without_the_mark_is_found_by_its_record(tmp_path: Path) -> None:
    process = subprocess.Popen(["sleep", "63"])
    record = ProcessRecord("client", process.pid, process_start(process.pid) or 0)
    assert members("no-such-lab", (record,), ()) == {record.pid: record.started}
    # A process with the same ID and another start time is a different one.
    assert not members("no-such-lab", (ProcessRecord("client", record.pid, record.started - 1),), ())
    assert not kill_all("no-such-lab", (record,), (), patience_s=20)
    assert process.wait() == -signal.SIGKILL


def test_a_command_that_takes_too_long_is_killed_with_its_children() -> None:
    done = run(["/bin/sh", "-c", "sleep 64 & sleep 64"], limit_s=0.3, lab_id="limit-test")
    assert done.status is None and "in time" in done.complaint
    wait_for(lambda: not members("limit-test", (), ()))


def test_a_missing_program_is_reported_without_a_crash() -> None:
    done = run(["no-such-program"], limit_s=1)
    assert done.status == 127 and "no-such-program" in done.complaint


def test_environment_variables_for_other_clusters_do_not_reach_labs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CEPH_CONF", "/etc/ceph/production.conf")
    monkeypatch.setenv("KEPT", "yes")
    assert run(["/bin/sh", "-c", "echo $CEPH_CONF/$KEPT"], limit_s=10).stdout == "/yes\n"


def test_processes_working_in_a_directory_are_named(tmp_path: Path) -> None:
    inside = tmp_path / "a"
    inside.mkdir()
    (tmp_path / "ab").mkdir()
    process = subprocess.Popen(["sleep", "65"], cwd=inside)
    other = subprocess.Popen(["sleep", "65"], cwd=tmp_path / "ab")
    try:
        wait_for(lambda: users_of(inside) == {process.pid: "sleep"})
    finally:
        for one in (process, other):
            one.kill()
            one.wait()
