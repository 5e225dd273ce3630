"""Storage of file systems that keep their data in others: an XFS for each server, of a given size, slow on request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from strakes.errors import BadInputError
from strakes.lab.cgroup import Group, device_group, require
from strakes.lab.device import Device, attach, make_file, mount_device, require_space
from strakes.lab.packages import Package
from strakes.lab.site import LabSite

PACKAGES = (Package("xfsprogs", "mkfs.xfs"), Package("mount", "losetup"), Package("iproute2", "ip"))


@dataclass(frozen=True)
class Brick:
    """One server's storage: an empty XFS at ``path``; ``join`` are the control groups its server must be in."""

    path: Path
    device: Device
    group: Group | None
    join: tuple[Path, ...]

    def slow_down(self) -> None:
        """Put on the limit, where there is one."""
        self.device.slow_down(self.group)


def check_bricks(directory: Path, number: int, size: int, slow: Mapping[int, int], option: str) -> None:
    """Raise BadInputError for slow ones that are not there (``option`` names them) and for more than fits."""
    for brick in slow:
        if not 1 <= brick <= number:
            raise BadInputError(f"{option} {brick} is not possible", why=f"they are 1 to {number}")
    if slow:
        require("blkio", option)
    require_space(directory, number * size, "--size")


def make_bricks(site: LabSite, what: str, number: int, size: int, slow: Mapping[int, int]) -> dict[int, Brick]:
    """Make them: number (from 1) -> brick, in ``directory/what/number``."""
    site.step(f"{number} device(s)")
    site.make_directory(what)
    bricks = {}
    for brick in range(1, number + 1):
        image = make_file(site.directory / what / f"{brick}.image", size)
        device = attach(site, image, slow.get(brick, 0))
        path = site.directory / what / str(brick)
        mount_device(site, device, "xfs", path)
        group, procs = device_group(site.id, f"{what}.{brick}") if brick in slow else (None, None)
        bricks[brick] = Brick(path, device, group, (procs,) if procs else ())
    return bricks
