"""The supported file systems, and detection of a directory's file system."""

from __future__ import annotations

import os
from pathlib import Path

from strakes.targets.calls import UnansweredError, mount_of, require_directory
from strakes.targets.ceph_target import CephTarget
from strakes.targets.command import Servers
from strakes.targets.gluster import GlusterTarget
from strakes.targets.local import LocalTarget
from strakes.targets.lustre_target import LustreTarget
from strakes.targets.moosefs import MooseFsTarget
from strakes.targets.mountinfo import Mount, find_mount, read_mounts
from strakes.targets.nfs import NfsTarget
from strakes.targets.remote import BeeGfsTarget, GpfsTarget, StorNextTarget
from strakes.targets.target import Target

# The first class that claims the mount is used. LocalTarget claims all mounts, so it must be last.
TARGETS: tuple[type[Target], ...] = (
    LustreTarget,
    CephTarget,
    GlusterTarget,
    MooseFsTarget,
    BeeGfsTarget,
    GpfsTarget,
    StorNextTarget,
    NfsTarget,
    LocalTarget,
)


def detect(path: Path, servers: Servers | None = None) -> Target:
    """Return the target of a directory. ``servers``: template for commands on its servers.

    Raises BadInputError if the directory does not exist, UnansweredError (with the servers) if servers do not answer.
    """
    try:
        directory = require_directory(path)
        mount = mount_of(directory)
    except UnansweredError as error:
        raise error.naming(detect_by_name(path, servers).trouble()) from error
    return target_of_mount(directory, mount, servers)


def detect_by_name(path: Path, servers: Servers | None = None) -> Target:
    """Return the target of a path by the names of mounts, without querying a server."""
    name = os.path.abspath(path)
    return target_of_mount(Path(name), find_mount(read_mounts(), name), servers)


def target_of_mount(directory: Path, mount: Mount, servers: Servers | None = None) -> Target:
    """Return the target of a mount, without checking that the directory exists."""
    chosen = next(target for target in TARGETS if target.claims(mount))
    return chosen(directory, mount, servers=servers)
