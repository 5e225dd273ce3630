"""Control groups that make servers slow on purpose: a share of a processor, operations a second on a device.

Version 1 (a hierarchy for each controller) and version 2 (one for all) differ in what they can slow: with version 1
a device is throttled in the root group, for everybody; with version 2 only for the processes of a group.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from strakes.errors import EnvironmentLacksError
from strakes.files import write_kernel_file
from strakes.targets.mountinfo import read_mounts

_PREFIX = "strakes-lab"
# Short periods, so that a server with a small share is slow rather than stopped for long; no quota may be below 1 ms.
_PERIOD_US = 20_000
_LEAST_QUOTA_US = 1_000
_PATIENCE_S = 5.0


@dataclass(frozen=True)
class Hierarchy:
    """Where a controller is."""

    root: Path
    version: int


@dataclass(frozen=True)
class Group:
    """A group of one lab; ``procs`` is where a process joins it."""

    path: Path
    version: int

    @property
    def procs(self) -> Path:
        """Return the file that a process joins by."""
        return self.path / "cgroup.procs"


def hierarchy_of(controller: str) -> Hierarchy | None:
    """Where "cpu" or "blkio" (version 2 calls that "io") is controlled, None when nowhere here."""
    for mount in read_mounts():
        root = Path(mount.mount_point)
        if mount.file_system == "cgroup" and controller in mount.super_options and os.access(root, os.W_OK):
            return Hierarchy(root, 1)
        if mount.file_system == "cgroup2" and os.access(root, os.W_OK):
            with suppress(OSError):
                name = "io" if controller == "blkio" else controller
                if name in (root / "cgroup.controllers").read_text().split():
                    return Hierarchy(root, 2)
    return None


def require(controller: str, wanted: str) -> Hierarchy:
    """Raise EnvironmentLacksError when ``wanted`` (an option) cannot be had."""
    hierarchy = hierarchy_of(controller)
    if hierarchy is None or os.geteuid() != 0:
        why = "only root may" if hierarchy else f"there is no writable control group with the controller {controller}"
        raise EnvironmentLacksError(
            f"{wanted} is not possible here",
            why=why,
            remedy=f"Run strakes as root on the machine itself, not in a container, or leave out {wanted}.",
        )
    return hierarchy


def make_group(controller: str, lab_id: str, role: str) -> Group:
    """Make a group for one server of a lab."""
    hierarchy = require(controller, f"a control group for {role}")
    path = hierarchy.root / f"{_PREFIX}-{lab_id}.{role}"
    try:
        if hierarchy.version == 2:
            name = "io" if controller == "blkio" else controller
            write_kernel_file(hierarchy.root / "cgroup.subtree_control", f"+{name}")
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise EnvironmentLacksError(
            "no control group can be made", where=str(path), why=error.strerror or ""
        ) from error
    return Group(path, hierarchy.version)


def device_group(lab_id: str, role: str) -> tuple[Group | None, Path]:
    """Return the group to limit for a slow device (None: root group, with version 1), and where its server joins."""
    hierarchy = require("blkio", f"a slow device for {role}")
    if hierarchy.version == 1:
        return None, hierarchy.root / "cgroup.procs"
    group = make_group("blkio", lab_id, role)
    return group, group.procs


def limit_cpu(group: Group, percent: int) -> None:
    """All processes of the group together may use ``percent`` of one processor."""
    quota = max(_LEAST_QUOTA_US, _PERIOD_US * percent // 100)
    period = max(_PERIOD_US, quota * 100 // percent)
    if group.version == 2:
        write_kernel_file(group.path / "cpu.max", f"{quota} {period}")
        return
    write_kernel_file(group.path / "cpu.cfs_period_us", str(period))
    write_kernel_file(group.path / "cpu.cfs_quota_us", str(quota))


def limit_iops(device: str, operations: int, group: Group | None) -> None:
    """Limit reads and writes a second of ``device`` (major:minor; 0: any): of the group with version 2, else of all."""
    if group is not None and group.version == 2:
        limit = operations or "max"
        write_kernel_file(group.path / "io.max", f"{device} riops={limit} wiops={limit}")
        return
    hierarchy = hierarchy_of("blkio")
    if hierarchy is None or hierarchy.version != 1:
        return
    # Not in a group of its own: there the journal and the write-back of others would pass by.
    for direction in ("read", "write"):
        write_kernel_file(hierarchy.root / f"blkio.throttle.{direction}_iops_device", f"{device} {operations}")


def throttled_devices() -> dict[str, int]:
    """Return what is limited in the root group of version 1: major:minor -> writes a second."""
    hierarchy = hierarchy_of("blkio")
    if hierarchy is None or hierarchy.version != 1:
        return {}
    lines = (hierarchy.root / "blkio.throttle.write_iops_device").read_text().splitlines()
    return {line.split()[0]: int(line.split()[1]) for line in lines if line.strip()}


def groups_of(lab_id: str) -> tuple[Path, ...]:
    """Every group of a lab."""
    roots = {hierarchy.root for controller in ("cpu", "blkio") if (hierarchy := hierarchy_of(controller))}
    return tuple(path for root in sorted(roots) for path in sorted(root.glob(f"{_PREFIX}-{lab_id}.*")))


def release_groups(lab_id: str) -> None:
    """Lift every limit of a lab's groups: what is to end ends sooner."""
    for group in groups_of(lab_id):
        with suppress(OSError):
            write_kernel_file(group / "cpu.cfs_quota_us", "-1")
        with suppress(OSError):
            write_kernel_file(group / "cpu.max", "max")
        with suppress(OSError):
            for line in (group / "io.max").read_text().splitlines():
                write_kernel_file(group / "io.max", f"{line.split()[0]} riops=max wiops=max")


def remove_groups(lab_id: str) -> tuple[str, ...]:
    """After its processes have gone. Returns what could not be removed."""
    left = []
    deadline = time.monotonic() + _PATIENCE_S
    for group in groups_of(lab_id):
        while True:
            try:
                group.rmdir()
            except FileNotFoundError:
                break
            except OSError as error:
                # The last process leaves its group a little after it has died.
                if time.monotonic() < deadline:
                    time.sleep(0.02)
                    continue
                left.append(f"{group}: {error.strerror}")
            break
    return tuple(left)
