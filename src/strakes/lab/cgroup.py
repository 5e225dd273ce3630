"""Control groups of a lab. They limit how much the lab's servers use processors and devices.

In cgroup version 1, a device limit applies to all processes. In version 2, it applies to the processes of one group.
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
_NAMES_V2 = {"cpu": "cpu", "blkio": "io"}
# Period of processor quotas in microseconds. The lowest limit of a lab (5 %) is 1 ms, the kernel's minimum quota.
_PERIOD_US = 20_000
_PATIENCE_S = 5.0


@dataclass(frozen=True)
class Group:
    """A control group. ``version``: version of the kernel's cgroup interface, 1 or 2."""

    path: Path
    version: int

    def join(self, pid: int) -> None:
        write_kernel_file(self.path / "cgroup.procs", str(pid))


def hierarchy_of(controller: str) -> Group | None:
    """Return the root group of a controller ("cpu" or "blkio"), or None if there is none or it is not writable."""
    for mount in read_mounts():
        root = Path(mount.mount_point)
        if not mount.file_system.startswith("cgroup") or not os.access(root, os.W_OK):
            continue
        if mount.file_system == "cgroup" and controller in mount.super_options:
            return Group(root, 1)
        with suppress(OSError):
            if _NAMES_V2[controller] in (root / "cgroup.controllers").read_text().split():
                return Group(root, 2)
    return None


def require(controller: str, wanted: str) -> Group:
    """Return the root group of a controller, which the option ``wanted`` needs, or raise EnvironmentLacksError."""
    hierarchy = hierarchy_of(controller)
    if hierarchy is None or os.geteuid() != 0:
        why = "this needs root" if hierarchy else f"no control group with the controller {controller} is writable"
        remedy = f"Run strakes as root on the machine itself, not in a container, or leave out {wanted}."
        raise EnvironmentLacksError(f"{wanted} is not possible on this machine", why=why, remedy=remedy)
    return hierarchy


def make_group(controller: str, lab_id: str, role: str) -> Group:
    """Make a control group for a server of a lab. Raises EnvironmentLacksError if the kernel refuses the group."""
    hierarchy = require(controller, f"a control group for {role}")
    path = hierarchy.path / f"{_PREFIX}-{lab_id}.{role}"
    try:
        if hierarchy.version == 2:
            write_kernel_file(hierarchy.path / "cgroup.subtree_control", f"+{_NAMES_V2[controller]}")
        path.mkdir(exist_ok=True)
    except OSError as error:
        what, why = "the control group cannot be made", error.strerror or ""
        raise EnvironmentLacksError(what, where=str(path), why=why) from error
    return Group(path, hierarchy.version)


def device_group(lab_id: str, role: str) -> Group:
    """Return the group that a device limit affects: the server's own, or the root group in cgroup version 1."""
    hierarchy = require("blkio", f"a slow device for {role}")
    return hierarchy if hierarchy.version == 1 else make_group("blkio", lab_id, role)


def limit_cpu(group: Group, percent: int) -> None:
    """Limit all processes of a control group together to ``percent`` of one processor."""
    quota = _PERIOD_US * percent // 100
    if group.version == 2:
        write_kernel_file(group.path / "cpu.max", f"{quota} {_PERIOD_US}")
        return
    write_kernel_file(group.path / "cpu.cfs_period_us", str(_PERIOD_US))
    write_kernel_file(group.path / "cpu.cfs_quota_us", str(quota))


def limit_iops(device: str, operations: int, group: Group) -> None:
    """Limit a control group to ``operations`` reads, and as many writes, per second on a device (major:minor)."""
    if group.version == 2:
        write_kernel_file(group.path / "io.max", f"{device} riops={operations} wiops={operations}")
        return
    # In cgroup version 1, the limit includes journal writes and write-back by the kernel.
    for direction in ("read", "write"):
        write_kernel_file(group.path / f"blkio.throttle.{direction}_iops_device", f"{device} {operations}")


def groups_of(lab_id: str) -> tuple[Path, ...]:
    """Return the paths of a lab's control groups."""
    roots = {root.path for controller in _NAMES_V2 if (root := hierarchy_of(controller))}
    return tuple(path for root in sorted(roots) for path in sorted(root.glob(f"{_PREFIX}-{lab_id}.*")))


def release_groups(lab_id: str) -> None:
    """Remove all limits of a lab's control groups, so that its processes can end."""
    for group in groups_of(lab_id):
        for name, unlimited in (("cpu.cfs_quota_us", "-1"), ("cpu.max", "max")):
            with suppress(OSError):
                write_kernel_file(group / name, unlimited)
        with suppress(OSError):
            for line in (group / "io.max").read_text().splitlines():
                write_kernel_file(group / "io.max", f"{line.split()[0]} riops=max wiops=max")


def remove_groups(lab_id: str) -> tuple[str, ...]:
    """Remove a lab's control groups after its processes have ended. Return a text for each remaining group."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        left = []
        for group in groups_of(lab_id):
            try:
                group.rmdir()
            except OSError as error:
                left.append(f"{group}: {error.strerror}")
        # Try again, because the kernel removes a dead process from its control group after a short delay.
        if not left or time.monotonic() > deadline:
            return tuple(left)
        time.sleep(0.02)
