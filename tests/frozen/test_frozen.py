"""Behaviour that users rely on matches its snapshots; ``./dev freeze`` accepts a change."""

from __future__ import annotations

import difflib
import os
import subprocess
import sys

import pytest

from conftest import ROOT
from failover.clusters import need
from frozen.snapshots import SNAPSHOTS, path_of


def present(name: str) -> str:
    """Make a snapshot in a new process, because click caches the help of commands that other tests registered."""
    return subprocess.run(
        [sys.executable, "-m", "frozen.snapshots", name],
        cwd=ROOT / "tests",
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=300,
    ).stdout


@pytest.mark.parametrize("name", [name for name in SNAPSHOTS if name != "decisions"])
def test_behaviour_matches_its_snapshot(name: str) -> None:
    if name == "checks":
        need("/lib/drbd/drbdadm-84", "corosync", "crm_verify")
    before, after = path_of(name).read_text(), present(name)
    changed = list(difflib.unified_diff(before.splitlines(), after.splitlines(), "frozen", "now", lineterm="", n=0))
    assert not changed, "\n".join(changed[:40])


def test_no_decision_about_a_stored_run_is_reversed() -> None:
    before, after = (
        dict(line.rsplit(" ", 1) for line in text.splitlines())
        for text in (path_of("decisions").read_text(), present("decisions"))
    )
    assert {key: way for key, way in after.items() if before.get(key, way) != way} == {}
