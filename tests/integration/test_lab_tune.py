"""``strakes tune`` on a real CephFS: scenarios of the source S1, layouts that Ceph accepts, and restored knobs."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT, StrakesRunner
from lab.running import Labs
from strakes.runs.store import Store
from strakes.tuning.outcome import outcome_of

pytestmark = [pytest.mark.lab, pytest.mark.long]

APPS = ROOT / "examples" / "apps"


@pytest.fixture(scope="module")
def mount(shared_labs: Labs) -> Path:
    return shared_labs.up("ceph --osds 3 --slow-osd 0=200 --slow-osd 1=200 --slow-osd 2=200")


def pasted(text: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run a printed command line with ``directory`` in place of DIR, and return the completed process."""
    words = [str(directory) if word == "DIR" else word for word in shlex.split(text)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["startup-load", "restart-dump"])
def test_a_scenario_is_searched_and_compared_with_the_default(name: str, mount: Path, strakes: StrakesRunner) -> None:
    done = strakes("tune", "--app", APPS / f"{name}.toml", mount, "--budget", "60s", "--quiet", timeout_s=900)
    assert done.returncode == 0, done.stderr
    outcome = outcome_of(Store().open("latest"))
    assert outcome.verdict in ("better", "not-shown") and outcome.statement in " ".join(done.stdout.split())
    assert not [entry for entry in mount.iterdir() if entry.name.startswith("strakes-")]
    # Layouts are among the settings searched.
    assert {"stripe_count", "stripe_bytes"} <= {factor.name for factor in outcome.search.space.factors}
    document = json.loads(strakes("report", "latest", "--json", "-").stdout)
    assert any(one["id"] == "tune-gain" for one in document["findings"])
    directory = mount / name
    directory.mkdir()
    for paste in outcome.pastes:
        if paste.text.startswith("setfattr"):
            assert pasted(paste.text, directory).returncode == 0


def test_knobs_are_searched_and_restored_afterwards(shared_labs: Labs, mount: Path, strakes: StrakesRunner) -> None:
    def state() -> tuple[str, str]:
        conf = shared_labs.status("ceph")["facts"]["ceph_conf"]
        options = subprocess.run(
            ["ceph", "-c", conf, "config", "dump"], capture_output=True, text=True, check=True
        ).stdout
        listed = json.loads(strakes("knobs", "list", mount, "--json").stdout)
        return options, json.dumps(listed)

    before = state()
    knobs = ("--knobs", "client_oc_max_dirty=1MiB", "--knobs", "bdi.read_ahead_kb=1024")
    only = ("--only", "files=per-process", "--only", "interface=posix")
    done = strakes(
        "tune", "--app", APPS / "restart-dump.toml", mount, "--budget", "20s", "--quiet", *knobs, *only, timeout_s=900
    )
    assert done.returncode == 0, done.stderr
    run = Store().open("latest")
    tried = {str(visit.settings["knob:client_oc_max_dirty"]) for visit in run.visits}
    assert "not set" in tried and len(tried) > 1
    assert {str(visit.settings["knob:bdi.read_ahead_kb"]) for visit in run.visits} == {"128", "1024"}
    assert state() == before
