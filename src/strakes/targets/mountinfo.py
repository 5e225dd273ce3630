"""Mounts, from /proc/self/mountinfo (format: proc_pid_mountinfo(5))."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from strakes.base.errors import EnvironmentLacksError
from strakes.base.foreign_text import source_without_secrets, without_secrets

_OCTAL = re.compile(r"\\([0-7]{3})")

# fmt: off
_REMOTE = frozenset({
    "9p", "afs", "beegfs", "beegfs_nodev", "ceph", "cifs", "coda", "cvfs", "davfs", "gfs2", "glusterfs", "gpfs",
    "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "pvfs2", "smb3", "smbfs", "snfs", "virtiofs", "wekafs",
})
# fmt: on
_REMOTE_FUSE = frozenset(
    {"ceph", "ceph-fuse", "glusterfs", "juicefs", "mfs", "moosefs", "s3fs", "saunafs", "seaweedfs", "sshfs"}
)
# File system types whose clients choose inode numbers. Clients of other FUSE types may also choose them.
_OWN_INODES = frozenset({"cifs", "davfs", "smb3", "smbfs"})
_FUSE_WITH_INODES = frozenset({"ceph", "ceph-fuse", "glusterfs", "juicefs", "mfs", "moosefs", "saunafs"})
# Source of a network mount: "server:/export", "server:9421", "//server/share" or "mfs#server".
_REMOTE_SOURCE = re.compile(r"//[^/]+/|[^/]+:(/|\d+$)|mfs#")

# Name of the file on which the network namespace of a lab is mounted, next to the lab's mount point.
LAB_NETWORK = "network"


@dataclass(frozen=True)
class Mount:
    """A mount. ``root``: mounted directory of the file system, "/" except for bind mounts and subvolumes."""

    mount_id: int
    major: int
    minor: int
    root: str
    mount_point: str
    options: tuple[str, ...]
    file_system: str
    source: str
    super_options: tuple[str, ...]

    @property
    def all_options(self) -> tuple[str, ...]:
        """The distinct options of the mount and of the file system."""
        return tuple(dict.fromkeys((*self.options, *self.super_options)))

    @property
    def of_another_user(self) -> bool:
        """Whether another user made this FUSE mount. The user has chosen the source, and the type after "fuse."."""
        users = [match[1] for option in self.all_options if (match := re.fullmatch(r"user_id=(\d+)", option))]
        return self.file_system.startswith("fuse") and any(int(user) not in (0, os.geteuid()) for user in users)

    @property
    def has_same_inodes(self) -> bool:
        """Whether a file has the same inode number on all nodes."""
        if self.file_system.startswith("fuse"):
            return self.file_system.removeprefix("fuse.") in _FUSE_WITH_INODES
        return self.file_system not in _OWN_INODES

    @property
    def remote(self) -> bool:
        if self.file_system in _REMOTE:
            return True
        if not self.file_system.startswith("fuse"):
            return False
        return self.file_system.removeprefix("fuse.") in _REMOTE_FUSE or _REMOTE_SOURCE.match(self.source) is not None


def parse_mountinfo(text: str) -> tuple[Mount, ...]:
    """Parse a text in the format of mountinfo. Return its mounts in order."""
    return tuple(_parse_line(line) for line in text.split("\n") if line)


def _parse_line(line: str) -> Mount:
    # The number of optional fields varies, so search for the separator "-" after them.
    fields = line.split(" ")
    dash = fields.index("-", 6)
    major, minor = fields[2].split(":")
    super_options = fields[dash + 3] if len(fields) > dash + 3 else ""
    return Mount(
        *(int(fields[0]), int(major), int(minor)),
        root=unescape(fields[3]),
        mount_point=unescape(fields[4]),
        options=tuple(unescape(fields[5]).split(",")),
        file_system=unescape(fields[dash + 1]),
        source=source_without_secrets(unescape(fields[dash + 2])),
        super_options=tuple(without_secrets(each) for each in unescape(super_options).split(",") if each),
    )


def unescape(field: str) -> str:
    r"""Return a field of mountinfo with its octal escapes (\040 for a space) replaced by characters."""
    return _OCTAL.sub(lambda match: chr(int(match.group(1), 8)), field)


def find_mount(mounts: Sequence[Mount], path: str) -> Mount:
    """Return the mount that contains an absolute path without links. Raises EnvironmentLacksError if none does."""
    inside = [mount for mount in mounts if f"{path}/".startswith(f"{mount.mount_point.rstrip('/')}/")]
    if not inside:
        what = "the mount of the directory is not visible to this process"
        why = "the root of its chroot is no mount point"
        raise EnvironmentLacksError(what, where=path, why=why, remedy="Before the chroot, run: mount --bind ROOT ROOT")
    return max(reversed(inside), key=lambda mount: len(mount.mount_point))


def read_mounts() -> tuple[Mount, ...]:
    """Return the mounts of this process."""
    try:
        return mounts_of("self")
    except FileNotFoundError as error:
        raise no_proc() from error


def mounts_of(process: str) -> tuple[Mount, ...]:
    """Return the mounts of a process id. Names that are not UTF-8 get surrogate escapes.

    Mount points may contain carriage returns, so mountinfo is read in binary mode.
    """
    return parse_mountinfo(os.fsdecode(Path(f"/proc/{process}/mountinfo").read_bytes()))


def no_proc() -> EnvironmentLacksError:
    """Return the exception for a missing /proc."""
    why, remedy = "strakes needs the lists of mounts and processes in /proc", "Mount /proc: mount -t proc proc /proc"
    return EnvironmentLacksError("/proc is not mounted", why=why, remedy=remedy)


# File system type -> cache that the kernel does not report.
_CACHES = {
    "gpfs": "the page pool of its client",
    "zfs": "its cache (ARC)",
    **dict.fromkeys(("afs", "cvfs", "snfs", "wekafs"), "the cache of its client"),
    **dict.fromkeys(("beegfs", "beegfs_nodev"), "the buffers of its client (tuneFileCacheType)"),
}


def own_cache(file_system: str, io: object = None) -> str:
    """Return a description of a cache other than the page cache that may serve reads of kind ``io``, or ""."""
    if io == "direct" and file_system != "zfs":  # ZFS serves direct reads from its cache, too (zfsprops(7), direct).
        return ""
    return _CACHES.get(file_system, "the cache of its client, a program" if "fuse" in file_system else "")
