"""Servers stopped by SIGSTOP: strakes names the server and does not wait forever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conftest import ROOT, StrakesRunner
from lab.running import Labs, need, own_labs
from strakes.store import Run, Store

pytestmark = [pytest.mark.lab, pytest.mark.long]

MOST_AFTER_MESSAGE_S = 30.0


@pytest.fixture(scope="module")
def labs() -> Iterator[Labs]:
    need("ceph")
    with own_labs() as labs:
        # With a shorter grace a metadata server that is late on a busy machine is replaced, and the mount evicted.
        labs.up("ceph", "--osds", "2", "--mds", "1", "--standby", "0", "--osd-size", "2GiB", "--beacon-grace", "60s")
        yield labs


def survey(mount: Path) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "strakes", "survey", str(mount), "--budget", "10s", "--quiet"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("role", ["osd.1", "mds.a"])
def test_a_survey_ends_within_its_limit_and_names_the_stopped_server(
    labs: Labs, strakes: StrakesRunner, role: str
) -> None:
    mount = Path(labs.status("ceph")["facts"]["ceph_conf"]).parent / "mnt"
    (pid,) = labs.pids("ceph", role)
    with survey(mount) as running:
        while not any(len(Run(run.path).visits) >= 2 for run in Store().runs()):
            assert running.poll() is None, running.communicate()[1]
            time.sleep(0.1)
        os.kill(pid, signal.SIGSTOP)
        try:
            assert running.stderr is not None
            message = running.stderr.readline()
            told = time.monotonic()
            running.wait(120)
            ended_after_s = time.monotonic() - told
            errors = message + running.stderr.read()
            with ThreadPoolExecutor() as both:
                asking = both.submit(strakes, "target", mount, timeout_s=120)
                again = strakes("survey", mount, "--budget", "10s", timeout_s=120)
                asked = asking.result()
        finally:
            os.kill(pid, signal.SIGCONT)
    assert running.returncode == 1 and ended_after_s < MOST_AFTER_MESSAGE_S
    assert f"{role} does not answer" in errors
    # A command that only reads may succeed or fail; a new measurement must be refused.
    assert asked.returncode in (0, 1), asked.stderr
    assert again.returncode in (1, 2) and "does not answer" in again.stderr
    # Once the servers have recovered, clean can remove the files that were left.
    deadline = time.monotonic() + 120
    while (cleaned := strakes("clean", mount, timeout_s=60)).returncode != 0:
        if time.monotonic() > deadline:
            said = strakes("target", mount, timeout_s=60)  # for Ceph's own messages
            pytest.fail(cleaned.stderr + said.stdout + said.stderr)
    # A workspace without a marker is kept while it is new, as another process may be about to write the marker.
    for entry in mount.glob("strakes-*"):
        os.utime(entry, (0, 0))
    assert strakes("clean", mount, timeout_s=60).returncode == 0
    assert not any(entry.name.startswith("strakes-") for entry in mount.iterdir())
