"""The targets of MooseFS, NFS and GlusterFS on real file systems."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from lab.running import Labs
from strakes.base.units import MIB
from strakes.targets.command import run
from strakes.targets.description import difference
from strakes.targets.gluster import GlusterTarget, daemons
from strakes.targets.moosefs import MooseFsTarget
from strakes.targets.nfs import NfsTarget
from strakes.targets.target import Target
from targets.conformance import TargetConformance
from targets.on_mount import OnMount

pytestmark = [pytest.mark.lab, pytest.mark.more]


def lab(kind: str, *options: str) -> Callable[[Labs], Path]:

    @pytest.fixture(scope="module", name=kind)
    def started(shared_labs: Labs) -> Path:
        return shared_labs.up(kind, *options)

    return started


moosefs = lab("moosefs", "--chunkservers", "2", "--size", "512MiB")
gluster = lab("gluster", "--bricks", "2", "--size", "512MiB")
nfs = lab("nfs", "--nconnect", "2", "--rsize", "64KiB", "--wsize", "32KiB", "--actimeo", "7")


class OnLab(TargetConformance):
    lab: ClassVar[str]
    remote = True

    @pytest.fixture
    def place(self, request: pytest.FixtureRequest) -> Path:
        mount: Path = request.getfixturevalue(self.lab)
        return mount


class ControlOnLab(OnMount):
    lab: ClassVar[str]

    @pytest.fixture
    def mounted(self, request: pytest.FixtureRequest) -> Path:
        mount: Path = request.getfixturevalue(self.lab)
        return mount


class TestMooseFs(OnLab):
    lab, kind, file_system = "moosefs", MooseFsTarget, "fuse"


class TestMooseFsControl(ControlOnLab):
    lab = "moosefs"

    def test_chunkservers_are_listed_and_the_client_counts_operations(self, target: Target, place: Path) -> None:
        told = target.describe()
        assert [one.state for one in told.data_targets] == ["online", "online"]
        assert told.client["goal here"] == "2" and told.version
        before = target.observe()
        (place / "file").touch()
        (place / "file").unlink()
        assert difference(before, target.observe())["client"]["client.md.create"] == 1 and target.trouble() == ()


class TestGluster(OnLab):
    lab, kind, file_system = "gluster", GlusterTarget, "fuse.glusterfs"


class TestGlusterControl(ControlOnLab):
    lab = "gluster"

    def test_bricks_have_counters_after_profiling_is_started(self, target: Target, place: Path) -> None:
        assert [one.state for one in target.describe().data_targets] == ["online", "online"]
        assert target.observe() == {} and any("profile strakes start" in limit.why for limit in target.limits())
        (options,) = daemons()
        assert run(["gluster", "--mode=script", *options, "volume", "profile", "strakes", "start"]).status == 0
        before = target.observe()
        (place / "file").write_bytes(os.urandom(MIB))
        counted = difference(before, target.observe())
        (place / "file").unlink()
        assert len(counted) == 2 and sum(one["data.write_bytes"] for one in counted.values()) == MIB
        assert sum(one["md.create"] for one in counted.values()) == 1
        assert not any("counters" in limit.what for limit in target.limits())


class TestNfs(OnLab):
    lab, kind, file_system = "nfs", NfsTarget, "nfs4"


class TestNfsControl(ControlOnLab):
    lab = "nfs"

    def test_settings_match_the_mount_options_and_clients_count_operations(self, target: Target, place: Path) -> None:
        told = target.describe()
        wanted = {"vers": "4.2", "nconnect": "2", "rsize": "65536", "wsize": "32768", "acregmax": "7"}
        assert told.client.items() >= wanted.items()
        before = target.observe()
        with (place / "file").open("wb") as file:
            file.write(bytes(MIB))
            os.fsync(file.fileno())
        (place / "file").unlink()
        counted = difference(before, target.observe())["client"]
        assert counted["client.data.write_bytes"] == MIB
        assert (counted["client.data.write_requests"], counted["client.md.unlink"]) == (32, 1)
