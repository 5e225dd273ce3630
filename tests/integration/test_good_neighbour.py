"""``--impact`` limits the load, and with ``--neighbour`` a run yields to other users of a slow device."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from conftest import StrakesRunner
from integration.test_survey import the_run
from lab.running import Labs
from mounts import tmpfs_mounted
from report.document import validate
from strakes.lab.cgroup import hierarchy_of
from strakes.runs.impact import UNLIMITED
from strakes.runs.records import NeighbourFelt
from strakes.runs.store import Store
from strakes.studies.neighbour import KINDS

IOPS = 200
# Each rank has one request in flight, so the last request waits for RANKS / IOPS seconds.
RANKS = 200
ALLOWED_S = 0.45
LOAD = f"""
ranks = {RANKS}

[[phase]]
kind = "transfer"
name = "write"
operation = "write"
layout = "file-per-process"
access = "random"
transfer_bytes = 4096
block_bytes = 1048576
segments = 1
direct = true
stop = {{ rule = "stonewall", seconds = 5.0 }}
"""
CREATIONS = """
ranks = 2

[[phase]]
kind = "metadata"
name = "create"
operation = "file-create"
directory = "unique"
items = 50
"""


@pytest.fixture
def slow_device(labs: Labs) -> Path:
    hierarchy = hierarchy_of("blkio")
    if hierarchy is None or hierarchy.version != 1:
        pytest.skip("a device can be made slow for all its users with control groups of version 1 only")
    return labs.up("xfs", "--iops", str(IOPS))


def test_a_limit_holds_for_the_whole_run_and_its_figures_are_marked(strakes: StrakesRunner, tmp_path: Path) -> None:
    plan = tmp_path / "creations.toml"
    plan.write_text(CREATIONS)
    with tmpfs_mounted("64m") as target:
        done = strakes(
            "run", plan, target, "--budget", "3s", "--impact", "1000ops/s", "--impact", "1GiB/s", "--json", "-", "-q"
        )
        assert done.returncode == 0, done.stderr
        document = json.loads(done.stdout)
        validate(document)
        assert {warning["code"] for warning in document["warnings"]} >= {"held-back"}
        (cell,) = (one for one in document["cells"] if one["unit"] == "op/s")
        assert cell["warnings"] and cell["median"] <= 1000.5
        assert document["run"]["options"]["impact"] == {"bytes_per_s": 1073741824.0, "operations_per_s": 1000.0}
        samples = [sample for visit in the_run().visits for sample in visit.samples]
        assert all(sample.operations_per_s <= 1000.5 for sample in samples) and os.listdir(target) == []
        other = strakes("run", plan, target, "--budget", "2s", "--json", "-", "-q")
        assert other.returncode == 0, other.stderr
        first, second = (run.id for run in Store().runs()[-2:])
        compared = strakes("compare", first, second, "--json", "-")
        assert json.loads(compared.stdout)["overall"]["verdict"] == "INCONCLUSIVE", compared.stdout
        again = strakes("run", plan, target, "--resume", "--impact", "2000ops/s")
        assert again.returncode == 2 and "--resume" in again.stderr


def test_an_undisturbed_probe_changes_nothing_and_is_reported(strakes: StrakesRunner, tmp_path: Path) -> None:
    plan = tmp_path / "creations.toml"
    # The run must last long enough for several requests of the probe, one every 30 ms.
    plan.write_text(CREATIONS.replace("items = 50", "items = 20000"))
    with tmpfs_mounted("64m") as target:
        done = strakes("run", plan, target, "--budget", "2s", "--neighbour", "p99=10s")
        assert done.returncode == 0, done.stderr
        assert "99th percentile of latencies" in done.stdout and os.listdir(target) == []
    findings = the_run().findings
    assert findings is not None
    felt = findings["run"]["neighbour"]
    assert set(felt["during"]["kinds"]) <= set(felt["before"]["kinds"]) == set(KINDS)
    assert (felt["yielded_visits"], felt["slowed_visits"], felt["stopped"]) == (0, 0, False)
    assert all(visit.impact == UNLIMITED for visit in the_run().visits)
    assert any(visit.neighbour for visit in the_run().visits)


@pytest.mark.lab
@pytest.mark.long
def test_on_a_slow_device_the_measurement_yields_to_other_users(
    strakes: StrakesRunner, slow_device: Path, tmp_path: Path
) -> None:
    plan = tmp_path / "load.toml"
    plan.write_text(LOAD)
    done = strakes(
        "run", plan, slow_device, "--budget", "25s", "--neighbour", f"p99={ALLOWED_S * 1000:.0f}ms", "--json", "-", "-q"
    )
    if done.returncode == 3:
        pytest.skip(f"this machine is too busy for anybody: {done.stderr}")
    assert done.returncode in (0, 130), done.stderr
    run = the_run()
    yielded = [visit for visit in run.visits if visit.ended == "yielded"]
    felt = [visit.neighbour for visit in run.visits]
    shares = [visit.impact.share for visit in run.visits]
    # The first visit runs at full load. Its latency is what other users would have without the option.
    assert shares[0] == 1.0 and felt[0]["p99_s"] > ALLOWED_S
    assert min(shares) <= 0.5 or done.returncode == 130
    (event,) = run.events_of(NeighbourFelt)
    assert event.before["p99_s"] < ALLOWED_S < event.during["longest_s"]
    if done.returncode == 0:
        document = json.loads(done.stdout)
        assert "gave-way" in {warning["code"] for warning in document["warnings"]}
        assert document["run"]["neighbour"]["yielded_visits"] == len(yielded)
    else:
        assert run.manifest["status"] == "interrupted" and "--resume" in done.stderr
    assert os.listdir(slow_device) == []
