"""Execution of commands with time and output limits, even if they cannot be killed, and quoting for servers."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path

import pytest

from conftest import wait_for
from strakes.base.errors import BadInputError, EnvironmentLacksError, MeasurementError
from strakes.targets.command import OUTPUT_BYTES, CommandTimeout, Completed, Servers, run
from strakes.targets.lustre_tool import Params, ask_servers

FREEZER = Path("/sys/fs/cgroup/freezer")


def _gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_output_and_status_are_kept() -> None:
    done = run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (done.status, done.stdout, done.stderr) == (3, "out\n", "err\n")
    assert run(["sh", "-c", "echo a > /dev/stderr; echo b | tee -a /dev/stderr"]).stderr == "a\nb\n"
    assert run(["cat"]).stdout == ""  # standard input is empty
    assert len(run(["head", "-c", "5000000", "/dev/zero"]).stdout) == 5_000_000
    assert os.fsencode(run(["printf", "caf\\351"]).stdout) == b"caf\xe9"
    assert run(["sh", "-c", "kill -9 $$"]).status == -signal.SIGKILL
    # It cannot ask on a terminal.
    assert run(["sh", "-c", "exec 2>/dev/null; read answer < /dev/tty"]).status != 0


def test_a_sleeping_child_is_killed_at_the_limit_and_the_command_is_named() -> None:
    with pytest.raises(CommandTimeout) as caught:
        run(["sleep", "60"], 0.2)
    assert caught.value.where == "sleep 60" and "0.2 s" in caught.value.what
    assert isinstance(caught.value, MeasurementError)
    with pytest.raises(CommandTimeout) as caught:
        run(["sh", "-c", "echo still waiting for OST0003 >&2; exec sleep 60"], 0.5)
    assert caught.value.why == "still waiting for OST0003"


def test_its_children_are_killed_with_it(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    with pytest.raises(CommandTimeout):
        run(["sh", "-c", f"sleep 60 & echo $! > {pid_file}; wait"], 0.5)
    wait_for(lambda: _gone(int(pid_file.read_text())))


def test_a_background_process_does_not_keep_the_command_waiting(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    done = run(["sh", "-c", f"sleep 60 & echo $! > {pid_file}; echo done"])
    os.kill(int(pid_file.read_text()), signal.SIGKILL)
    assert done.stdout == "done\n"


def test_messages_are_in_english_in_every_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.setenv("LANGUAGE", "de")
    assert "No such file" in run(["ls", "/nonexistent"]).stderr


def test_tools_of_administrators_are_found_without_being_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert "/usr/sbin" in run(["sh", "-c", "echo $PATH"]).stdout


@pytest.mark.parametrize("name", ["strakes-no-such-tool", "/etc/passwd"])
def test_a_tool_that_does_not_start_is_an_error_of_the_environment(name: str) -> None:
    with pytest.raises(EnvironmentLacksError) as caught:
        run([name])
    assert name in caught.value.what and caught.value.why and caught.value.remedy


@pytest.fixture
def freezer() -> Iterator[Path]:
    """Make a freezer control group. Like processes that wait for a dead server, its frozen ones ignore SIGKILL."""
    if not (FREEZER / "cgroup.procs").exists() or os.geteuid() != 0:
        pytest.skip("needs root and the freezer of cgroup v1")
    group = FREEZER / f"strakes-test-{os.getpid()}"
    group.mkdir()
    try:
        yield group
    finally:
        (group / "freezer.state").write_text("THAWED")
        for _ in range(500):
            with suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.01)


def run_and_then(act: Callable[[str], None], error: type[BaseException], limit_s: float, pid_file: Path) -> int:
    """Run a command, and call ``act`` with its pid in a thread. Require ``error``, and return the pid."""

    def wait_and_act() -> None:
        wait_for(lambda: pid_file.exists() and pid_file.read_text())
        act(pid_file.read_text())

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    try:
        with pytest.raises(error):
            run(["sh", "-c", f"echo $$ > {pid_file}; exec sleep 60"], limit_s)
    finally:
        thread.join()
    return int(pid_file.read_text())


def test_a_child_that_cannot_be_killed_is_left_to_itself(freezer: Path, tmp_path: Path) -> None:
    def freeze(pid: str) -> None:
        (freezer / "cgroup.procs").write_text(pid)
        (freezer / "freezer.state").write_text("FROZEN")

    pid = run_and_then(freeze, CommandTimeout, 1.0, tmp_path / "pid")
    assert not _gone(pid)
    # When it is thawed and dies, a later command reaps it.
    (freezer / "freezer.state").write_text("THAWED")
    while Path(f"/proc/{pid}").exists():
        run(["true"])


def test_ctrl_c_ends_the_command(tmp_path: Path) -> None:
    assert _gone(run_and_then(lambda _: os.kill(os.getpid(), signal.SIGINT), KeyboardInterrupt, 30, tmp_path / "pid"))


def test_servers_quote_for_a_remote_shell_only() -> None:
    argv = ["lctl", "get_param", "mdt.*.md_stats"]
    assert Servers("ssh -o BatchMode=yes {host} sudo").argv("oss1", argv) == (
        *("ssh", "-o", "BatchMode=yes", "oss1", "sudo", "lctl", "get_param", "'mdt.*.md_stats'"),
    )
    assert Servers("ip netns exec {host}").argv("oss1", argv) == ("ip", "netns", "exec", "oss1", *argv)
    assert Servers("sshpass -f key /usr/bin/ssh root@{host}").argv("a", ["x y"])[-2:] == ("root@a", "'x y'")


@pytest.mark.parametrize("template", ["", "ssh", "ssh 'x {host}"])
def test_a_template_without_a_place_for_the_host_is_refused(template: str) -> None:
    with pytest.raises(BadInputError, match="template") as caught:
        Servers(template)
    assert "ssh {host} sudo" in caught.value.remedy


def test_a_server_runs_the_command_by_the_template() -> None:
    done = Servers("env WHERE={host}").runner("oss1", run)(["sh", "-c", "echo $WHERE"])
    assert (done.stdout, done.argv) == ("oss1\n", ("sh", "-c", "echo $WHERE"))


def test_a_server_that_cannot_be_reached_is_named() -> None:
    def unreachable(argv: object, timeout_s: float = 0) -> Completed:
        return Completed((), 255, "", "Warning: added\nssh: connect to host oss1 port 22: No route to host\n")

    with pytest.raises(MeasurementError, match="cannot be reached") as caught:
        Servers("ssh {host} sudo").runner("oss1", unreachable)(["true"])
    assert (
        caught.value.where == "oss1"
        and "No route" in caught.value.why
        and caught.value.remedy == "Try: ssh oss1 sudo true"
    )


@pytest.mark.parametrize(
    "host", ["a;id", "a b", "a\nb", "$(id)", "-oProxyCommand=id", "", "a`id`", "a\x1b[2J", "o\u0455s1"]
)
def test_a_host_with_shell_syntax_is_refused(host: str) -> None:
    with pytest.raises(BadInputError, match="host"):
        Servers("ssh admin ssh {host}").argv(host, ["true"])


@pytest.mark.parametrize(
    "host", ["oss1", "root@10.0.0.1", "fe80::1%eth0", "[::1]", "_gateway", "10.0.0.1@tcp", "a-b.example"]
)
def test_names_and_addresses_are_hosts(host: str) -> None:
    assert Servers("ssh {host}").argv(host, ["true"])[1] == host


def test_arguments_pass_unchanged_through_nested_remote_shells(tmp_path: Path) -> None:
    shell = tmp_path / "ssh"
    shell.write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
    shell.chmod(0o755)
    word = "a b;$(id)'\"\n-x"
    for template in (f"{shell} {{host}}", f"{shell} admin {shell} {{host}}"):
        done = run(Servers(template).argv("oss1", ["printf", "%s", word]))
        assert (done.status, done.stdout) == (0, word)


def test_output_up_to_the_limit_is_kept_and_many_servers_share_the_limit() -> None:
    limited = copy_context()
    limited.run(OUTPUT_BYTES.set, 4096)
    assert len(limited.run(run, ["head", "-c", "4096", "/dev/zero"]).stdout) == 4096
    for command in ("head -c 4097 /dev/zero", "head -c 4097 /dev/zero >&2; exec sleep 60"):
        with pytest.raises(MeasurementError, match="printed too much"):
            limited.run(run, ["sh", "-c", command], 2.0)
    ways = {
        str(number): lambda argv, _=0: Completed(tuple(argv), 0, f"a={OUTPUT_BYTES.get()}", "") for number in range(64)
    }
    assert ask_servers(ways, "a")["63"] == Params({"a": str(1 << 20)})
