"""Storage of file systems that keep their data in other ones: an XFS of its own for each server; every one has a size, and may be slow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from strakes.errors import BadInputError
from strakes.lab.cgroup import Group, device_group, require
from strakes.lab.device import Device, attach, make_file, mount_device, require_space
from strakes.lab.packages import Package
from strakes.lab.site import Site

PACKAGES = (Package("xfsprogs", "mkfs.xfs"), Package("mount", "losetup"), Package("iproute2", "ip"))


@dataclass(frozen=True)
class Brick:
    """One server's storage: an empty XFS at ``path``; ``join`` are the control groups its server must be in."""

    path: Path
    device: Device
    group: Group | None
    join: tuple[Path, ...]

    def slow_down(self) -> None:
        self.device.slow_down(self.group)


def check_bricks(directory: Path, number: int, size: int, slow: Mapping[int, int], option: str) -> None:
    """Raises BadInputError for slow ones that are not there (``option`` names them) and for more than fits."""
    for one in slow:
        if not 1 <= one <= number:
            raise BadInputError(f"{option} {one} is not possible", why=f"they are 1 to {number}")
    if slow:
        require("blkio", option)
    require_space(directory, number * size, "--size")


def make_bricks(site: Site, what: str, number: int, size: int, slow: Mapping[int, int]) -> dict[int, Brick]:
    """Number (from 1) -> brick, in ``directory/what/number``."""
    site.step(f"{number} device(s)")
    site.make_directory(what)
    bricks = {}
    for one in range(1, number + 1):
        image = make_file(site.directory / what / f"{one}.image", size)
        device = attach(site, image, slow.get(one, 0))
        path = site.directory / what / str(one)
        mount_device(site, device, "xfs", path)
        group, procs = device_group(site.id, f"{what}.{one}") if one in slow else (None, None)
        bricks[one] = Brick(path, device, group, (procs,) if procs else ())
    return bricks
