"""Control groups that limit servers: a share of a processor, or operations per second of a device.

Version 1 (a hierarchy for each controller) throttles a device in the root group, for all processes; version 2 (one
hierarchy) throttles it for the processes of a group only.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from strakes.base.errors import EnvironmentLacksError
from strakes.base.files import write_kernel_file
from strakes.targets.mountinfo import read_mounts

_PREFIX = "strakes-lab"
# Short periods, so that a server with a small share is slow rather than stopped for long; no quota may be below 1 ms.
_PERIOD_US = 20_000
_LEAST_QUOTA_US = 1_000
_PATIENCE_S = 5.0


@dataclass(frozen=True)
class Hierarchy:
    """The root of a controller's hierarchy, and its version."""

    root: Path
    version: int


@dataclass(frozen=True)
class Group:
    """A group of one lab; ``procs`` is where a process joins it."""

    path: Path
    version: int

    @property
    def procs(self) -> Path:
        return self.path / "cgroup.procs"


def hierarchy_of(controller: str) -> Hierarchy | None:
    """Return the hierarchy of "cpu" or "blkio" ("io" in version 2), or None if this machine has none."""
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
    """Return the hierarchy. Raises EnvironmentLacksError naming the option ``wanted`` if it is missing."""
    hierarchy = hierarchy_of(controller)
    if hierarchy is None or os.geteuid() != 0:
        why = "only root may" if hierarchy else f"no control group with the controller {controller} is writable"
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
    # The root group also covers the journal and the write-back of other processes.
    for direction in ("read", "write"):
        write_kernel_file(hierarchy.root / f"blkio.throttle.{direction}_iops_device", f"{device} {operations}")


def throttled_devices() -> dict[str, int]:
    """Return the limits in the root group of version 1: major:minor -> writes per second."""
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
    """Lift every limit of a lab's groups, so that its processes end sooner."""
    for group in groups_of(lab_id):
        with suppress(OSError):
            write_kernel_file(group / "cpu.cfs_quota_us", "-1")
        with suppress(OSError):
            write_kernel_file(group / "cpu.max", "max")
        with suppress(OSError):
            for line in (group / "io.max").read_text().splitlines():
                write_kernel_file(group / "io.max", f"{line.split()[0]} riops=max wiops=max")


def remove_groups(lab_id: str) -> tuple[str, ...]:
    """Remove the groups of a lab whose processes have ended; return the failures."""
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
