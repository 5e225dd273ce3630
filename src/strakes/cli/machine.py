"""What the kernel, its limits and the installed tools allow, as checks for ``strakes doctor``."""

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

from strakes.units import GIB, format_bytes

State = Literal["ok", "limited", "missing"]


@dataclass(frozen=True)
class Check:
    """One thing looked at. ``required``: without it strakes cannot work; ``remedy``: how to get it."""

    name: str
    state: State
    detail: str
    remedy: str = ""
    required: bool = False


# System calls newer than 424 have one number on every architecture.
_IO_URING_SETUP = 425
_CACHESTAT = 451

_SENSIBLE_OPEN_FILES = 4096
_SENSIBLE_PROCESSES = 1024
_SENSIBLE_MEMORY = 2 * GIB

_TOOLS = {
    "fio": "to compare with: apt install fio, dnf install fio, zypper install fio",
    "ior": "to compare with: spack install ior, or a build from its sources (github.com/hpc/ior)",
    "mdtest": "to compare with: comes with ior",
    "lfs": "Lustre's client tools: lustre-client, from your file system's vendor",
    "ceph": "Ceph's tools: apt install ceph-common, dnf install ceph-common",
    "mpiexec": "several nodes: the site's MPI module, or pip install mpich",
    "srun": "jobs: the site's Slurm client",
}


def kernel() -> list[Check]:
    """The kernel's release and the calls that make measurements better."""
    release = platform.release()
    return [
        Check("kernel", "ok", f"{platform.system()} {release} {platform.machine()}"),
        _cachestat(),
        _io_uring(),
        tmpfs_direct_io(release),
    ]


def tmpfs_direct_io(release: str) -> Check:
    """tmpfs takes O_DIRECT from Linux 6.6.

    >>> tmpfs_direct_io("6.1.0-13-amd64").state, tmpfs_direct_io("6.18.3").state
    ('limited', 'ok')
    """
    match = re.match(r"(\d+)\.(\d+)", release)
    if match and (int(match[1]), int(match[2])) >= (6, 6):
        return Check("O_DIRECT on tmpfs", "ok", "taken since Linux 6.6")
    return Check("O_DIRECT on tmpfs", "limited", "not taken before Linux 6.6", "Reads on tmpfs cannot be cross-checked without the cache.")


def limits() -> list[Check]:
    """Memory, open files and processes."""
    available = _memory_available()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    processes = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    return [
        _limit(
            "memory available",
            available,
            _SENSIBLE_MEMORY,
            format_bytes(available),
            "Studies that must outgrow the page cache need little else.",
        ),
        _limit("open files", files, _SENSIBLE_OPEN_FILES, _count(files), f"ulimit -n {_SENSIBLE_OPEN_FILES}"),
        _limit("processes", processes, _SENSIBLE_PROCESSES, _count(processes), f"ulimit -u {_SENSIBLE_PROCESSES}"),
    ]


def tools() -> list[Check]:
    """Programs strakes can use where they are, and never needs."""
    checks = []
    for name, remedy in _TOOLS.items():
        path = shutil.which(name)
        checks.append(Check(name, "ok", path) if path else Check(name, "missing", "not found", remedy))
    return checks


def _limit(name: str, value: int, sensible: int, detail: str, remedy: str) -> Check:
    if value == resource.RLIM_INFINITY or value >= sensible:
        return Check(name, "ok", detail)
    return Check(name, "limited", detail, remedy)


def _count(value: int) -> str:
    return "unlimited" if value == resource.RLIM_INFINITY else f"{value:,}"


def _cachestat() -> Check:
    # No such descriptor: a kernel that knows the call says EBADF before anything else.
    if _errno_of(_CACHESTAT, -1, None, None, 0) == errno.EBADF:
        return Check("cachestat", "ok", "tells how much of a file is in the page cache")
    return Check("cachestat", "limited", "not in this kernel", "Linux 6.5 has it; before, mincore is used, which sees less.")


def _io_uring() -> Check:
    # Zero entries are invalid: a kernel that allows the call says EINVAL.
    why = _errno_of(_IO_URING_SETUP, 0, None)
    if why in (errno.EINVAL, errno.EFAULT):
        return Check("io_uring", "ok", "allowed")
    reason = "not in this kernel" if why == errno.ENOSYS else "forbidden here"
    return Check("io_uring", "limited", reason, "sysctl kernel.io_uring_disabled=0 allows it; in a container its seccomp profile decides.")


def _errno_of(number: int, *arguments: int | None) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    wide = [ctypes.c_long(argument) if argument is not None else ctypes.c_void_p(None) for argument in arguments]
    return ctypes.get_errno() if libc.syscall(ctypes.c_long(number), *wide) < 0 else 0


def _memory_available() -> int:
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
