"""The two scenarios of S1 on a real CephFS: searched, confirmed against the default, and what is printed accepted by setfattr."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ROOT, StrakesRunner
from lab.running import need, own_labs
from strakes.store import Store
from strakes.tune.outcome import outcome_of

pytestmark = [pytest.mark.lab, pytest.mark.long]

APPS = ROOT / "examples" / "apps"


@pytest.fixture(scope="module")
def mount() -> Iterator[Path]:
    need("ceph")
    with own_labs() as labs:
        yield labs.up("ceph", "--osds", "3", "--slow-osd", "0=200", "--slow-osd", "1=200", "--slow-osd", "2=200")


@pytest.mark.parametrize("name", ["startup-load", "restart-dump"])
def test_the_scenarios_are_searched_and_told_before_and_after(name: str, mount: Path, strakes: StrakesRunner) -> None:
    done = strakes("tune", "--app", APPS / f"{name}.toml", mount, "--budget", "60s", "--quiet", timeout_s=300)
    assert done.returncode == 0, done.stderr
    outcome = outcome_of(Store().open("latest"))
    assert outcome.verdict in ("better", "not-shown") and outcome.statement in done.stdout
    assert not [entry for entry in mount.iterdir() if entry.name.startswith("strakes-")]
    # Layouts were tried, and every one of them is one that files really get.
    assert {"stripe_count", "stripe_bytes"} <= set(outcome.default)
    document = json.loads(strakes("report", "latest", "--json", "-").stdout)
    assert any(one["id"] == "tune-gain" for one in document["findings"])
    directory = mount / name
    directory.mkdir()
    for paste in outcome.pastes:
        if paste.text.startswith("setfattr"):
            words = [str(directory) if word == "DIR" else word for word in shlex.split(paste.text)]
            assert subprocess.run(words, capture_output=True, check=False).returncode == 0
