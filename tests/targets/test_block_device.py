from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from strakes.targets.block_device import block_device_of, device_counters
from strakes.targets.mountinfo import Mount, parse_mountinfo


def mount_on(number: str, source: str = "/dev/sda1") -> Mount:
    return parse_mountinfo(f"36 35 {number} / /mnt rw - xfs {source} rw")[0]


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    disk = tmp_path / "devices/pci0/block/sda"
    for path, text in {
        "size": "2048000",
        "queue/rotational": "1",
        "queue/scheduler": "none [mq-deadline] kyber bfq",
        "queue/logical_block_size": "4096",
        "queue/read_ahead_kb": "128",
        "queue/write_cache": "write back",
        "sda1/size": "1024000",
        "sda1/partition": "1",
    }.items():
        (disk / path).parent.mkdir(parents=True, exist_ok=True)
        (disk / path).write_text(text + "\n")
    (tmp_path / "dev/block").mkdir(parents=True)
    (tmp_path / "dev/block/8:0").symlink_to(disk)
    (tmp_path / "dev/block/8:1").symlink_to(disk / "sda1")
    return tmp_path


def test_a_partition_has_its_own_size_and_the_queue_of_its_disk(sysfs: Path) -> None:
    (sysfs / "fs/btrfs/0c29-04/devices/sda1").mkdir(parents=True)
    device = block_device_of(mount_on("8:1"), sysfs)
    assert device is not None and (device.name, device.total_bytes) == ("sda", 1024000 * 512)
    assert (device.rotational, device.scheduler) == (True, "mq-deadline")
    assert (device.read_ahead_bytes, device.write_cache, device.backing_file) == (131072, "write back", "")
    whole = block_device_of(mount_on("8:0"), sysfs)
    assert whole is not None and (whole.name, whole.total_bytes) == ("sda", 2048000 * 512)
    (sysfs / "fs/btrfs/0c29-04/devices/sdb").mkdir()
    assert block_device_of(mount_on("8:1"), sysfs) is None


def test_the_file_system_below_a_loop_device_is_known(sysfs: Path) -> None:
    loop = sysfs / "devices/virtual/block/loop0/loop"
    loop.mkdir(parents=True)
    (loop / "backing_file").write_text("/proc/image\n")
    (sysfs / "dev/block/7:0").symlink_to(loop.parent)
    device = block_device_of(mount_on("7:0"), sysfs)
    assert device is not None and (device.backing_file, device.backing_file_system) == ("/proc/image", "proc")


def test_an_ext4_file_system_without_a_journal_is_known(sysfs: Path, tmp_path: Path) -> None:
    (tmp_path / "fs/ext4/sda1").mkdir(parents=True)
    found = [block_device_of(mount_on(number), sysfs, tmp_path) for number in ("8:1", "8:0")]
    (tmp_path / "fs/jbd2/sda1-8").mkdir(parents=True)
    found.append(block_device_of(mount_on("8:1"), sysfs, tmp_path))
    assert [device is not None and device.no_journal for device in found] == [True, False, False]


def test_a_device_with_few_attributes_is_described(sysfs: Path) -> None:
    bare = sysfs / "devices/virtual/block/dm-0"
    bare.mkdir(parents=True)
    (sysfs / "dev/block/253:0").symlink_to(bare)
    device = block_device_of(mount_on("253:0"), sysfs)
    assert device is not None
    assert (device.name, device.total_bytes, device.rotational, device.scheduler) == ("dm-0", 0, False, "")


@pytest.mark.parametrize(("number", "source"), [("0:42", "tmpfs"), ("0:44", "/dev/no-such-disk"), ("9:9", "/dev/sdz")])
def test_a_mount_without_a_block_device_has_none(sysfs: Path, number: str, source: str) -> None:
    assert block_device_of(mount_on(number, source), sysfs) is None
    of_another_user = parse_mountinfo("36 35 0:45 / /mnt rw - fuse.x /dev/null rw,user_id=9")[0]
    (sysfs / "dev/block/1:3").symlink_to(sysfs / "devices/pci0/block/sda")
    assert block_device_of(of_another_user, sysfs) is None
    assert block_device_of(replace(of_another_user, super_options=("user_id=0",)), sysfs) is not None


def test_a_software_raid_names_its_level_and_its_members(sysfs: Path) -> None:
    disk = sysfs / "devices" / "virtual" / "block" / "md0"
    for name in ("slaves/sdb", "slaves/sda", "md"):
        (disk / name).mkdir(parents=True)
    (disk / "md/level").write_text("raid5\n")
    (sysfs / "dev" / "block" / "9:0").symlink_to(disk)
    device = block_device_of(mount_on("9:0", "/dev/md0"), sysfs)
    assert device is not None and (device.name, device.raid, device.members) == ("md0", "raid5", ("sda", "sdb"))


def test_counters_of_a_disk_have_the_common_names(tmp_path: Path) -> None:
    (tmp_path / "block" / "sda").mkdir(parents=True)
    (tmp_path / "block" / "sda" / "stat").write_text(
        "      5        0       16        1        7        0       24        2        0     1500        3\n"
    )
    assert device_counters("sda", tmp_path) == {
        "data.read_requests": 5,
        "data.read_bytes": 16 * 512,
        "data.write_requests": 7,
        "data.write_bytes": 24 * 512,
        "data.busy_s": 1.5,
    }
    (tmp_path / "block/sda/queue").mkdir()
    (tmp_path / "block/sda/queue/iostats").write_text("0\n")
    assert device_counters("sda", tmp_path) == {} == device_counters("sdb", tmp_path)
    (tmp_path / "block/sda/queue/iostats").write_text("1\n")
    (tmp_path / "block/sda/stat").write_text("0 0 0 0 0 0 0 0 0 0 0\n")
    assert device_counters("sda", tmp_path) == {}  # an NVMe disk with several paths


def test_a_drbd_device_also_counts_the_replicated_bytes(tmp_path: Path) -> None:
    for name in ("drbd0", "drbd1", "sda"):
        (tmp_path / "block" / name).mkdir(parents=True)
        (tmp_path / "block" / name / "stat").write_text("1 0 8 1 2 0 16 1 0 3 3\n")
    # The format of DRBD 8.4.11.
    (tmp_path / "drbd").write_text(
        "version: 8.4.11 (api:1/proto:86-101)\nsrcversion: F73C670A7EC572DB9CF3E5B \n"
        " 0: cs:Connected ro:Primary/Secondary ds:UpToDate/UpToDate C r-----\n"
        "    ns:336 nr:0 dw:266621 dr:348 al:11 bm:0 lo:0 pe:0 ua:0 ap:0 ep:1 wo:f oos:0\n"
        "10: cs:Connected ro:Secondary/Secondary ds:UpToDate/UpToDate C r-----\n"
        "    ns:7 nr:0 dw:0 dr:0 al:0 bm:0 lo:0 pe:0 ua:0 ap:0 ep:1 wo:f oos:0\n"
    )
    assert device_counters("drbd0", tmp_path, tmp_path)["data.replicated_bytes"] == 336 * 1024
    for other in ("drbd1", "sda"):
        assert "data.replicated_bytes" not in device_counters(other, tmp_path, tmp_path)
