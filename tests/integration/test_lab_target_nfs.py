"""The NFS target on a real mount; test_lab_nfs.py runs these tests in User-mode Linux, whose kernel has NFS."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.running import need, own_labs
from strakes.targets.description import difference
from strakes.targets.nfs import NfsTarget
from strakes.targets.target import Target
from targets.conformance import TargetConformance
from targets.on_mount import OnMount

pytestmark = [pytest.mark.lab, pytest.mark.more]


@pytest.fixture(scope="module")
def nfs() -> Iterator[Path]:
    need("nfs")
    with own_labs() as started:
        yield started.up("nfs", "--nconnect", "2", "--rsize", "64KiB", "--wsize", "32KiB", "--actimeo", "7")


class TestNfs(TargetConformance):
    kind = NfsTarget
    file_system = "nfs4"
    remote = True

    @pytest.fixture
    def place(self, nfs: Path) -> Path:
        return nfs


class TestNfsControl(OnMount):
    @pytest.fixture
    def mounted(self, nfs: Path) -> Path:
        return nfs

    def test_its_settings_match_the_mount_options(self, target: Target) -> None:
        told = target.describe()
        wanted = {"vers": "4.2", "nconnect": "2", "rsize": "65536", "wsize": "32768", "acregmax": "7"}
        assert {name: told.client[name] for name in wanted} == wanted

    def test_its_client_counts_operations(self, target: Target, place: Path) -> None:
        before = target.observe()
        with (place / "file").open("wb") as file:
            file.write(bytes(1 << 20))
            os.fsync(file.fileno())
        (place / "file").unlink()
        counted = difference(before, target.observe())["client"]
        assert counted["client.data.write_bytes"] == 1 << 20
        assert (counted["client.data.write_requests"], counted["client.md.unlink"]) == (32, 1)
