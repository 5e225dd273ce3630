"""Loop devices of a lab. Each has a file system and an optional limit of I/O operations per second."""

from __future__ import annotations

import fcntl
import os
import struct
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.base.files import open_kept
from strakes.base.units import format_bytes
from strakes.lab.cgroup import Group, device_group, hierarchy_of, limit_iops
from strakes.lab.kind import Lab, OptionsT
from strakes.lab.network import make_network
from strakes.lab.packages import table
from strakes.lab.process import complaint, run
from strakes.lab.site import LabSite

_COMMAND_S = 30.0
_DETACH_S = 10.0
_BLOCK_DEVICES = Path("/sys/block")
_LOOP_GET_STATUS64, _LOOP_INFO64_BYTES = 0x4C05, 232  # From linux/loop.h.


@dataclass(frozen=True)
class Device:
    """A block device. ``iops``: maximum reads, and also maximum writes, of ``group`` per second.

    ``lower``: major:minor of the loop device to which the limit applies.
    """

    path: Path
    lower: str
    iops: int = 0
    group: Group | None = None

    def slow_down(self, server: int = 0) -> None:
        """Apply the IOPS limit, if there is one. ``server``: id of the process to limit."""
        if self.iops and self.group:
            if server:
                self.group.join(server)
            limit_iops(self.lower, self.iops, self.group)


def require_space(directory: Path, wanted: int, option: str) -> None:
    """Raise BadInputError if fewer than ``wanted`` bytes are free. ``option``: option that sets the size."""
    place = directory
    while not place.exists():
        place = place.parent
    sizes = os.statvfs(place)
    free = sizes.f_bavail * sizes.f_frsize
    if wanted > free:
        why = f"the lab needs {format_bytes(wanted)}, but only {format_bytes(free)} are free"
        remedy = f"Give a smaller {option}, or choose another directory for labs: XDG_STATE_HOME=DIR"
        what = "there is not enough free space for this lab"
        raise BadInputError(what, where=str(directory), why=why, remedy=remedy)


def make_file(path: Path, size: int) -> Path:
    """Make a sparse file of ``size`` bytes, and return its path."""
    with os.fdopen(open_kept(path, os.O_WRONLY | os.O_CREAT), "wb") as file:
        file.truncate(0)
        file.truncate(size)
    return path


def attach(site: LabSite, file: Path, iops: int, group: Group | None) -> Device:
    """Attach a loop device to ``file``. With ``iops``, stack a second device on it, whose statistics show queueing."""
    path = _attach(site, file)
    number = os.stat(path).st_rdev
    lower = f"{os.major(number)}:{os.minor(number)}"
    return Device(_attach(site, path) if iops else path, lower, iops, group)


def mount_device(site: LabSite, device: Device, file_system: str, where: Path) -> None:
    """Make an empty file system of type ``file_system`` on a device, and mount it at ``where``."""
    where.mkdir(parents=True, exist_ok=True)
    site.run(f"mkfs.{file_system}", "-q", device.path)
    site.run("mount", "-t", file_system, "-o", "nosuid,nodev", device.path, where)


def loops_below(directory: Path) -> tuple[str, ...]:
    """Return the names of the loop devices on files in a directory. Devices on top of others come first."""
    backing = _backing_files()
    lower = [loop for loop, file in backing.items() if file.startswith(f"{directory}/") and _is_on(loop, file)]
    upper = [loop for loop, file in backing.items() if file.removeprefix("/dev/") in lower]
    return tuple(sorted(upper) + sorted(lower))


def release_limits(directory: Path) -> None:
    """Remove the IOPS limits of a lab's devices, so that pending requests end. Only for cgroup version 1."""
    root = hierarchy_of("blkio")
    if root is None or root.version != 1:
        return
    for loop in loops_below(directory):
        with suppress(OSError):
            limit_iops(Path(f"/sys/block/{loop}/dev").read_text().strip(), 0, root)


def detach_below(directory: Path) -> tuple[str, ...]:
    """Detach the loop devices of a lab. Return the devices that are still in use after 10 s."""
    deadline = time.monotonic() + _DETACH_S
    while (loops := loops_below(directory)) and time.monotonic() < deadline:
        for loop in loops:
            _detach(loop)
        # The kernel detaches a busy loop device only when its last user closes it, so check again.
        time.sleep(0.05)
    return loops


def _attach(site: LabSite, file: Path) -> Path:
    # Direct I/O bypasses the page cache of the file, so that the IOPS limit applies to reads.
    for extra in (["--direct-io=on"], []):
        done = run(["losetup", "--find", "--show", *extra, str(file)], limit_s=_COMMAND_S, lab_id=site.id)
        if done.status == 0:
            return Path(done.stdout.strip())
        for loop, backing in _backing_files().items():
            if backing == str(file) and _is_on(loop, backing):
                _detach(loop)
    remedy = "Loop devices need root and the kernel's loop driver. A container needs access to loop devices."
    what = f"{site.name} cannot be started: no loop device"
    raise EnvironmentLacksError(what, where=str(file), why=complaint(done), remedy=remedy)


def require_sys() -> None:
    """Raise EnvironmentLacksError if /sys is not mounted, because the loop devices of a lab are then not found."""
    if not _BLOCK_DEVICES.is_dir():
        why, remedy = "without it, the devices of a lab cannot be found", "Mount /sys: mount -t sysfs sysfs /sys"
        raise EnvironmentLacksError("/sys is not mounted", where=str(_BLOCK_DEVICES), why=why, remedy=remedy)


def _backing_files() -> dict[str, str]:
    files = {}
    require_sys()
    for loop in _BLOCK_DEVICES.glob("loop*"):
        with suppress(OSError):
            files[loop.name] = (loop / "loop/backing_file").read_text().strip().removesuffix(" (deleted)")
    return files


def _is_on(loop: str, file: str) -> bool:
    with suppress(OSError), open(f"/dev/{loop}", "rb") as device:
        info = fcntl.ioctl(device, _LOOP_GET_STATUS64, bytes(_LOOP_INFO64_BYTES))
        directory = os.stat(os.path.dirname(file))
        inode = os.stat(file).st_ino if os.path.exists(file) else None
        own_device, own_inode = struct.unpack_from("=QQ", info)
        return own_device == directory.st_dev and inode in (None, own_inode)
    return False


def _detach(loop: str) -> None:
    run(["losetup", "--detach", f"/dev/{loop}"], limit_s=_COMMAND_S)


PACKAGES = table("xfsprogs mkfs.xfs, mount losetup, iproute2 ip")


class BrickLab(Lab[OptionsT]):
    """A lab of servers in a private network. Each server has a device with XFS, which GlusterFS calls a brick.

    ``_inside``: prefix of a command that runs in this network.
    """

    _inside: tuple[str, ...]
    _bricks: Mapping[int, tuple[Device, Path]]

    def _make_bricks(self, what: str, number: int, size: int, slow: Mapping[int, int]) -> None:
        site = self.site
        self._inside = make_network(site)
        site.step(f"{number} device(s)")
        site.make_directory(what)
        bricks = {}
        for brick in range(1, number + 1):
            group = device_group(site.id, f"{what}.{brick}") if brick in slow else None
            device = attach(site, make_file(site.directory / what / f"{brick}.image", size), slow.get(brick, 0), group)
            bricks[brick] = device, site.directory / what / str(brick)
            mount_device(site, device, "xfs", bricks[brick][1])
        self._bricks = bricks

    def facts(self) -> Mapping[str, Any]:
        devices = {str(number): str(device.path) for number, (device, _) in self._bricks.items()}
        return {"devices": devices, "commands": {"client": self._inside}}
