"""Servers stopped by SIGSTOP: strakes names the server and does not wait forever."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conftest import StrakesRunner
from integration.conftest import started
from lab.running import Labs
from strakes.runs.run import Run
from strakes.runs.store import Store

pytestmark = [pytest.mark.lab, pytest.mark.long]

MOST_AFTER_MESSAGE_S = 30.0


@pytest.fixture(scope="module")
def labs(shared_labs: Labs) -> Labs:
    # With a shorter grace, Ceph would replace a metadata server that is late on a busy machine and evict the client.
    shared_labs.up("ceph --osds 2 --mds 1 --standby 0 --osd-size 2GiB --beacon-grace 60s")
    return shared_labs


@pytest.mark.parametrize("role", ["osd.1", "mds.a"])
def test_a_survey_ends_in_time_and_names_the_stopped_server(labs: Labs, strakes: StrakesRunner, role: str) -> None:
    mount = Path(labs.status("ceph")["facts"]["ceph_conf"]).parent / "mnt"
    (pid,) = labs.pids("ceph", role)
    with started("survey", mount, "--budget", "10s", "--quiet") as running:
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
            said = strakes("target", mount, timeout_s=60)  # shows Ceph's own messages
            pytest.fail(cleaned.stderr + said.stdout + said.stderr)
    # ``clean`` keeps a new workspace without a marker, because another process may be about to write the marker.
    for entry in mount.glob("strakes-*"):
        os.utime(entry, (0, 0))
    assert strakes("clean", mount, timeout_s=60).returncode == 0
    assert not any(entry.name.startswith("strakes-") for entry in mount.iterdir())
