"""The supported file systems, and detection of a directory's file system."""

from __future__ import annotations

import os
import re
from importlib import import_module
from pathlib import Path

from strakes.targets.calls import UnansweredError, find_directory, mount_of
from strakes.targets.command import Servers
from strakes.targets.local import LocalTarget
from strakes.targets.mountinfo import Mount
from strakes.targets.target import Target

# File system type (pattern) -> module and class. LocalTarget handles all other mounts, and FUSE mounts of other users,
# whose server names cannot be trusted.
TARGETS = {
    r"lustre": ("lustre_target", "LustreTarget"),
    r"ceph|fuse\.ceph(-fuse)?": ("ceph_target", "CephTarget"),
    r"fuse\.glusterfs": ("gluster", "GlusterTarget"),
    r"fuse(\.mfs|\.mfsmount)?": ("moosefs", "MooseFsTarget"),
    r"nfs4?": ("nfs", "NfsTarget"),
}


def detect(path: Path, servers: Servers | None = None) -> Target:
    """Return the Target for the file system of a directory. ``servers``: template for commands on its servers.

    Raises BadInputError if the directory does not exist, and UnansweredError if its file system does not answer.
    """
    try:
        directory, mount = find_directory(path)
    except UnansweredError as error:
        raise detect_unanswering(path, servers).named(error) from None
    return target_of_mount(directory, mount, servers)


def detect_unanswering(path: Path, servers: Servers | None = None) -> Target:
    """Return the Target of a directory without access to the directory, because its file system does not answer."""
    absolute = Path(os.path.abspath(path))
    return target_of_mount(absolute, mount_of(absolute), servers)


def target_of_mount(directory: Path, mount: Mount, servers: Servers | None = None) -> Target:
    """Return the Target of a mount, without checking that the directory exists."""
    for pattern, (module, name) in TARGETS.items():
        if re.fullmatch(pattern, mount.file_system) and not mount.of_another_user:
            kind: type[Target] = getattr(import_module(f"strakes.targets.{module}"), name)
            if kind.claims(mount):
                return kind(directory, mount, servers=servers)
    return LocalTarget(directory, mount, servers=servers)
