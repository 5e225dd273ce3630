"""The CephFS target on a real cluster."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from conftest import StrakesRunner
from lab.running import Labs
from report.document import validate
from strakes.base.units import KIB, MIB
from strakes.model.record import to_record
from strakes.runs.records import DirectoryPlaced, LayoutGiven
from strakes.runs.store import Store
from strakes.targets.ceph_target import CephTarget
from strakes.targets.description import Layout, Placement, difference
from strakes.targets.registry import detect
from strakes.targets.target import Target
from targets.conformance import TargetConformance
from targets.on_mount import OnMount

pytestmark = [pytest.mark.lab, pytest.mark.more]


@pytest.fixture(scope="module")
def ceph(shared_labs: Labs) -> Path:
    return shared_labs.up("ceph --osds 2 --mds 2 --standby 0 --osd-size 2GiB")


class TestCephFs(TargetConformance):
    kind = CephTarget
    file_system = "fuse.ceph-fuse"
    remote = True
    counts_inodes = False

    @pytest.fixture
    def place(self, ceph: Path) -> Path:
        return ceph


def test_a_quota_of_a_parent_directory_limits_the_free_space(ceph: Path) -> None:
    below = ceph / "limited" / "below"
    below.mkdir(parents=True)
    os.setxattr(ceph / "limited", "ceph.quota.max_bytes", str(64 * MIB).encode())
    facts = detect(below).facts()
    assert facts.free_bytes <= 64 * MIB
    assert facts.quotas == (f"The quota of directory {ceph / 'limited'} leaves 64 MiB of 64 MiB.",)
    shutil.rmtree(ceph / "limited")


class TestCephFsControl(OnMount):
    layout = Layout(64 * KIB, 2)
    placements = (
        ("pinned", Placement("manual", (1,), inherited=True)),
        ("spread", Placement("automatic", count=1)),
        ("everywhere", Placement("automatic", count=-1)),
        ("usual", Placement("inherit")),
    )

    @pytest.fixture
    def mounted(self, ceph: Path) -> Path:
        return ceph

    def test_operations_are_counted_at_the_server_that_did_them(self, target: Target, place: Path) -> None:
        target.make_directory(place, "pinned", Placement("manual", (0,)))
        target.set_layout(place / "pinned", Layout(64 * KIB, 2))
        before = target.observe()
        for number in range(20):
            (place / "pinned" / f"file{number}").touch()
        with (place / "pinned" / "data").open("wb") as file:
            file.write(os.urandom(8 * MIB))
            os.fsync(file.fileno())
        counted = difference(before, target.observe())
        for number in range(20):
            (place / "pinned" / f"file{number}").unlink()
        (place / "pinned" / "data").unlink()
        assert set(counted) == {"cephfs:0", "cephfs:1", "osd.0", "osd.1"}
        assert counted["cephfs:0"]["md.create"] == 21 and counted["cephfs:1"]["md.create"] == 0
        assert counted["osd.0"]["data.write_bytes"] + counted["osd.1"]["data.write_bytes"] >= 8 * MIB

    def test_the_striping_study_sets_layouts_and_reports_the_counters_of_the_servers(
        self, strakes: StrakesRunner, mounted: Path, tmp_path: Path
    ) -> None:
        out, page = tmp_path / "out.json", tmp_path / "report.html"
        done = strakes("study", "striping", mounted, "--budget", "12s", "--json", out, "--html", page)
        assert done.returncode == 0, done.stderr
        document = json.loads(out.read_text())
        validate(document)
        assert {(one["settings"]["stripe_count"], one["settings"]["stripe_bytes"]) for one in document["cells"]} >= {
            (1, MIB),
            (2, MIB),
        }
        given = Store().open("latest").events_of(LayoutGiven)
        assert given and all(not event.differences for event in given)
        assert all(to_record(event.given).items() >= to_record(event.wanted).items() for event in given)
        spread = [one for one in document["servers"] if "/2x" in one["cell"]]
        assert {one["server"] for one in spread} == {"cephfs:0", "cephfs:1", "osd.0", "osd.1"}
        # Objects are placed by the hash of their names, so all objects of one cell may be on one of the two stores.
        stores = [one for one in spread if one["server"].startswith("osd")]
        for part in ("cell", "server"):
            for name in {one[part] for one in stores}:
                assert sum(one["counters"]["data.write_bytes"] for one in stores if one[part] == name) > 0, name
        assert "What servers and devices counted" in page.read_text()
        assert not any(entry.name.startswith("strakes-") for entry in mounted.iterdir())

    def test_the_only_trouble_of_a_healthy_lab_is_the_missing_standby(self, target: Target) -> None:
        assert target.trouble() == ("Ceph says: insufficient standby MDS daemons available: have 0; want 1 more.",)


def test_directories_are_placed_on_both_ranks_and_requests_are_counted(ceph: Path, strakes: StrakesRunner) -> None:
    done = strakes("study", "namespace-scaling", ceph, "--budget", "20s", "--json", "-", "--quiet")
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
    assert not [entry for entry in ceph.iterdir() if entry.name.startswith("strakes-")]
