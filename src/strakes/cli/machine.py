"""Checks of the kernel, limits and tools of this machine, for ``strakes doctor``."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import resource
import shutil
from dataclasses import dataclass
from typing import Literal

from strakes.base.units import GIB, format_bytes

State = Literal["ok", "limited", "missing"]


@dataclass(frozen=True)
class MachineCheck:
    """Result of one check. ``required``: strakes cannot work without it. ``remedy``: how to get it."""

    name: str
    state: State
    detail: str
    remedy: str = ""
    required: bool = False


# System calls newer than 424 have one number on every architecture.
_IO_URING_SETUP = 425  # syscalls(2) of the manual
_CACHESTAT = 451  # syscalls(2) of the manual

_ENOUGH_OPEN_FILES = 4096
_ENOUGH_PROCESSES = 1024
_ENOUGH_MEMORY_BYTES = 2 * GIB

_TOOLS = {
    "lfs": "Lustre needs the package lustre-client of your file system's vendor",
    "ceph": "For CephFS: apt install ceph-common, or dnf install ceph-common",
    "srun": "Batch jobs need the Slurm client of your site",
}


def kernel() -> list[MachineCheck]:
    """Check the kernel's release, cachestat, io_uring and O_DIRECT on tmpfs."""
    release = platform.release()
    return [
        MachineCheck("kernel", "ok", f"{platform.system()} {release} {platform.machine()}"),
        _cachestat(),
        _io_uring(),
        tmpfs_direct_io(release),
    ]


def tmpfs_direct_io(release: str) -> MachineCheck:
    """Check whether tmpfs supports O_DIRECT: it does since Linux 6.6.

    >>> tmpfs_direct_io("6.1.0-13-amd64").state, tmpfs_direct_io("6.18.3").state
    ('limited', 'ok')
    """
    match = re.match(r"(\d+)\.(\d+)", release)
    if match and (int(match[1]), int(match[2])) >= (6, 6):
        return MachineCheck("O_DIRECT on tmpfs", "ok", "supported since Linux 6.6")
    return MachineCheck(
        "O_DIRECT on tmpfs",
        "limited",
        "not supported before Linux 6.6",
        "Reads on tmpfs cannot be cross-checked without the cache.",
    )


def limits() -> list[MachineCheck]:
    """Check memory, open files and processes."""
    available = _memory_available()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    processes = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    return [
        _limit(
            "memory available",
            available,
            _ENOUGH_MEMORY_BYTES,
            format_bytes(available),
            "Studies whose data must exceed the page cache measure less.",
        ),
        _limit("open files", files, _ENOUGH_OPEN_FILES, _count(files), f"ulimit -n {_ENOUGH_OPEN_FILES}"),
        _limit("processes", processes, _ENOUGH_PROCESSES, _count(processes), f"ulimit -u {_ENOUGH_PROCESSES}"),
    ]


def tools() -> list[MachineCheck]:
    """Check the programs that strakes can use but does not need."""
    checks = []
    for name, remedy in _TOOLS.items():
        path = shutil.which(name)
        checks.append(MachineCheck(name, "ok", path) if path else MachineCheck(name, "missing", "not found", remedy))
    return checks


def _limit(name: str, value: int, sensible: int, detail: str, remedy: str) -> MachineCheck:
    if value == resource.RLIM_INFINITY or value >= sensible:
        return MachineCheck(name, "ok", detail)
    return MachineCheck(name, "limited", detail, remedy)


def _count(value: int) -> str:
    return "unlimited" if value == resource.RLIM_INFINITY else f"{value:,}"


def _cachestat() -> MachineCheck:
    # A kernel with this call fails with EBADF for an invalid descriptor.
    if _errno_of(_CACHESTAT, -1, None, None, 0) == errno.EBADF:
        return MachineCheck("cachestat", "ok", "shows how much of a file is in the page cache")
    return MachineCheck(
        "cachestat",
        "limited",
        "not in this kernel",
        "Linux 6.5 and later have it; strakes uses mincore instead, which sees less.",
    )


def _io_uring() -> MachineCheck:
    # A kernel that allows this call fails with EINVAL for zero entries.
    why = _errno_of(_IO_URING_SETUP, 0, None)
    if why in (errno.EINVAL, errno.EFAULT):
        return MachineCheck("io_uring", "ok", "allowed")
    reason = "not in this kernel" if why == errno.ENOSYS else "not allowed here"
    return MachineCheck(
        "io_uring",
        "limited",
        reason,
        "Allow it with sysctl kernel.io_uring_disabled=0; in a container, also in its seccomp profile.",
    )


def _errno_of(number: int, *arguments: int | None) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    wide = [ctypes.c_long(argument) if argument is not None else ctypes.c_void_p(None) for argument in arguments]
    return ctypes.get_errno() if libc.syscall(ctypes.c_long(number), *wide) < 0 else 0


def _memory_available() -> int:
    from strakes.base.memory import memory_sizes

    return memory_sizes().get("MemAvailable", os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
