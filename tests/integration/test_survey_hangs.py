"""A file system that hangs during a survey: the command exits soon after its message."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from conftest import ROOT
from mounts import FaultyMount, faulty_mounted
from strakes.store import Run, Store

# All FUSE requests that can block a program.
CALLS = (
    *("lookup", "getattr", "setattr", "mknod", "mkdir", "unlink", "rmdir", "rename", "open", "read", "write", "statfs"),
    *("release", "fsync", "flush", "opendir", "readdir", "releasedir", "fsyncdir", "create"),
)
MOST_AFTER_MESSAGE_S = 30.0


def survey(mount: FaultyMount) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "strakes", "survey", str(mount.place), "--budget", "8s", "--quiet"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.long
def test_a_survey_on_a_hanging_mount_ends_within_half_a_minute_of_its_message() -> None:
    with faulty_mounted() as mount:
        try:
            with survey(mount) as running:
                assert running.stderr is not None
                while not any(len(Run(run.path).visits) >= 2 for run in Store().runs()):
                    assert running.poll() is None, running.communicate()[1]
                    time.sleep(0.1)
                mount.hang(*CALLS)
                message = running.stderr.readline()
                told = time.monotonic()
                running.wait(120)
                ended_after_s = time.monotonic() - told
                rest = running.stderr.read()
        finally:
            mount.mend()
        assert "error" in message, message + rest
        assert running.returncode == 1
        assert ended_after_s < MOST_AFTER_MESSAGE_S
        (run,) = Store().runs()
        assert run.status == "failed" and len(Run(run.path).visits) >= 2
