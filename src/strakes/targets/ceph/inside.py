"""A directory on a CephFS mount as libcephfs, which needs no mount, finds the same one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from strakes.errors import BadInputError
from strakes.targets.calls import mount_of
from strakes.targets.ceph.access import Access, access_of
from strakes.targets.mountinfo import Mount


@dataclass(frozen=True)
class Inside:
    """``directory``: path from the root of the Ceph file system. ``environment``: cluster settings for libcephfs."""

    directory: PurePosixPath
    environment: Mapping[str, str]


def inside(directory: Path) -> Inside:
    """Return how the mount is reached. Raises BadInputError for a directory that is not on a CephFS mount."""
    mount = mount_of(directory)
    if mount.file_system != "ceph" and mount.file_system not in ("fuse.ceph-fuse", "fuse.ceph"):
        raise BadInputError(
            "the backend cephfs needs a directory of a Ceph file system",
            where=str(directory),
            why=f"{mount.mount_point} is {mount.file_system}",
            remedy="Mount the Ceph file system, so that strakes can make and mark its directory. The load itself "
            "does not use the mount.",
        )
    return Inside(_path_inside(mount, directory.resolve()), _environment(access_of(mount)))


def _path_inside(mount: Mount, directory: Path) -> PurePosixPath:
    """Return it: the kernel's client names the mounted directory after the monitors.

    ``a,b:/DIR``, ``user@fsid.fs=/DIR``; ceph-fuse has the root.

    >>> kernel = Mount(1, 0, 0, 1, "/", "/mnt", (), "ceph", "10.0.0.1:6789,10.0.0.2:6789:/home", ())
    >>> _path_inside(kernel, Path("/mnt/a/b"))
    PurePosixPath('/home/a/b')
    """
    top = "/" + mount.source.partition(":/")[2] if mount.file_system == "ceph" and ":/" in mount.source else "/"
    if mount.file_system == "ceph" and "=/" in mount.source:
        top = "/" + mount.source.partition("=/")[2]
    return PurePosixPath(top) / mount.root.lstrip("/") / directory.relative_to(mount.mount_point).as_posix()


def _environment(access: Access) -> dict[str, str]:
    """Return what the mount was given, unless the user says otherwise.

    >>> _environment(Access(("--conf", "/c", "--id", "me")))["CEPH_ARGS"]
    '--id me'
    """
    options = dict(zip(access.options[::2], access.options[1::2], strict=True))
    given = {
        "CEPH_CONF": options.pop("--conf", ""),
        "CEPH_ARGS": " ".join(f"{option} {value}" for option, value in options.items()),
    }
    if access.file_system:
        given["CEPH_ARGS"] = f"{given['CEPH_ARGS']} --client-fs {access.file_system}".strip()
    return {name: value for name, value in given.items() if value and name not in os.environ}
