"""A fault is undone however its drill ends: normally, by Ctrl-C, by kill -9, or by a power cut."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import chdir
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from conftest import StrakesRunner, wait_for
from mounts import faulty_mounted
from strakes.base.errors import BadInputError, EnvironmentLacksError, MeasurementError, StrakesError
from strakes.base.files import default_root
from strakes.base.processes import process_start, python_module
from strakes.control import drill_guard as guard
from strakes.control import drill_journal as journal
from strakes.control.drill_undo import MountTargets, RepairLab, RunCommand, Undo
from strakes.control.fault import Ask, CommandFault, PowerOff
from strakes.targets.command import CommandTimeout, Completed
from strakes.targets.mountinfo import Mount

AGREED = "--yes-this-interrupts-service"
SHORT = ("--clients", "2", "--rate", "20", "--before", "1s", "--after", "4s", AGREED)


def begun(place: Path, *commands: str) -> subprocess.Popen[bytes]:
    words = ("failover", "drill", str(place), *commands, "--before", "1s", "--after", "60s", AGREED)
    nowhere = subprocess.DEVNULL
    return subprocess.Popen([sys.executable, "-m", "strakes", *words], stdin=nowhere, stdout=nowhere, stderr=nowhere)


def ended(path: Path) -> None:
    document = json.loads(path.read_text())
    document["owner"]["boot"] = "the one before the power cut"
    path.write_text(json.dumps(document))


def test_a_fault_is_undone_at_the_end_after_ctrl_c_and_after_kill_9(strakes: StrakesRunner, tmp_path: Path) -> None:
    place, mark = tmp_path / "place", tmp_path / "mark"
    place.mkdir()
    commands = ("--fault-command", f"touch {mark}", "--restore-command", f"rm {mark}")
    done = strakes("failover", "drill", place, *commands, *SHORT, "--moments")
    assert done.returncode == 0 and not mark.exists() and f"run: rm {mark}" in done.stdout, done.stderr
    service = f"sh -c 'sleep 90 & echo $! >{tmp_path}/pid'"
    assert strakes("failover", "drill", place, *commands[:3], service, *SHORT).returncode == 0
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)  # This service still runs after the drill.
    mark.unlink()
    slow = ("--fault-command", f"sh -c 'touch {mark}; sleep 2; touch {mark}'", *commands[2:])
    once = (*commands[:3], f"sh -c 'sleep 1; rm {mark}; echo >>{tmp_path}/pid'")
    for number, said, status in ((signal.SIGINT, commands, 130), (signal.SIGKILL, slow, -9), (signal.SIGKILL, once, 3)):
        running = begun(place, *said)
        wait_for(mark.exists)
        owner = journal.read_all(default_root())[0][0].owner.pid
        os.kill(owner if said == once else running.pid, number)
        assert running.wait(60) == status
        # After SIGKILL the guard undoes the fault, and first waits for the command that causes it.
        wait_for(lambda: not mark.exists() and not journal.read_all(default_root())[0])
    assert (tmp_path / "pid").read_text().count("\n") == 2  # The parent does not undo the fault again.
    wait_for(lambda: strakes("clean", place).returncode == 0 and not any(place.iterdir()))


def test_a_fault_is_undone_although_the_owner_of_the_store_moves_its_record(tmp_path: Path) -> None:
    place, mark = tmp_path / "place", tmp_path / "mark"
    place.mkdir()
    running = begun(place, "--fault-command", f"touch {mark}", "--restore-command", f"rm {mark}")
    wait_for(mark.exists)
    drills = default_root() / "drills"
    drills.rename(drills.with_name("hidden"))
    running.send_signal(signal.SIGINT)
    assert running.wait(60) == 130 and not mark.exists()  # The restored record must not undo the fault again.
    drills.with_name("hidden").rename(drills)
    assert journal.read_all(default_root())[0] == ()


def test_after_a_power_cut_the_next_command_undoes_the_fault(strakes: StrakesRunner, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    mark.touch()
    path = journal.announce(default_root(), "pulled the plug", RunCommand(("rm", str(mark))))
    ended(path)
    assert path.stat().st_mode & 0o077 == 0
    ours = path.read_text()
    for key in ("host", "machine"):
        path.write_text(ours.replace(f'"{key}": "', f'"{key}": "another'))
        undone = strakes("failover", "undo")
        assert undone.returncode == 1 and "run strakes failover undo there" in undone.stdout and mark.exists()
    path.write_text(ours)
    assert "ended without undoing its fault (pulled the plug)" in strakes("runs").stderr
    assert not mark.exists() and not path.exists()


def test_a_failed_undo_stays_on_record_and_can_be_retried(
    strakes: StrakesRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "UNDO_LIMIT_S", 0.0)
    lacking = tmp_path / "lacking"
    promise, told = guard.Promise(default_root(), "pulled the plug", RunCommand(("ls", str(lacking)))), list[str]()
    promise.begin()
    with pytest.raises(MeasurementError, match="No such file"):
        promise.keep(told.append)
    promise.close()
    assert f"Left to do: run: ls {lacking}. Try again: strakes failover undo" in promise.left
    ended(journal.read_all(default_root())[0][0].path)
    tried = strakes("failover", "undo")
    assert tried.returncode == 1 and "No such file" in tried.stdout and len(journal.read_all(default_root())[0]) == 1
    lacking.touch()
    tried = strakes("failover", "undo")
    assert tried.returncode == 0 and not journal.read_all(default_root())[0], tried.stdout
    ended(journal.announce(default_root(), "pulled the plug", RunCommand(("rm", str(lacking)))))
    assert f"to undo it by hand, run: rm {lacking}\n" in strakes("failover", "undo", "--forget").stdout
    assert lacking.exists() and not journal.read_all(default_root())[0]


def test_a_drill_whose_guard_cannot_be_started_leaves_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, found in (
        (f"{guard.__name__}.python_module", Mock(return_value=["true"])),
        ("subprocess.Popen", Mock(side_effect=BlockingIOError(errno.EAGAIN, "Try again"))),
    ):
        monkeypatch.setattr(name, found)
        with pytest.raises(EnvironmentLacksError, match="the process that undoes the fault cannot be started"):
            guard.Promise(default_root(), "pulled the plug", RunCommand(("false",)))
        with pytest.raises(BadInputError, match="the record of the fault is too large"):
            guard.Promise(default_root(), "x" * (1 << 20), RunCommand(("false",)))
        assert journal.read_all(default_root()) == ((), ())


def test_the_guard_undoes_a_fault_in_time_although_its_drill_is_stopped(
    strakes: StrakesRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undone, struck = tmp_path / "undone", tmp_path / "struck"
    for begins, is_caused, within_s in (
        (True, True, -guard._LATE_S),
        (True, False, 2.0 - guard.UNDO_LIMIT_S),
        (False, False, -guard.UNDO_LIMIT_S),
    ):
        promise = guard.Promise(default_root(), "pulled the plug", RunCommand(("touch", str(undone))), within_s)
        strike = RunCommand((*promise.gate(), "touch", str(struck)))
        if begins:
            strike.do()
        if is_caused:
            promise.caused()
        wait_for(lambda: not journal.read_all(default_root())[0])
        if not begins:
            with pytest.raises(MeasurementError, match="a command failed"):
                strike.do()
        assert undone.exists() == struck.exists() == begins
        for mark in (undone, struck):
            mark.unlink(missing_ok=True)
        # The drill is continued. It may end a state that the administrator has set since.
        assert promise.keep() == "" and not undone.exists()
        promise.close()
    # The drill is killed while its guard starts.
    record = journal.announce(default_root(), "pulled the plug", RunCommand(("touch", str(undone))))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))  # as ./strakes
    promise = guard.Promise(default_root(), "pulled the plug", RunCommand(("true",)))
    with record.open("r+b") as file, subprocess.Popen(["true"], stdin=subprocess.PIPE) as gone:
        gone.wait()
        words = python_module(guard.__name__, str(record), *map(str, (file.fileno(), file.fileno(), promise._pipe, 9)))
        descriptors = (file.fileno(), promise._pipe)
        subprocess.run(words, stdin=subprocess.DEVNULL, stdout=gone.stdin, pass_fds=descriptors, check=True)
    assert not record.exists() and not undone.exists()
    os.close(journal._copy_of_guard(journal.read_all(default_root())[0][0].path.name))
    promise.close()
    for begin, keep in ((True, True), (True, False), (False, False)):
        promise = guard.Promise(default_root(), "pulled the plug", RunCommand(("touch", str(undone))))
        if begin:
            promise.begin()
        named = strakes("failover", "undo")
        assert named.returncode == 1
        assert f"(by process {os.getpid()} on " in named.stdout and "still running" in named.stdout
        os.kill(promise._guard.pid, signal.SIGSTOP)
        assert not keep or promise.keep()
        promise.close()
        assert undone.exists() == begin and not journal.read_all(default_root())[0]
        undone.unlink(missing_ok=True)


def test_a_command_that_hangs_is_ended_before_its_fault_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undone, struck, service = (tmp_path / name for name in ("undone", "struck", "service"))
    promise = guard.Promise(default_root(), "pulled the plug", RunCommand(("touch", str(undone))))
    (record,) = journal.read_all(default_root())[0]
    assert "did not begin" in journal.put_right(record.path) and not undone.exists()
    promise.close()
    promise = guard.Promise(default_root(), "pulled the plug", RunCommand(("touch", str(undone))))
    (record,) = journal.read_all(default_root())[0]
    script = f"setsid sleep 99 & echo $! >{service}; touch {struck}; sleep 99; rm {undone}"
    with subprocess.Popen((*promise.gate(), "sh", "-c", script), start_new_session=True) as command:
        wait_for(struck.exists)
        for name in ("COMMAND_S", "_END_S"):
            monkeypatch.setattr(journal, name, 0.5)
        with monkeypatch.context() as patch:
            patch.setattr(os, "kill", Mock(side_effect=PermissionError))
            with pytest.raises(MeasurementError, match=f"still runs.*{command.pid}") as refused:
                journal.put_right(record.path)
        assert undone.exists() and str(undone) in refused.value.why and command.poll() is None
        assert journal.put_right(record.path) and not record.path.exists()
    assert command.returncode == 128 + signal.SIGKILL
    os.kill(int(service.read_text()), signal.SIGKILL)  # This service still runs.
    promise.close()


def test_an_interrupt_during_a_slow_undo_leaves_it_to_the_guard_and_prints_the_outcome(tmp_path: Path) -> None:
    place, mark, begun, ready = (tmp_path / name for name in ("place", "mark", "begun", "ready"))
    place.mkdir()
    slow = f"sh -c 'echo a >>{begun}; until [ -e {ready} ]; do sleep 0.05; done; rm -f {mark}; echo b >>{begun}'"
    words = ("failover", "drill", str(place), "--fault-command", f"touch {mark}", "--restore-command", slow, *SHORT)
    with subprocess.Popen(
        [sys.executable, "-m", "strakes", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        wait_for(begun.exists)
        running.send_signal(signal.SIGINT)
        stdout, stderr = running.communicate(timeout=60)
    assert running.returncode == 130 and mark.exists(), stderr
    assert "200 files acknowledged, 0 of them missing afterwards" in stdout
    for told in (stdout, stderr):
        assert "the fault is not undone yet; process" in told and str(ready) in told and "failover undo" in told
    ready.touch()
    wait_for(lambda: not mark.exists() and not journal.read_all(default_root())[0])
    assert begun.read_text() == "a\nb\na\nb\n" and not any(place.iterdir())  # The guard waits for the first command.
    ready.unlink()
    causing = f"sh -c 'touch {mark}; until [ -e {ready} ]; do sleep 0.05; done'"
    words = (*words[:4], causing, *words[5:])
    running = subprocess.Popen([sys.executable, "-m", "strakes", *words], stderr=subprocess.PIPE, text=True)
    wait_for(mark.exists)
    for _ in range(3):  # also while the command that causes the fault still runs
        running.send_signal(signal.SIGINT)
        time.sleep(1.0)
    assert "the fault is not undone yet; process" in running.communicate(timeout=60)[1] and mark.exists()
    ready.touch()
    wait_for(lambda: not mark.exists() and not journal.read_all(default_root())[0])


def test_an_undo_needs_no_proc_and_stays_on_record_if_it_lacks_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, copy, nothing = journal.announce(tmp_path, "x", RunCommand(("true",))), os.memfd_create("x"), os.open("/", 0)
    os.write(copy, path.read_bytes())
    path.unlink()
    assert f"stays (No such file or directory): remove {path}," in journal.put_right_open(path, copy, nothing)
    path = journal.announce(tmp_path, "x", RunCommand(("true",)), begun=False)
    assert journal.put_right(path) == "nothing, because the fault did not begin"
    path = journal.announce(tmp_path, "x", RunCommand(("true",)))
    with path.open("rb") as file:  # The drill was killed after it had emptied the copy.
        assert journal.put_right_open(path, os.memfd_create("x"), file.fileno()) == "" and not path.exists()
    path = journal.announce(tmp_path, "pulled the plug", RunCommand(("touch", str(tmp_path / "undone"))))
    with monkeypatch.context() as patch:
        patch.setattr(RunCommand, "do", Mock(side_effect=FileNotFoundError("/missing")))
        with pytest.raises(MeasurementError, match="/missing"):
            journal.put_right(path)
    opened = os.open

    def without_proc(name: Any, *rest: Any, **options: Any) -> int:
        if str(name).startswith("/proc/self/fd/"):
            raise FileNotFoundError(name)
        return opened(name, *rest, **options)

    monkeypatch.setattr(os, "open", without_proc)
    assert journal.put_right(path) and (tmp_path / "undone").exists() and journal.put_right(path) == ""
    monkeypatch.setattr(Path, "read_text", Mock(side_effect=PermissionError))
    monkeypatch.setattr(Path, "iterdir", Mock(side_effect=PermissionError(errno.EACCES, "denied")))
    with pytest.raises(StrakesError, match="denied"):  # The directory is not taken for empty.
        journal.read_all(tmp_path)
    assert "Zx9" not in RunCommand(("env", "PASSWORD=Zx9Qw1Tm", "echo Zx9Qw1Tm")).text
    assert all("not exist" in RepairLab(lab, "b").do() for lab in (f"{tmp_path}/lab", "lab-of-an-older-record"))
    monkeypatch.setattr(os, "kill", Mock(side_effect=PermissionError))  # a process of another user, with hidepid=1
    assert process_start(1) is None


def test_a_damaged_record_is_named_and_not_executed(strakes: StrakesRunner, tmp_path: Path) -> None:
    path = journal.announce(default_root(), "pulled the plug", RunCommand(("touch", str(tmp_path / "mark"))))
    record = json.loads(path.read_text())
    wrong = [{}, *(record | {key: value} for key in record for value in (None, 5, [0], record["undo"] | {"argv": 5}))]
    texts = [path.read_text()[:40], "[" * 100_000, path.read_text().replace('"pid": ', '"pid": 1e400')]
    for text in (*texts, *map(json.dumps, wrong)):
        path.write_text(text)
        (error,) = journal.read_all(default_root())[1]
        assert (error.what, error.where) == ("a drill's journal is damaged", str(path)) and len(str(error)) < 1000
    good = journal.announce(default_root(), "pulled the plug", RunCommand(("touch", str(tmp_path / "good"))))
    ended(good)
    said = strakes("runs").stderr
    assert str(path) in said and "by hand" in said and list(tmp_path.iterdir()) == [tmp_path / "good"]
    path.write_text("[]")
    assert "by hand" in strakes("failover", "undo").stderr and not good.exists()


def test_a_password_file_readable_by_others_is_refused_and_the_password_is_on_no_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("swordfish")
    ask = Ask(tmp_path, bmc="10.0.0.1:9001", bmc_user="op", bmc_password_file=secret)
    secret.chmod(0o640)
    with pytest.raises(BadInputError, match="other users can read the password file"):
        PowerOff(ask)
    secret.chmod(0o600)
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "link").symlink_to(secret)
    for name, why in (("pipe", "not a regular file"), ("link", "symbolic link")):
        with pytest.raises(BadInputError, match=f"the password file cannot be read.*{why}"):
            PowerOff(replace(ask, bmc_password_file=tmp_path / name))
    if os.geteuid() == 0:
        os.chown(secret, 65534, 65534)
        with pytest.raises(BadInputError, match="other users can read the password file"):
            PowerOff(ask)
        os.chown(secret, 0, 0)
    typed: list[tuple[str, ...]] = []
    power = ["on"]

    def bmc(argv: Sequence[str], timeout_s: float = 1.0) -> Completed:
        typed.append(tuple(argv))
        refused = argv[-1] == power[0]  # as by BMCs of Dell
        if argv[-1] in ("on", "off"):
            power[0] = argv[-1]
        return Completed(tuple(argv), int(refused), f"Chassis Power is {power[0]}\n", "")

    mount = Mount(1, 0, 1, "/", "/home", (), "nfs4", "server:/home", ())
    with monkeypatch.context() as patch:
        patch.setattr("strakes.control.fault.mount_of", lambda _path: mount)
        with pytest.raises(BadInputError, match="make the password file unreadable"):
            PowerOff(ask)
        with pytest.raises(EnvironmentLacksError, match="file system of DIR"):
            CommandFault(replace(ask, fault_command="true", restore_command="true"))
    repeating = Completed((), 1, "", "RAKP 2: swordfish is wrong")
    with pytest.raises(EnvironmentLacksError, match=r"RAKP 2: \.\.\. is wrong"):
        PowerOff(replace(ask, bmc_password_file=secret), lambda *_: repeating)
    PowerOff(replace(ask, via="ssh node", bmc_user="a b"), bmc)
    assert "'a b'" in typed.pop()  # The remote shell removes these quotes.
    fault = PowerOff(ask, bmc)
    moments = fault.strike()
    assert power == ["off"] and moments[-1].text == "the command has ended" and fault.lacking()
    undo = fault.undo
    assert isinstance(undo, RunCommand) and undo.stays_s == 60.0  # the default of stonith-timeout
    cut_again = [Completed((), 0, f"Chassis Power is {word}\n", "") for word in ("on", "on", "off")]
    with pytest.raises(MeasurementError, match="no output with 'Chassis Power is on'"):
        undo.do(Mock(side_effect=cut_again))
    for _ in range(2):
        replace(undo, stays_s=0.1).do(bmc)
        assert power == ["on"] and not fault.lacking()
    assert "swordfish" not in f"{typed} {fault.text} {fault.undo}" and str(secret) in typed[0] and "9001" in typed[0]


MDT_MOUNTED = "/dev/b /mnt/b lustre ro,svname=labfs-MDT0001,mgsnode=10.0.0.1@tcp 0 0\n"
BOTH = MountTargets(
    ("labfs-MDT0001", "labfs-OST0001"),
    ("mount mdt", "mount ost"),
    "own cat /proc/mounts",
    ("first cat /proc/mounts", "second --token hidden cat /proc/mounts"),
)


class Servers:
    """Runner of commands on servers with the given mounts; a server whose mounts are None does not answer.

    A mount fails for a target that is mounted.
    """

    def __init__(self, **mounts: str | None) -> None:
        self.mounts = mounts
        self.mounted: list[str] = []

    def __call__(self, argv: Sequence[str], timeout_s: float = 10) -> Completed:
        assert timeout_s > 60  # a remote shell may take 20 s
        if argv[0] == "mount":
            twice = argv[1] in self.mounted
            self.mounted.append(argv[1])
            return Completed(tuple(argv), 32 if twice else 0, "", "")
        mounts = self.mounts.get(argv[0], "")
        return Completed(tuple(argv), 255 if mounts is None else 0, mounts or "", "No route to host" * (mounts is None))


def test_targets_are_mounted_except_one_that_another_server_has_taken_over() -> None:
    servers = Servers(first="svname=labfs-OST0001 /m fuse.x rw 0 0\n", second=MDT_MOUNTED)
    assert Undo.from_json(json.loads(json.dumps(BOTH.to_json()))) == BOTH
    assert BOTH.do(servers) == (
        "labfs-MDT0001 stays on the server that has mounted it (second --token ... cat /proc/mounts)"
    )
    assert servers.mounted == ["ost"]
    assert MountTargets(("labfs-MDT0001",), ("mount mdt",), "cat").do(servers) == "" and servers.mounted[-1] == "mdt"
    # An earlier attempt has mounted the first target.
    servers.mounts = {"own": f"cut off lustre\n{MDT_MOUNTED}"}
    servers.mounted = ["mdt"]
    assert BOTH.do(servers) == "" and servers.mounted == ["mdt", "mdt", "ost"]
    with pytest.raises(MeasurementError, match="a command failed"):
        BOTH.do(servers)


def test_no_target_is_mounted_if_a_server_that_may_have_it_does_not_answer() -> None:
    servers = Servers(first=None)
    with pytest.raises(MeasurementError, match="cannot be mounted again safely") as refused:
        BOTH.do(servers)
    assert servers.mounted == [] and "first cat /proc/mounts" in str(refused.value)
    assert "mount mdt; mount ost" in refused.value.remedy
    # Targets that are mounted by hand need no answer.
    both_mounted = MDT_MOUNTED + MDT_MOUNTED.replace("MDT", "OST")
    assert BOTH.do(Servers(first=None, own=both_mounted)) == ""


def test_the_undo_of_a_killed_drill_runs_in_the_directory_of_the_drill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("own", "planted"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "restore.sh").write_text(
            f"echo $CIB_server $CIB_file $(grep -c SECRET /proc/$PPID/cmdline) $CIB_passwd >{tmp_path}/by-{name}\n"
        )
    monkeypatch.chdir(tmp_path / "own")
    monkeypatch.setenv("CIB_passwd", "SECRET")
    monkeypatch.setenv("CIB_server", "first")
    paths = [journal.announce(tmp_path, "pulled the plug", RunCommand(("sh", "./restore.sh"))) for _ in range(2)]
    monkeypatch.setenv("CIB_server", "second")
    monkeypatch.setenv("CIB_file", "third")
    monkeypatch.chdir(tmp_path / "planted")
    journal.put_right(paths[0])
    assert (tmp_path / "by-own").read_text() == "first 0 SECRET\n" and Path.cwd() == tmp_path / "planted"
    (tmp_path / "own").rename(tmp_path / "gone")
    (tmp_path / "planted").rename(tmp_path / "own")
    with pytest.raises(MeasurementError, match=f"was replaced .* undo the fault by hand, then remove {paths[1]}"):
        journal.put_right(paths[1])
    assert paths[1].exists() and not (tmp_path / "by-planted").exists()
    monkeypatch.setattr("strakes.control.drill_undo.COMMAND_S", 0.1)
    with pytest.raises(CommandTimeout, match="; where: timeout 9 sleep 9041;"):
        journal.put_right(journal.announce(tmp_path, "pulled the plug", RunCommand(("timeout", "9", "sleep", "9041"))))
    assert subprocess.run(["pgrep", "-f", "sleep 9041"]).returncode == 1  # timeout(1) makes a process group.


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
def test_a_fault_is_undone_although_the_directory_of_its_drill_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool, shell: str
) -> None:
    monkeypatch.setattr(journal, "_ANSWER_S", 0.5)
    monkeypatch.setattr(journal, "SHELL", str(tmp_path / "sh"))
    (tmp_path / "sh").symlink_to(shell)
    with faulty_mounted() as mounted, chdir(mounted.place):
        for name in ("PWD", "OLDPWD", "HOME", "LD_LIBRARY_PATH"):
            monkeypatch.setenv(name, str(mounted.place))
        monkeypatch.setenv("PATH", f"{mounted.place}:{mounted.place}/bin:{os.environ['PATH']}")
        for fail in (partial(mounted.fail, errno=errno.ENOTCONN), mounted.hang):
            undo = RunCommand((os.path.basename(shell), "-c", f"touch {tmp_path}/undone"))
            path = journal.announce(tmp_path, "pulled the plug", undo)
            with path.open("r+b") as file:
                fail("getattr", "lookup")
                assert journal.put_right_open(path, file.fileno(), there=there)
                mounted.mend()
            (tmp_path / "undone").unlink()


def test_a_fault_is_undone_although_its_server_has_the_store(tmp_path: Path) -> None:
    undone = tmp_path / "answering"

    def answer() -> None:
        wait_for(undone.exists)
        mounted.mend()

    with faulty_mounted() as mounted:
        promise = guard.Promise(mounted.place, "stopped the server of the store", RunCommand(("touch", str(undone))))
        promise.begin()
        mounted.hang("open", "read", "flush")
        threading.Thread(target=answer).start()
        assert promise.keep() and not journal.read_all(mounted.place)[0]
        promise.close()
