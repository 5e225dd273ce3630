"""Studies of metadata targets on a real CephFS: directories are placed, and server counters confirm it."""

from __future__ import annotations

import json

import pytest

from conftest import StrakesRunner
from lab.running import Labs
from strakes.runs.records import DirectoryPlaced
from strakes.runs.store import Store

pytestmark = [pytest.mark.lab, pytest.mark.more]


def test_directories_are_placed_on_both_metadata_ranks_and_requests_are_counted(
    labs: Labs, strakes: StrakesRunner
) -> None:
    mount = labs.up("ceph", "--mds", "2", "--osds", "1")
    done = strakes("study", "namespace-scaling", mount, "--budget", "20s", "--json", "-", "--quiet")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    # A short budget covers only the first comparison: directories placed by hand or by the file system.
    measured = {(cell["settings"]["placement"], cell["settings"]["metadata_targets"]) for cell in document["cells"]}
    assert measured >= {("manual", 2), ("automatic", 2)}
    findings = {finding["id"]: finding for finding in document["findings"]}
    assert "cephfs:1" in findings["namespace-scaling-served-manual"]["statement"]
    assert any("of an even split" in finding["statement"] for finding in findings.values())
    placed = Store().open("latest").events_of(DirectoryPlaced)
    by_hand = next(event.given for event in placed if event.cell == "namespace-scaling/manual/2")
    assert {tuple(given["metadata_targets"]) for name, given in by_hand.items() if name.startswith("items.")} == {
        (0,),
        (1,),
    }
    assert not [entry for entry in mount.iterdir() if entry.name.startswith("strakes-")]
