"""A survey ends after its servers die at any step, and names each lost target and its server."""

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
from runs.dying_servers import LCTL, LFS, SSH, STEPS
from strakes.cli import apart
from strakes.runs import watchdog
from strakes.runs.store import Store
from strakes.runs.watchdog import ENDING_S, GRACE_S, LOST_FOR_S, REFUSED_FOR_S, Course
from strakes.targets.target import LostServer

PROGRAM = Path(__file__).with_name("dying_servers.py")
# Limits in seconds that even a busy machine keeps. Another test checks the exact times without real processes.
BEGIN_S, END_S = 120.0, 180.0
CALLS = ("lookup", "getattr", "mknod", "mkdir", "unlink", "rmdir", "open", "read", "write", "flush", "fsync", "create")
# Combinations of tools that fail as well; a tool fails if a file of its name exists in FAKES.
FAKE_TOOLS = ((), ("lctl-hangs",), ("ssh-is-slow",), ("lctl-hangs", "ssh-is-slow"))


# One call of a tool can take over 30 s on a loaded machine, so these surveys run with --all only.
@pytest.mark.long
@pytest.mark.parametrize(("step", "tools"), one_in(10, [(*each,) for each in product(STEPS, FAKE_TOOLS)]))
def test_a_survey_ends_after_its_server_died(step: str, tools: tuple[str, ...], tmp_path: Path) -> None:
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
                deadline = time.monotonic() + BEGIN_S
                while not (tmp_path / "cut").exists():
                    assert command.poll() is None and time.monotonic() < deadline, command.communicate()
                    time.sleep(0.02)
                mount.hang(*CALLS)
                (tmp_path / "dead").touch()
                cut_s = time.monotonic()
                _, told = command.communicate(timeout=END_S)
                took_s = time.monotonic() - cut_s
            finally:
                command.kill()
                mount.mend()
    print(f"{step} {tools}: {took_s:.1f} s\n{told}")
    assert command.returncode == 1
    # A run without measurements is not kept.
    if step in ("between phases", "in cleaning"):
        (run,) = Store().runs()
        assert run.status in ("failed", "interrupted")
    if "lctl-hangs" in tools:
        assert f"{mount.place}" in told and "does not answer" in told
    else:
        assert "lus-MDT0001 on 10.77.0.2 does not answer: DISCONN" in told
        assert "lus-OST0002 on 10.77.0.2" in told and "lus-OST0001 on 10.77.0.2 does not answer: IDLE" in told
        assert "10.77.0.1 does not" not in told


MDS, OSS = {"lus-MDT0000": LostServer("mds1", "DISCONN")}, {"lus-OST0000": LostServer("oss1", "DISCONN")}
REFUSED = {"lus-MDT0000": LostServer("mds1", "DISCONN", refuses=True)}


@pytest.mark.parametrize(
    ("lost", "reported_s", "over_s"),
    [
        # (second, servers that are lost from then on)
        ([(5, MDS)], 5 + LOST_FOR_S, 5 + LOST_FOR_S + GRACE_S),
        ([(5, MDS), (10, OSS)], 5 + LOST_FOR_S, 5 + LOST_FOR_S + GRACE_S),
        ([(5, REFUSED)], 5 + REFUSED_FOR_S, 5 + REFUSED_FOR_S + GRACE_S),
        ([(5, REFUSED), (20, MDS)], 20, 20 + GRACE_S),
        ([(5, MDS), (15, {})], None, None),
        ([(5, MDS), (30, {})], 5 + LOST_FOR_S, None),
        ([(5, MDS), (30, {}), (40, MDS)], 5 + LOST_FOR_S, 40 + LOST_FOR_S + GRACE_S),
        ([(5, REFUSED), (43, {})], 5 + REFUSED_FOR_S, None),
    ],
)
def test_an_outage_is_reported_and_ends_the_command_at_the_expected_times(
    lost: list[tuple[int, dict[str, LostServer]]], reported_s: float | None, over_s: float | None
) -> None:
    course, times = Course(), dict[str, float]()
    for now_s in range(100):
        known = [servers for since_s, servers in lost if since_s <= now_s]
        if course.step(now_s, known[-1] if known else {}):
            times.setdefault(course.state, now_s)
    assert (times.get("reported"), times.get("over")) == (reported_s, over_s)


def test_a_command_ends_within_30_s_of_the_report_and_survives_the_longest_recorded_fail_over() -> None:
    reserve_s = 30 - (GRACE_S + ENDING_S + apart.PATIENCE_S)
    assert reserve_s >= 5
    # In the recordings, a Lustre client notices a dead machine within 16 s, and the longest fail-over takes 38 s.
    assert 16 + LOST_FOR_S <= 30 and REFUSED_FOR_S <= 30 and REFUSED_FOR_S + GRACE_S > 38


def test_a_message_has_no_control_characters(capfd: pytest.CaptureFixture[str]) -> None:
    watchdog.write_error(("\x1b[2J\udcff",))
    assert capfd.readouterr().err == "\\x1b[2J\\udcff\n"
