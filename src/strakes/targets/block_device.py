"""The local block device of a file system, from sysfs."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from strakes.targets.mountinfo import Mount, find_mount, read_mounts

_SECTOR_BYTES = 512  # sysfs counts all sizes in sectors of 512 bytes, whatever the sector size of the device.


@dataclass(frozen=True)
class BlockDevice:
    """A block device of this machine. ``name``: name of the whole disk, even for a partition.

    ``backing_file``: file behind a loop device. ``members``: devices that form a RAID or an LVM volume. ``no_journal``:
    whether the device has an ext4 file system without a journal.
    """

    name: str
    total_bytes: int
    rotational: bool
    scheduler: str
    read_ahead_bytes: int
    write_cache: str
    backing_file: str
    raid: str = ""
    members: tuple[str, ...] = ()
    backing_file_system: str = ""
    no_journal: bool = False


def block_device_of(mount: Mount, sysfs: Path = Path("/sys"), proc: Path = Path("/proc")) -> BlockDevice | None:
    """Return the block device of a mount, or None if it has none (tmpfs, network, FUSE, ZFS) or several (btrfs)."""
    number = f"{mount.major}:{mount.minor}"
    if mount.major == 0 and mount.source.startswith("/dev/") and not mount.of_another_user:
        # btrfs has an anonymous device number, so use the mounted device's number.
        with suppress(OSError):
            device = os.stat(mount.source).st_rdev
            number = f"{os.major(device)}:{os.minor(device)}"
    directory = sysfs / "dev" / "block" / number
    of_btrfs = (sysfs / "fs/btrfs").glob(f"*/devices/{directory.resolve().name}")
    if not directory.is_dir() or any(len(list(device.parent.iterdir())) > 1 for device in of_btrfs):
        return None
    # In sysfs, a disk has a directory ``queue``; a partition has none.
    disk = directory.resolve().parent if (directory / "partition").exists() else directory.resolve()
    # sysfs lists all schedulers, with the active one in brackets: mq-deadline [none].
    scheduler = kernel_text(disk / "queue" / "scheduler")
    file = kernel_text(disk / "loop" / "backing_file")
    return BlockDevice(
        name=disk.name,
        total_bytes=int(kernel_text(directory / "size") or 0) * _SECTOR_BYTES,
        rotational=kernel_text(disk / "queue" / "rotational") == "1",
        scheduler=scheduler.partition("[")[2].partition("]")[0] or scheduler,
        read_ahead_bytes=int(kernel_text(disk / "queue" / "read_ahead_kb") or 0) * 1024,
        write_cache=kernel_text(disk / "queue" / "write_cache"),
        backing_file=file,
        raid=kernel_text(disk / "md" / "level"),
        members=tuple(sorted(member.name for member in (disk / "slaves").glob("*"))),
        backing_file_system="" if not file or file.startswith("/dev/") else find_mount(read_mounts(), file).file_system,
        # An ext4 file system on sda1 has the directory ext4/sda1 in /proc/fs, and its journal has jbd2/sda1-8.
        no_journal=(proc / "fs/ext4" / directory.resolve().name).is_dir()
        and not any((proc / "fs/jbd2").glob(f"{directory.resolve().name}-*")),
    )


def device_counters(name: str, sysfs: Path = Path("/sys"), proc: Path = Path("/proc")) -> dict[str, float]:
    """Return the I/O counters of a disk (Documentation/block/stat.rst), or {} if the kernel does not count its I/O.

    ``data.busy_s``: time with at least one request in flight. ``data.replicated_bytes``: bytes that a DRBD 8.4
    device has sent to its peer. The counters include the I/O of all processes on the machine.
    """
    fields = [float(word) for word in kernel_text(sysfs / "block" / name / "stat").split()]
    # Older kernels do not count the I/O of NVMe disks with several paths. With iostats 0, counters keep their values.
    if len(fields) < 10 or not any(fields) or kernel_text(sysfs / "block" / name / "queue/iostats") == "0":
        return {}
    # ``ns`` (network send) in /proc/drbd is in KiB. DRBD 9 does not list devices there.
    minor = re.escape(name.removeprefix("drbd"))
    sent = re.search(rf"^ *{minor}: cs:.*\n *ns:(\d+) ", kernel_text(proc / "drbd"), re.MULTILINE)
    return {
        "data.read_requests": fields[0],
        "data.read_bytes": fields[2] * _SECTOR_BYTES,
        "data.write_requests": fields[4],
        "data.write_bytes": fields[6] * _SECTOR_BYTES,
        "data.busy_s": fields[9] / 1000,
        **({"data.replicated_bytes": float(sent[1]) * 1024} if sent else {}),
    }


def kernel_text(path: Path) -> str:
    """Return the text of a file in /proc or /sys, or "" if the file does not exist or cannot be read."""
    try:
        return os.fsdecode(path.read_bytes()).strip()
    except OSError:
        return ""
