"""The GlusterFS target on a real volume."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.running import need, own_labs
from strakes.targets.command import run
from strakes.targets.description import difference
from strakes.targets.gluster import GlusterTarget
from strakes.targets.gluster import daemons as gluster_daemons
from strakes.targets.target import Target
from strakes.units import MIB
from targets.conformance import TargetConformance
from targets.on_mount import OnMount

pytestmark = [pytest.mark.lab, pytest.mark.more]


@pytest.fixture(scope="module")
def gluster() -> Iterator[Path]:
    need("gluster")
    with own_labs() as labs:
        yield labs.up("gluster", "--bricks", "2", "--size", "512MiB")


class TestGluster(TargetConformance):
    kind = GlusterTarget
    file_system = "fuse.glusterfs"
    remote = True

    @pytest.fixture
    def place(self, gluster: Path) -> Path:
        return gluster


class TestGlusterControl(OnMount):
    @pytest.fixture
    def mounted(self, gluster: Path) -> Path:
        return gluster

    def test_its_bricks_have_counters_once_profiling_is_started(self, target: Target, place: Path) -> None:
        assert [one.state for one in target.describe().data_targets] == ["online", "online"]
        assert target.observe() == {}
        assert any("profile strakes start" in limit.why for limit in target.limits())
        (options,) = gluster_daemons()
        assert run(["gluster", "--mode=script", *options, "volume", "profile", "strakes", "start"]).status == 0
        before = target.observe()
        (place / "file").write_bytes(os.urandom(MIB))
        counted = difference(before, target.observe())
        (place / "file").unlink()
        assert len(counted) == 2
        assert sum(one["data.write_bytes"] for one in counted.values()) == MIB
        assert sum(one["md.create"] for one in counted.values()) == 1
        assert not any("counters" in limit.what for limit in target.limits())
