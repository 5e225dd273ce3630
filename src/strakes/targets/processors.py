"""Processor time of servers on this machine, by the CPU-time clock of each process (clock_getcpuclockid(3)).

Linux has this clock for the processes of all users, and reading it takes no file and no request.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from strakes.targets.mountinfo import read_mounts

# MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED) of the kernel's posix-timers.h: in nanoseconds, all threads together.
_SCHEDULED_BITS = 2


@dataclass(frozen=True)
class ServerProcess:
    """A server on this machine. ``processors``: the number it may use. ``group``: the control group that limits it."""

    pid: int
    processors: float
    group: Path | None = None


@dataclass(frozen=True)
class ProcessorUse:
    """``used_s``: processor time of a server. ``periods``: of its quota. ``used_up``: periods with exhausted quota."""

    used_s: float
    periods: int = 0
    used_up: int = 0


def server_process(pid: int, most: float) -> ServerProcess:
    """Return a process with its processor limit: the least of ``most``, its affinity and its control groups' quotas.

    Raises OSError if the process does not exist.

    >>> 0 < server_process(os.getpid(), 1.0).processors <= 1
    True
    """
    allowed, limited_by = min(most, float(len(os.sched_getaffinity(pid)))), None
    for group in _groups(pid):
        for path in (group, *group.parents):
            quota = _quota(path)
            if quota is not None and quota < allowed:
                allowed, limited_by = quota, path
    return ServerProcess(pid, allowed, limited_by)


def processor_use(process: ServerProcess) -> ProcessorUse | None:
    """Return the process's cumulative use, or None if it has ended.

    >>> processor_use(ServerProcess(os.getpid(), 1.0)).used_s > 0
    True
    """
    try:
        used_s = time.clock_gettime((~process.pid << 3) | _SCHEDULED_BITS)
        if process.group is None:
            return ProcessorUse(used_s)
        words = (process.group / "cpu.stat").read_text().split()
        counted = dict(zip(words[::2], map(int, words[1::2]), strict=True))
        return ProcessorUse(used_s, counted["nr_periods"], counted["nr_throttled"])
    except (OSError, ValueError, KeyError):
        return None


def _groups(pid: int) -> list[Path]:
    """Return the control groups that limit the processors of a process, in hierarchies of version 1 and 2."""
    lines = Path(f"/proc/{pid}/cgroup").read_text(encoding="ascii", errors="replace").splitlines()
    ours = {controllers: path for _, controllers, path in (line.split(":", 2) for line in lines)}
    groups = []
    for mount in read_mounts():
        for controllers, path in ours.items():
            first = mount.file_system == "cgroup" and "cpu" in controllers.split(",") and "cpu" in mount.super_options
            if first or (mount.file_system == "cgroup2" and not controllers):
                groups.append(Path(mount.mount_point) / path.lstrip("/"))
    return groups


def _quota(group: Path) -> float | None:
    """Return the number of processors that a control group may use, or None without a limit."""
    for files in (("cpu.cfs_quota_us", "cpu.cfs_period_us"), ("cpu.max",)):
        with suppress(OSError, ValueError):
            quota, period = " ".join((group / file).read_text() for file in files).split()
            if int(quota) > 0:
                return int(quota) / int(period)
    return None
