"""Find and remove mounts at and below a directory, without accessing the mounted file systems."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import time
from contextlib import suppress
from pathlib import Path

from strakes.base.errors import MeasurementError
from strakes.lab.process import complaint, run
from strakes.targets import calls
from strakes.targets.mountinfo import Mount, read_mounts

# Flags of umount2(2).
_MNT_FORCE, _MNT_DETACH, _UMOUNT_NOFOLLOW = 1, 2, 8
_UNMOUNT_S = 10.0


def mounts_below(directory: Path) -> tuple[Mount, ...]:
    """Return the mounts at and below a directory, in the order of mounting."""
    return tuple(mount for mount in read_mounts() if f"{mount.mount_point}/".startswith(f"{directory}/"))


def mounted_at(path: Path) -> Mount | None:
    """Return the topmost mount at a path, or None if nothing is mounted there."""
    mounts = [mount for mount in read_mounts() if mount.mount_point == str(path)]
    return mounts[-1] if mounts else None


def space_of(path: Path) -> calls.Sizes | None:
    """Return the total and free space of the file system at a path, or None if it does not answer."""
    try:
        return calls.Sizes.of(*calls.call("sizes", str(path)))
    except (MeasurementError, OSError):
        return None


def networks_below(directory: Path) -> frozenset[int]:
    """Return the inode numbers of network namespaces that are mounted below a directory."""
    # In mountinfo, the root of a mounted network namespace looks like net:[4026532000].
    kept = (re.fullmatch(r"net:\[(\d+)\]", mount.root) for mount in mounts_below(directory))
    return frozenset(int(match[1]) for match in kept if match)


def unmount(mount: Mount, *, detach: bool, patience_s: float = 2.0) -> str:
    """Unmount a file system. Return the reason of a failure, or "". ``detach``: unmount it even if it is in use.

    For a block device, also remove the mount point. Do not use umount(8), which accesses the file system and may hang.
    """
    if os.geteuid() != 0 and mount.file_system.startswith("fuse"):
        for program in ("fusermount3", "fusermount"):
            done = run([program, "-u", "-z", mount.mount_point], limit_s=_UNMOUNT_S)
            if done.status == 0:
                return ""
        return complaint(done)
    libc = ctypes.CDLL(None, use_errno=True)
    deadline = time.monotonic() + patience_s
    while True:
        # MNT_FORCE aborts system calls that wait for a dead server.
        flags = _UMOUNT_NOFOLLOW | (_MNT_DETACH | _MNT_FORCE if detach else 0)
        if libc.umount2(os.fsencode(mount.mount_point), flags) == 0:
            if mount.source.startswith("/dev/"):
                with suppress(OSError):
                    os.rmdir(mount.mount_point)  # Removal of a mount point unmounts it in all mount namespaces.
            return ""
        number = ctypes.get_errno()
        if number in (errno.EINVAL, errno.ENOENT):
            return ""
        if number != errno.EBUSY or time.monotonic() > deadline:
            return os.strerror(number)
        time.sleep(0.05)
