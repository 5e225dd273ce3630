from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from conftest import wait_for
from strakes.base.processes import process_start
from strakes.lab.process import MARK, complaint, kill_all, members, run, start, users_of
from strakes.lab.state import ProcessRecord


def test_all_processes_of_a_lab_and_their_descendants_are_found_and_killed(tmp_path: Path) -> None:
    words = ("/bin/sh", "-c", "setsid sleep 61 & setsid sleep 62 & wait")
    process = start(words, log=tmp_path / "log", lab_id="find-test")
    wait_for(lambda: len(members("find-test", (), ())) == 3)
    assert not members("find", (), ()) and not kill_all("find-test", (), (), patience_s=20)
    assert not members("find-test", (), ())
    wait_for(lambda: process.poll() is not None)


def test_a_process_without_the_mark_is_found_by_its_record(tmp_path: Path) -> None:
    process = subprocess.Popen(["sleep", "63"])
    record = ProcessRecord("client", process.pid, process_start(process.pid) or 0)
    assert members("no-such-lab", (record,), ()) == {record.pid: record.started}
    # A process with the same ID and another start time is a different one.
    assert not members("no-such-lab", (ProcessRecord("client", record.pid, record.started - 1),), ())
    assert not kill_all("no-such-lab", (record,), (), patience_s=20) and process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("mode", [0o755, 0o4755], ids=["ordinary", "set-user-id"])
def test_a_process_that_another_user_marks_does_not_belong_to_the_lab(tmp_path: Path, mode: int) -> None:
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    program = shutil.copy("/bin/sleep", tmp_path)
    os.chmod(program, mode)
    with open(program, "rb") as file:
        words = [f"/proc/self/fd/{file.fileno()}", "66"]
        process = subprocess.Popen(words, pass_fds=[file.fileno()], env={MARK: "false-mark"}, user=65534)
    assert not kill_all("false-mark", (), (), patience_s=20) and process.poll() is None
    process.kill()
    process.wait()


def test_a_command_that_takes_too_long_is_killed_with_its_children() -> None:
    done = run(["/bin/sh", "-c", "sleep 64 & sleep 64"], limit_s=0.3, lab_id="limit-test")
    assert done.status == -signal.SIGKILL and "in time" in complaint(done)
    wait_for(lambda: not members("limit-test", (), ()))


def test_a_missing_program_is_reported_without_a_crash() -> None:
    done = run(["no-such-program"], limit_s=1)
    assert done.status == 127 and "no-such-program" in complaint(done)


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
