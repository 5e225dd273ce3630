"""The shipped check under ReFrame; its reference is the watch's data from before the upgrade."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import ROOT
from strakes.watch.histogram import Histogram
from strakes.watch.ring import Ring, RingRow

pytestmark = pytest.mark.more

CHECK = ROOT / "packaging" / "reframe" / "strakes_watch.py"
UPGRADE = datetime(2026, 11, 22, 6, tzinfo=UTC)
_PROGRAMS = Path(sys.executable).parent


def reframe() -> str:
    found = shutil.which("reframe", path=f"{_PROGRAMS}:{os.environ.get('PATH', '')}")
    if found is None:
        pytest.skip("ReFrame is not installed")
    return found


def seen(store: Path, after: float) -> None:
    """Store rows of ten days before and after the upgrade, which changes the time of a create by ``after``."""
    generator, ring = np.random.default_rng(4), Ring(store)
    for hour in range(-240, 240):
        usual_s = 0.01 * (1.0 if hour < 0 else after)
        values = usual_s * np.exp(0.2 * generator.standard_normal(30))
        ring.add(
            RingRow(UPGRADE.timestamp() + 3600.0 * hour, 600.0, {"/fs probe create": Histogram.of(values.tolist())})
        )


def checked(tmp_path: Path, after: float) -> tuple[int, dict[str, Any]]:
    """Return ReFrame's exit status and its report of the check."""
    program = reframe()
    store, report = tmp_path / "store", tmp_path / "report.json"
    seen(store, after)
    settings = (f"maintenance={UPGRADE:%Y-%m-%dT%H:%M}", f"store={store}")
    words = [program, "-c", CHECK, *(word for setting in settings for word in ("-S", setting)), "-r"]
    words += ["--prefix", tmp_path / "stage", "--report-file", report, "--nocolor"]
    environment = {**os.environ, "PATH": f"{_PROGRAMS}:{os.environ.get('PATH', '')}", "HOME": str(tmp_path)}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert report.exists(), done.stdout + done.stderr
    (case,) = json.loads(report.read_text())["runs"][0]["testcases"]
    return done.returncode, case


def test_the_check_fails_after_an_upgrade_that_costs_time(tmp_path: Path) -> None:
    status, case = checked(tmp_path, after=1.3)
    assert status != 0 and case["result"] == "fail" and case["fail_phase"] == "sanity"
    assert "SLOWER" in case["fail_reason"]


def test_the_check_passes_where_nothing_changed_and_reports_the_cost(tmp_path: Path) -> None:
    status, case = checked(tmp_path, after=1.0)
    assert status == 0 and case["result"] == "pass"
    (cost,) = (float(value[0]) for name, value in case["perfvalues"].items() if "largest_cost" in name)
    assert abs(cost) < 5
