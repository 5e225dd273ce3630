"""A watch of a real CephFS: a slow object store, a killed metadata server, and a heavy client."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from conftest import ROOT, wait_for
from lab.running import Labs
from strakes.lab.ceph_monitor import Monitors

pytestmark = [pytest.mark.lab, pytest.mark.long]

# The usual load of a few users, small files written repeatedly. Arguments: THREADS DIRECTORY PAUSE_S.
_EVERYDAY = """
import os, sys, threading, time
def work(number):
    count = 0
    while True:
        count += 1
        try:
            with open(f"{sys.argv[2]}/{number}.{count % 50}", "wb") as file:
                file.write(os.urandom(16384))
                os.fsync(file.fileno())
        except OSError:
            pass
        time.sleep(float(sys.argv[3]))
for number in range(int(sys.argv[1])):
    threading.Thread(target=work, args=(number,)).start()
"""
# A metadata storm: directories created and removed without a pause.
_STORM = """
import os, sys
count = 0
while True:
    count += 1
    try:
        os.mkdir(f"{sys.argv[1]}/{count % 100}")
        os.rmdir(f"{sys.argv[1]}/{count % 100}")
    except OSError:
        pass
"""


@contextmanager
def working(*words: str | Path) -> Iterator[None]:
    process = subprocess.Popen(["nice", "-n", "10", *map(str, words)], stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait(60)


@contextmanager
def mounted(configuration: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sl-mnt-") as directory:
        words = ["ceph-fuse", "-f", "-c", configuration, "-n", "client.admin", directory]
        client = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(lambda: os.path.ismount(directory))
            yield Path(directory)
        finally:
            subprocess.run(["umount", "--lazy", directory], check=True, timeout=30)
            # The client ends after its write-back, which never completes without servers.
            with suppress(subprocess.TimeoutExpired):
                client.wait(60)
            client.kill()
            client.wait(60)


def wait_for_line(said: Path, pattern: str, limit_s: float) -> str:
    """Return the first line that matches ``pattern``; raises AssertionError after ``limit_s`` seconds."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        for line in said.read_text().splitlines():
            if re.search(pattern, line):
                return line
        time.sleep(1)
    raise AssertionError(f"not said within {limit_s:g} s: {pattern}\n{said.read_text()}")


def test_a_watch_reports_a_slow_store_a_fail_over_and_a_heavy_client(labs: Labs, tmp_path: Path) -> None:
    # With two replicas, other stores wait for the slow one. They must not be called slow.
    mount = labs.up("ceph --osds 3 --mds 1 --standby 1 --osd-size 2GiB --pool-size 2 --slow-osd 1=60")
    said = tmp_path / "said"
    environment = {**labs.environment, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
    (mount / "everyday").mkdir()
    with ExitStack() as stack:
        stack.enter_context(working(sys.executable, "-c", _EVERYDAY, "3", mount / "everyday", "0.05"))
        words = [sys.executable, "-m", "strakes", "watch", str(mount), "--store", str(tmp_path / "store")]
        with said.open("w") as file:
            watch = subprocess.Popen(words, env=environment, stdout=file, stderr=subprocess.STDOUT)
        stack.callback(watch.kill)

        line = wait_for_line(said, "slow-target", 300)
        assert "data target osd.1 is slow" in line

        configuration = labs.status("ceph")["facts"]["ceph_conf"]
        with Monitors(Path(configuration)) as monitors:
            servers = monitors.command("fs dump")["filesystems"][0]["mdsmap"]["info"].values()
        active = next(server["name"] for server in servers if server["state"] == "up:active")
        os.kill(labs.pids("ceph", f"mds.{active}")[0], signal.SIGKILL)
        line = wait_for_line(said, "fail-over", 180)
        waited = re.search(r"cephfs:0 was away for .*clients waited (?:up to|at least) ([\d.]+ (?:ms|s|min))", line)
        assert waited, line

        # The watch learns the usual rates of the new server.
        time.sleep(60)
        other = stack.enter_context(mounted(configuration))
        (other / "storm").mkdir()
        with working(sys.executable, "-c", _STORM, other / "storm"):
            line = wait_for_line(said, " heavy ", 240)
        assert re.search(r"client\.\d+ on \S+ causes \d+% of the load", line), line

        watch.send_signal(signal.SIGTERM)
        assert watch.wait(90) == 0
    text = said.read_text()
    slow = {line for line in text.splitlines() if " slow-target " in line}
    assert all("osd.1" in line for line in slow), text
    own = re.search(r"own load: ([\d.]+)% of a processor over .*, ([\d.]+) MiB of memory at most", text)
    assert own and float(own[1]) < 1 and float(own[2]) < 128, text
