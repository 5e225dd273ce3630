"""A slow metadata server and a slow object store of a real Ceph are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import StrakesRunner
from lab.running import Labs

pytestmark = [pytest.mark.lab, pytest.mark.more]

FEW = "ceph --osds 1 --store memstore --osd-size 2GiB --mds 2 --standby 0"
SERVERS = "ceph --osds 3 --mds 3 --standby 0 --pool-per-osd"


def said(strakes: StrakesRunner, mount: Path, budget: str, seed: int) -> dict[str, Any]:
    words = ("study", "target-baseline", mount, "--budget", budget, "--seed", str(seed), "--json", "-", "--quiet")
    done = strakes(*words, timeout_s=300)
    assert done.returncode == 0, done.stderr
    return {finding["id"].removeprefix("target-baseline-"): finding for finding in json.loads(done.stdout)["findings"]}


def slow_ones(findings: dict[str, Any]) -> set[str]:
    return {name for name, finding in findings.items() if finding["verdict"] == "does-not"}


def test_the_slower_of_two_metadata_servers_is_named(labs: Labs, strakes: StrakesRunner) -> None:
    mount = labs.up(FEW, "--slow-mds", "1=5")
    findings = said(strakes, mount, "60s", seed=1)
    assert slow_ones(findings) == {"metadata-cephfs:1"}
    assert "cephfs:1" in findings["metadata-cephfs:1"]["statement"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("option", "kind", "slow"),
    [("--slow-mds=1=10", "metadata", "metadata-cephfs:1"), ("--slow-osd=1=60", "data", "data-osd.1")],
)
def test_the_slow_target_of_three_is_named(
    labs: Labs, strakes: StrakesRunner, option: str, kind: str, slow: str
) -> None:
    mount = labs.up(SERVERS, option)
    assert labs.status("ceph")["facts"]["pools_by_store"] == {
        f"osd.{number}": f"cephfs_data.osd{number}" for number in range(3)
    }
    findings = said(strakes, mount, "90s", seed=1)
    assert set(findings) == {f"metadata-cephfs:{n}" for n in range(3)} | {f"data-osd.{n}" for n in range(3)}
    # Only this kind is checked: a slow object store also slows metadata servers that keep journals on it.
    assert {name for name in slow_ones(findings) if name.startswith(kind)} == {slow}
