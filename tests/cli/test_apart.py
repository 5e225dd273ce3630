"""A command in a separate process: its exit status, signals, and threads blocked on a dead server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import one_in, wait_for
from mounts import FaultyMount, faulty_mounted
from strakes.base.processes import kernel_waits, process_start

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 0.5
LOOK_EVERY_S = 0.1


def start(work: str, before: str = "") -> subprocess.Popen[str]:
    body = textwrap.indent(textwrap.dedent(work).strip(), "    ")
    program = f"""
import os, signal, sys, threading, time
from strakes.cli.apart import run_apart
def work():
{body}
from strakes.cli import apart
apart._DEAD_AFTER_S, apart._LOOK_EVERY_S = 3.0, {LOOK_EVERY_S}
{before}
sys.exit(run_apart(work, {PATIENCE_S}, lambda: ("/mnt/d", "server oss1 is silent", "wait")))
"""
    words = [sys.executable, "-c", program]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def gone(pid: int, within_s: float = 5.0) -> bool:
    deadline = time.monotonic() + within_s
    while process_start(pid) is not None and time.monotonic() < deadline:
        time.sleep(0.02)
    return process_start(pid) is None


@pytest.fixture
def mount() -> Iterator[FaultyMount]:
    with faulty_mounted() as mounted:
        yield mounted


@pytest.mark.parametrize(
    ("end", "status"), [("return 0", 0), ("return 1", 1), ("os.kill(os.getpid(), 15)", 130), ("os.kill(0, 9)", 256 - 9)]
)
def test_the_exit_status_and_all_output_of_the_work_are_passed_on(end: str, status: int) -> None:
    with start(f"print('worked' * 30_000, flush=True); {end}") as process:
        time.sleep(3)  # longer than the wait for processes that keep the output open
        assert process.communicate(timeout=20) == ("worked" * 30_000 + "\n", "")
    assert process.returncode == status


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_reaches_the_work_once_even_if_it_is_stopped(number: signal.Signals) -> None:
    work = f"""
        times = []
        signal.signal({int(number)}, lambda *_: times.append(1))
        print(os.getpid(), flush=True)
        time.sleep(0.5)
        return len(times)
    """
    with start(work) as process:
        os.kill(int(line_of(process)), signal.SIGSTOP)
        process.send_signal(number)
        process.communicate(timeout=20)
    assert process.returncode == 1


def test_killing_the_parent_ends_the_work() -> None:
    with start("print(os.getpid(), flush=True); time.sleep(60)") as process:
        child = int(line_of(process))
        process.kill()
        process.communicate(timeout=20)
        assert gone(child)


def test_a_suspended_command_resumes_with_its_work() -> None:
    with start("print('ready', flush=True); time.sleep(0.3); return 0") as process:
        assert line_of(process) == "ready"
        process.send_signal(signal.SIGTSTP)
        _, how = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(how)
        process.send_signal(signal.SIGCONT)
        assert process.wait(20) == 0


def test_a_command_continues_after_a_stop_that_is_longer_than_its_time_limit() -> None:
    with start("print('ready', flush=True); time.sleep(2); return 7") as process:
        assert line_of(process) == "ready"
        for _ in range(3):
            process.send_signal(signal.SIGSTOP)
            os.waitpid(process.pid, os.WUNTRACED)
            time.sleep(2 * LOOK_EVERY_S)
            process.send_signal(signal.SIGCONT)
        assert process.communicate(timeout=20) == ("", "")
    assert process.returncode == 7


# Starts a process whose thread blocks on a dead server, prints the process ID, and kills the process.
LEAVE = """
        import subprocess
        waits = "import os, sys, threading; threading.Thread(target=os.{call}, args=({arguments},)).start()"
        nowhere = subprocess.DEVNULL
        left = subprocess.Popen([sys.executable, "-c", waits], start_new_session=True, stdout=nowhere, stderr=nowhere)
        print(left.pid, flush=True)
        time.sleep(1)
        left.kill()
"""


@pytest.mark.parametrize("call", ["mkdir", "stat", "rmdir"])
@pytest.mark.parametrize("end", ["return 1", "os._exit(1)"])
def test_a_killed_process_that_stays_blocked_in_the_kernel_is_named(mount: FaultyMount, call: str, end: str) -> None:
    mount.hang("lookup", "mkdir", "getattr")
    try:
        with start(LEAVE.format(call=call, arguments=repr(str(mount.place / "d"))) + f"        {end}") as process:
            left = int(line_of(process))
            _, errors = process.communicate(timeout=20)
            assert process.returncode == 1
            assert f"process {left} (python" in errors and errors.count("left behind") == 1
            assert kernel_waits(left)
    finally:
        mount.mend()
    assert gone(left)


def test_processes_that_still_run_after_the_work_are_not_named() -> None:
    work = """
        import subprocess
        nowhere = subprocess.DEVNULL
        left = subprocess.Popen(["sleep", "30"], start_new_session=True, stdout=nowhere, stderr=nowhere)
        print(left.pid, flush=True)
        return 0
    """
    with start(work) as process:
        left = int(line_of(process))
        assert process.communicate(timeout=20) == ("", "") and process.returncode == 0
        os.kill(left, signal.SIGKILL)


@pytest.mark.parametrize(
    "work", one_in(2, ["os.mkdir({!r})", "threading.Thread(target=os.mkdir, args=({!r},)).start()"])
)
def test_an_interrupted_command_ends_within_half_a_minute_even_if_a_thread_hangs(mount: FaultyMount, work: str) -> None:
    mount.hang("mkdir")
    lines = f"""
        signal.signal(signal.SIGINT, lambda *_: None)
        print(os.getpid(), flush=True)
        {work.format(str(mount.place / "d"))}
        while True:
            time.sleep(1)
    """
    with start(lines) as process:
        try:
            child = int(line_of(process))
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130 and process.stderr is not None
            # Reading to end of file would block, as the hanging process keeps the pipe open.
            assert f"process {child} (python" in os.read(process.stderr.fileno(), 1 << 16).decode()
        finally:
            mount.mend()
    assert gone(child)


def test_a_process_that_ends_slowly_is_not_taken_for_one_blocked_on_a_server() -> None:
    work = """
        import atexit
        def busy():
            end = time.monotonic() + 7
            while time.monotonic() < end:
                pass
        atexit.register(busy)
        return 0
    """
    with start(work) as process:
        printed, errors = process.communicate(timeout=30)
        assert (process.returncode, printed, errors) == (0, "", "")


def test_work_blocked_on_a_dead_server_is_left_behind_with_a_message(mount: FaultyMount) -> None:
    mount.hang("mkdir")
    work = f"""
        print("begun", flush=True)
        os.mkdir({str(mount.place / "d")!r})
        return 0
    """
    try:
        with start(work, "signal.signal(signal.SIGHUP, signal.SIG_IGN)") as process:
            assert line_of(process) == "begun"
            process.send_signal(signal.SIGHUP)  # Ignored, it interrupts nothing, as with nohup.
            # communicate() returns only after the child has closed the pipes.
            printed, errors = process.communicate(timeout=30)
            assert (process.returncode, printed) == (1, "")
            assert errors.startswith("strakes: error: the file system does not answer\n")
            assert "where: /mnt/d\n" in errors and "server oss1 is silent\n" in errors
            assert "next: wait\n" in errors and "left behind" in errors
    finally:
        mount.mend()


def test_the_work_gets_a_broken_pipe_when_its_reader_closes() -> None:
    work = """
        try:
            while True:
                os.write(1, b"x" * 4096)
        except BrokenPipeError:
            return 9
    """
    with start(work) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(20) == 9


@pytest.mark.parametrize("is_read", [False, True])
def test_work_continues_and_ends_although_its_reader_is_stopped(is_read: bool) -> None:
    work = """
        from strakes.cli.say import LineWriter
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        lines = LineWriter()
        for number in range(3000):
            lines.say(f"{number} {'x' * 200}")
        print("all", file=sys.stderr, flush=True)
        signal.sigwait({signal.SIGTERM})
        return 0
    """
    with start(work) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stderr.readline() == "all\n"
        assert not is_read or any("lines could not be printed" in line for line in process.stdout)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


DEAD = "{'lus-MDT0000': LostServer('mds1', 'DISCONN')}"


@pytest.mark.parametrize(("lost", "wait_s"), [("{}", 0.0), (DEAD, 0.0), (DEAD, 60.0)])
def test_a_watchdog_limits_the_wait_of_a_blocked_command_and_then_restores_settings(
    mount: FaultyMount, lost: str, wait_s: float
) -> None:
    mount.hang("mkdir")
    work = f"""
        from types import SimpleNamespace
        from strakes.runs import watchdog
        from strakes.targets.target import LostServer
        act = watchdog.before_forced_end(lambda: "a=9", lambda: os.write(1, b"restored"))
        watchdog.LOST_FOR_S, watchdog._UNWIND_S, watchdog.GRACE_S = 0.0, 0.0, {wait_s}
        target = SimpleNamespace(mount=SimpleNamespace(remote=True), path="/mnt/d", lost_servers=lambda: {lost})
        with watchdog.servers_watched([target] if {wait_s or lost == DEAD} else []), act:
            os.mkdir({str(mount.place / "d")!r})
        return 7
    """
    try:
        with start(work) as process:
            if wait_s:
                time.sleep(6)
                mount.mend()
            printed, errors = process.communicate(timeout=30)
            assert (process.returncode, printed) == ((7, "") if wait_s else (1, "restored"))
            assert errors.count("a=9") == (0 if wait_s else 1)
            assert ("on mds1 does not answer: DISCONN. Waiting for at most" in errors) == (lost == DEAD)
            assert errors.count("strakes: error: ") == errors.count("where: /mnt/d\n") == (0 if wait_s else 1)
    finally:
        mount.mend()


def test_a_command_that_hangs_is_ended_with_its_process() -> None:
    work = """
        from strakes.base.processes import commands_of, process_start
        from strakes.targets.command import run
        threading.Thread(target=run, args=(["sh", "-c", "exec sleep 90"], 90), daemon=True).start()
        time.sleep(1)
        print(*commands_of(os.getpid(), process_start(os.getpid())), flush=True)
        return 7
    """
    with start(work) as process:
        printed, _ = process.communicate(timeout=30)
    assert process.returncode == 7 and printed
    wait_for(lambda: not Path(f"/proc/{printed.strip()}").exists())
