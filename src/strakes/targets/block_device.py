"""The local block device of a file system, from sysfs."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from strakes.targets.mountinfo import Mount

_SECTOR_BYTES = 512  # unit of sizes in sysfs, independent of the device's sectors


@dataclass(frozen=True)
class BlockDevice:
    """A block device. ``name``: of the disk, also for a partition. ``backing_file``: only for loop devices.

    ``raid``: level of a software RAID (raid5, ...). ``members``: devices below a RAID or a volume of LVM.
    """

    name: str
    total_bytes: int
    rotational: bool
    scheduler: str
    logical_block_bytes: int
    read_ahead_bytes: int
    write_cache: str
    backing_file: str
    raid: str = ""
    members: tuple[str, ...] = ()


def block_device_of(mount: Mount, sysfs: Path = Path("/sys")) -> BlockDevice | None:
    """Return the device of a mount, or None if it has no local one (tmpfs, network, FUSE)."""
    number = f"{mount.major}:{mount.minor}"
    if mount.major == 0 and mount.source.startswith("/dev/"):
        # btrfs and other multi-device file systems have an anonymous device number; their source is one of the devices.
        with suppress(OSError):
            device = os.stat(mount.source).st_rdev
            number = f"{os.major(device)}:{os.minor(device)}"
    directory = sysfs / "dev" / "block" / number
    if not directory.is_dir():
        return None
    # A partition's queue is its disk's.
    disk = directory.resolve().parent if (directory / "partition").exists() else directory.resolve()
    # The selected scheduler is in brackets.
    scheduler = _read(disk / "queue" / "scheduler")
    return BlockDevice(
        name=disk.name,
        total_bytes=int(_read(directory / "size") or 0) * _SECTOR_BYTES,
        rotational=_read(disk / "queue" / "rotational") == "1",
        scheduler=scheduler.partition("[")[2].partition("]")[0] or scheduler,
        logical_block_bytes=int(_read(disk / "queue" / "logical_block_size") or _SECTOR_BYTES),
        read_ahead_bytes=int(_read(disk / "queue" / "read_ahead_kb") or 0) * 1024,
        write_cache=_read(disk / "queue" / "write_cache"),
        backing_file=_read(disk / "loop" / "backing_file"),
        raid=_read(disk / "md" / "level"),
        members=tuple(sorted(member.name for member in (disk / "slaves").glob("*"))),
    )


def device_counters(name: str, sysfs: Path = Path("/sys"), proc: Path = Path("/proc")) -> dict[str, float]:
    """Return the counters of a disk for all its users, empty if the kernel has none (Documentation/block/stat.rst).

    ``data.busy_s``: time with at least one request in flight. ``data.replicated_bytes``: bytes that a device of DRBD
    8.4 has sent to its peer.
    """
    fields = [float(word) for word in _read(sysfs / "block" / name / "stat").split()]
    if len(fields) < 10:
        return {}
    # ``ns`` in /proc/drbd is in KiB. DRBD 9 has no such file.
    minor = re.escape(name.removeprefix("drbd"))
    sent = re.search(rf"^ *{minor}: cs:.*\n *ns:(\d+) ", _read(proc / "drbd"), re.MULTILINE)
    return {
        "data.read_requests": fields[0],
        "data.read_bytes": fields[2] * _SECTOR_BYTES,
        "data.write_requests": fields[4],
        "data.write_bytes": fields[6] * _SECTOR_BYTES,
        "data.busy_s": fields[9] / 1000,
        **({"data.replicated_bytes": float(sent[1]) * 1024} if sent else {}),
    }


def _read(path: Path) -> str:
    """Return the text of a sysfs file, or "" if the kernel has no such file or no value for it."""
    try:
        return os.fsdecode(path.read_bytes()).strip()
    except OSError:
        return ""
