"""Labs with a local file system: XFS or ext4 on a loop device, or tmpfs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from strakes.base.errors import EnvironmentLacksError
from strakes.lab.cgroup import require
from strakes.lab.device import Device, attach, make_file, mount_device, require_space
from strakes.lab.kind import Lab
from strakes.lab.options import LabOptions, option
from strakes.lab.packages import Package


@dataclass(frozen=True)
class DiskOptions(LabOptions):
    """Options of labs on a loop device."""

    size: int = option("size", "Size of the file system.", "2GiB", least="320MiB")  # mkfs.xfs needs at least 300 MiB.
    iops: int | None = option(
        "count", "Limit the device to N reads and N writes per second.", least=10, most=1_000_000, metavar="N"
    )


class DiskLab(Lab[DiskOptions]):
    """A local file system on a loop device, whose backing file is in the lab's directory."""

    options_type = DiskOptions
    file_system: ClassVar[str]
    _device: Device

    @classmethod
    def check(cls, options: DiskOptions, directory: Path) -> None:
        require_space(directory, options.size, "--size")
        if options.iops and require("blkio", "--iops").version != 1:
            why = "control groups of version 2 can slow a device only for selected processes, not for all users"
            remedy = "Use strakes lab up ceph --slow-osd or gluster --slow-brick instead."
            raise EnvironmentLacksError("--iops is not possible on this machine", why=why, remedy=remedy)

    def up(self) -> None:
        self.site.step(f"{self.file_system} on a loop device")
        image = make_file(self.site.directory / "image", self.options.size)
        iops = self.options.iops
        self._device = attach(self.site, image, iops or 0, require("blkio", "--iops") if iops else None)
        mount_device(self.site, self._device, self.file_system, self.site.mount_point)

    def slow_down(self) -> None:
        self._device.slow_down()

    def facts(self) -> Mapping[str, Any]:
        return {"device": str(self._device.path)}


class XfsLab(DiskLab):
    """XFS on a loop device."""

    file_system = "xfs"
    packages = (Package("xfsprogs", "mkfs.xfs"), Package("mount", "losetup"))


class Ext4Lab(DiskLab):
    """ext4 on a loop device."""

    file_system = "ext4"
    packages = (Package("e2fsprogs", "mkfs.ext4"), Package("mount", "losetup"))


@dataclass(frozen=True)
class TmpfsOptions(LabOptions):
    """Options of ``lab up tmpfs``."""

    size: int = option("size", "Largest amount of memory for files.", "1GiB", least="1MiB")


class TmpfsLab(Lab[TmpfsOptions]):
    """A tmpfs, whose files are in memory."""

    options_type = TmpfsOptions
    packages = (Package("mount", "mount"),)

    def up(self) -> None:
        self.site.step("tmpfs")
        self.site.mount_memory(self.options.size)
