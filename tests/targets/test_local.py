from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from mounts import tmpfs_mounted
from strakes.base.errors import MeasurementError
from strakes.targets.calls import UnansweredError, call
from strakes.targets.command import CommandTimeout, Completed
from strakes.targets.description import difference
from strakes.targets.local import LocalTarget
from strakes.targets.mountinfo import Mount
from strakes.targets.registry import detect
from strakes.targets.target import Target
from strakes.targets.workspace import Workspace
from targets.conformance import TargetConformance
from targets.on_mount import OnMount


class TestTmpfs(TargetConformance):
    kind = LocalTarget
    file_system = "tmpfs"

    @pytest.fixture
    def place(self, tmpfs: Path) -> Path:
        return tmpfs

    def test_it_has_no_block_device_and_says_that_it_is_memory(self, place: Path) -> None:
        facts = detect(place).facts()
        assert facts.block_device is None and "in memory" in facts.notes[0]


class TestXfs(TargetConformance):
    kind = LocalTarget
    file_system = "xfs"

    @pytest.fixture
    def place(self, xfs: Path) -> Path:
        return xfs

    def test_direct_io_works(self, place: Path) -> None:
        with Workspace.create(place, "direct") as workspace:
            assert detect(place).facts(workspace.path).direct_io is True

    def test_its_loop_device_is_described(self, place: Path) -> None:
        device = detect(place).facts().block_device
        assert device is not None and device.name.startswith("loop") and device.scheduler
        assert device.total_bytes == 320 << 20 and device.backing_file.endswith("/image")
        assert any(device.backing_file in note for note in detect(place).facts().notes)


class TestXfsControl(OnMount):
    @pytest.fixture
    def mounted(self, xfs: Path) -> Path:
        return xfs

    def test_its_device_counts_what_was_written(self, target: Target, place: Path) -> None:
        before = target.observe()
        with (place / "file").open("wb") as file:
            file.write(bytes(4 << 20))
            os.fsync(file.fileno())
        ((device, counted),) = difference(before, target.observe()).items()
        (place / "file").unlink()
        assert device.startswith("loop")
        assert counted["data.write_bytes"] >= 4 << 20 and counted["data.write_requests"] >= 1


def test_a_memory_file_system_without_a_limit_is_limited_by_the_memory() -> None:
    with tmpfs_mounted("0", "nr_inodes=0") as place:
        assert os.statvfs(place).f_blocks == 0
        facts = detect(place).facts()
    assert 0 < facts.free_bytes < facts.total_bytes and facts.total_inodes == 0


def test_a_full_target_says_that_direct_io_could_not_be_tried(tmpfs: Path) -> None:
    with Workspace.create(tmpfs, "full") as workspace:
        with pytest.raises(OSError, match="No space"):
            (workspace.path / "filler").write_bytes(bytes(32 << 20))
        with pytest.raises(MeasurementError, match="could not be tested") as caught:
            detect(tmpfs).probe_direct(workspace.path)
        assert caught.value.why == "No space left on device"
        assert sorted(os.listdir(workspace.path)) == [".strakes-marker", "filler"]


def test_a_hanging_call_on_a_local_file_system_is_not_attributed_to_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(argv: Sequence[str], timeout_s: float = 0.0) -> Completed:
        raise CommandTimeout("no answer", where=argv[0])

    monkeypatch.setattr("strakes.targets.calls._silent", {})
    for file_system, why in (("xfs", "making a file does not end"), ("lustre", "making a file waits for a server")):
        mount = Mount(1, 0, 1, "/", "/x", (), file_system, "s", ())
        monkeypatch.setattr("strakes.targets.calls.find_mount", lambda *_, mount=mount: mount)
        with pytest.raises(UnansweredError) as caught:
            call("try", "/x", "name", ask=silent)
        assert caught.value.why == why
        monkeypatch.setattr("strakes.targets.calls._silent", {})
    with pytest.raises(MeasurementError, match="the call try failed"):  # Another process waited for the child.
        call("try", "/x", "name", ask=lambda argv, timeout_s=0.0: Completed(tuple(argv), 0, "", ""))
