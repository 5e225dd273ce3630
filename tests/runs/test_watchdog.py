"""A survey ends soon after its servers die, at whatever step, and names each lost target and its server."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import pytest

from conftest import one_in
from mounts import faulty_mounted
from runs.dying_servers import END_S, LCTL, LFS, LOST_FOR_S, SSH, STEPS
from strakes.runs.store import Store

PROGRAM = Path(__file__).with_name("dying_servers.py")
# Allowance in seconds for status checks and clean-up, and the time-out after which a hanging lctl is killed.
MARGIN_S, LCTL_LIMIT_S = 9.0, 10.0
CALLS = ("lookup", "getattr", "mknod", "mkdir", "unlink", "rmdir", "open", "read", "write", "flush", "fsync", "create")
# Sets of additional tool failures; a file of the name in FAKES enables the failure.
FAKE_TOOLS = ((), ("lctl-hangs",), ("ssh-is-slow",), ("lctl-hangs", "ssh-is-slow"))


@pytest.mark.parametrize(("step", "tools"), one_in(10, [(*each,) for each in product(STEPS, FAKE_TOOLS)]))
def test_a_survey_ends_soon_after_its_server_died(step: str, tools: tuple[str, ...], tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("lctl", LCTL), ("ssh", SSH), ("lfs", LFS)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    for tool in tools:
        (tmp_path / tool).touch()
    root = Path(__file__).resolve().parents[2]
    environment = {
        **os.environ,
        "FAKES": str(tmp_path),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": f"{root / 'src'}:{root / 'tests'}",
    }
    options = ["--servers", "ssh {host}"] if "ssh-is-slow" in tools else []
    with faulty_mounted() as mount:
        words = [sys.executable, str(PROGRAM), step, str(mount.place), *options]
        with subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True) as command:
            try:
                deadline = time.monotonic() + 60
                while not (tmp_path / "cut").exists():
                    assert command.poll() is None and time.monotonic() < deadline, command.communicate()
                    time.sleep(0.02)
                mount.hang(*CALLS)
                (tmp_path / "dead").touch()
                cut_s = time.monotonic()
                _, told = command.communicate(timeout=60)
                took_s = time.monotonic() - cut_s
            finally:
                command.kill()
                mount.mend()
    print(f"{step} {tools}: {took_s:.1f} s\n{told}")
    assert command.returncode == 1
    assert took_s < LOST_FOR_S + END_S + MARGIN_S + LCTL_LIMIT_S * ("lctl-hangs" in tools)
    if step != "before the pilot":
        (run,) = Store().runs()
        assert run.status in ("failed", "interrupted")
    if "lctl-hangs" in tools:
        assert f"{mount.place}" in told and "does not answer" in told
    else:
        assert "lus-MDT0001 on 10.77.0.2 does not answer: DISCONN" in told
        assert "lus-OST0002 on 10.77.0.2" in told and "lus-OST0001 on 10.77.0.2 does not answer: IDLE" in told
        assert "10.77.0.1 does not" not in told
