"""Commands on a hanging mount end soon and name the mount and a remedy. A watch keeps trying."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from threading import Thread

import pytest

from conftest import ROOT
from mounts import FaultyMount, faulty_mounted

pytestmark = pytest.mark.long

# All FUSE requests that can block a program.
CALLS = (
    *("lookup", "getattr", "setattr", "mknod", "mkdir", "unlink", "rmdir", "rename", "open", "read", "write", "statfs"),
    *("release", "fsync", "flush", "opendir", "readdir", "releasedir", "fsyncdir", "create"),
)
# 30 s for the command, and 45 s for start and exit of a program on a busy machine.
WITHIN_S = 75.0
APPLICATION = ROOT / "examples" / "apps" / "restart-dump.toml"
COMMANDS = (
    "target {dir}",
    "clean {dir}",
    "lab status",
    "lab exec hosts n1 true",
    "knobs list {dir}",
    "knobs restore {dir}",
    "survey {dir} --budget 20s",
    "study transfer-size {dir} --budget 20s",
    "study transfer-size /tmp --against {dir} --budget 20s",
    "study reproduce S1 {dir} --budget 20s",
    "tune {dir} --app {app} --budget 20s",
    "accept {needs} {dir} --budget 20s",
    "run {plan} {dir} --budget 20s",
    "run ior -t 1m -b 4m -o {dir}/file",
    "run mdtest -n 10 -d {dir}",
    "failover drill {dir} --fault-command true --restore-command true --yes-this-interrupts-service",
)


@pytest.fixture
def mount() -> Iterator[FaultyMount]:
    with faulty_mounted() as mounted:
        mounted.hang(*CALLS)
        try:
            yield mounted
        finally:
            mounted.mend()


def start(*words: str, **variables: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1", **variables}
    return subprocess.Popen(
        [sys.executable, "-m", "strakes", *words],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_ends_and_names_the_mount(mount: FaultyMount, line: str) -> None:
    examples = {
        "app": APPLICATION,
        "needs": ROOT / "examples" / "needs-s3.toml",
        "plan": ROOT / "examples" / "probe.toml",
    }
    words = [word.format(dir=mount.place, **examples) for word in line.split()]
    with start(*words, XDG_STATE_HOME=str(mount.place)) as process:
        try:
            text, _ = process.communicate(timeout=WITHIN_S)
        finally:
            process.kill()
    assert process.returncode == 1, text
    assert "does not answer" in text and str(mount.place) in text and "  next: " in text
    assert ("answer again, run: strakes knobs restore" in text) == line.startswith("knobs restore")


@pytest.mark.parametrize("options", [(), ("--no-probe",)])
def test_a_watch_names_the_hanging_mount_and_continues_when_it_answers(
    mount: FaultyMount, tmp_path: Path, options: tuple[str, ...]
) -> None:
    with start("watch", "run", str(mount.place), "--store", str(tmp_path), *options) as process:
        lines = _lines(process)
        try:
            assert "does not answer" in lines.get(timeout=WITHIN_S)
            assert str(mount.place) in lines.get(timeout=WITHIN_S) and _until(lines, "watching ")
            assert "does not answer" in _until(lines, "cannot be read" if options else "cannot work")
            mount.mend()
            assert _until(lines, "can be read again" if options else "works again")
            process.send_signal(signal.SIGTERM)
            assert process.wait(WITHIN_S) == 0
        finally:
            process.kill()


def test_a_watch_can_be_ended_while_the_mount_hangs(mount: FaultyMount, tmp_path: Path) -> None:
    mount.mend()
    with start("watch", str(mount.place), "--store", str(tmp_path)) as process:
        lines = _lines(process)
        try:
            _until(lines, "watching ")
            while not list(mount.place.iterdir()):
                time.sleep(0.1)
            mount.hang(*CALLS)
            time.sleep(2)
            process.send_signal(signal.SIGTERM)
            # The exit status is not 0, because the files of the watch's probe cannot be removed.
            assert process.wait(WITHIN_S) in (1, 130) and _until(lines, "left behind")
        finally:
            process.kill()


def _lines(process: subprocess.Popen[str]) -> Queue[str]:
    lines: Queue[str] = Queue()
    assert process.stdout is not None
    output = process.stdout

    def read() -> None:
        for line in output:
            lines.put(line)

    Thread(target=read, daemon=True).start()
    return lines


def _until(lines: Queue[str], words: str) -> str:
    while words not in (line := lines.get(timeout=WITHIN_S)):
        pass
    return line
