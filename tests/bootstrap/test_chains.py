"""Tests that must not run concurrently stay in one worker when pytest-xdist distributes them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
NOTE = """
import os, time
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range(6))
def test_note(number):
    time.sleep(0.01)
    with Path(os.environ["NOTES"]).open("a") as notes:
        notes.write(f"{Path(__file__).name} {os.environ['PYTEST_XDIST_WORKER']} {os.nice(0)}\\n")
"""
FILES = ("security/test_engines.py", "targets/test_mounts.py", "integration/test_lab_a.py", "lab/test_lab_b.py")


def test_each_chain_runs_in_its_own_worker(tmp_path: Path) -> None:
    for name in (*FILES, "failover/test_lab_ha.py", "plan/test_values.py"):
        file = tmp_path / "tests" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(NOTE)
    shutil.copy(TESTS / "conftest.py", tmp_path / "tests")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    # In its default base directory pytest would spend minutes on removing directories of earlier sessions.
    words = [sys.executable, "-m", "pytest", "--quiet", "--numprocesses", "4", "--basetemp", "places", "tests"]
    notes = tmp_path / "notes"
    done = subprocess.run(words, cwd=tmp_path, env={"NOTES": str(notes)}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    workers = defaultdict(set)
    priorities = defaultdict(set)
    for name, worker, priority in map(str.split, notes.read_text().splitlines()):
        workers[name].add(worker)
        priorities[name].add(int(priority))
    machine = workers["test_engines.py"] | workers["test_mounts.py"]
    lab = workers["test_lab_a.py"] | workers["test_lab_b.py"]
    pair = workers["test_lab_ha.py"]
    assert len(machine) == len(lab) == len(pair) == 1 and len(machine | lab | pair) == 3
    if os.geteuid() == 0:
        assert min(priorities["test_values.py"]) > max(priorities["test_lab_a.py"])
