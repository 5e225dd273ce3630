"""A slow metadata server and a slow object store of a real Ceph are named."""

from __future__ import annotations

import json

import pytest

from conftest import StrakesRunner
from lab.running import Labs

pytestmark = [pytest.mark.lab, pytest.mark.long]

SERVERS = "ceph --osds 3 --mds 3 --standby 0 --pool-per-osd"


@pytest.mark.parametrize(
    ("option", "kind", "slow"),
    [("--slow-mds=1=10", "metadata", "metadata-cephfs:1"), ("--slow-osd=1=60", "data", "data-osd.1")],
)
def test_a_slow_target_of_three_is_named(labs: Labs, strakes: StrakesRunner, option: str, kind: str, slow: str) -> None:
    mount = labs.up(SERVERS, option)
    assert labs.status("ceph")["facts"]["pools_by_store"] == {
        f"osd.{number}": f"cephfs_data.osd{number}" for number in range(3)
    }
    words = ("study", "target-baseline", mount, "--budget", "90s", "--seed", "1", "--json", "-", "--quiet")
    done = strakes(*words, timeout_s=300)
    assert done.returncode == 0, done.stderr
    findings = {one["id"].removeprefix("target-baseline-"): one for one in json.loads(done.stdout)["findings"]}
    assert set(findings) == {f"metadata-cephfs:{n}" for n in range(3)} | {f"data-osd.{n}" for n in range(3)}
    # Only this kind is checked: a slow object store also slows metadata servers that keep journals on it.
    found = {name: one["verdict"] for name, one in findings.items() if name.startswith(kind)}
    assert [name for name, verdict in found.items() if verdict == "does-not"] == [slow]
