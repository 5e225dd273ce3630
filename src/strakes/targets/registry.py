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
from strakes.targets.mountinfo import Mount
from strakes.targets.nfs import NfsTarget
from strakes.targets.target import Target

# The first class that claims the mount is used. LocalTarget claims all mounts, so it must be last.
TARGETS: tuple[type[Target], ...] = (
    LustreTarget,
    CephTarget,
    GlusterTarget,
    MooseFsTarget,
    NfsTarget,
    LocalTarget,
)


def detect(path: Path, servers: Servers | None = None) -> Target:
    """Return the target of a directory. ``servers``: template for commands on its servers.

    Raises BadInputError if the directory does not exist, UnansweredError (with the servers) if servers do not answer.
    """
    try:
        directory = require_directory(path)
    except UnansweredError as error:
        raise detect_unanswering(path, servers).named(error) from None
    return target_of_mount(directory, mount_of(directory), servers)


def detect_unanswering(path: Path, servers: Servers | None = None) -> Target:
    """Return the target of a directory whose file system has just been found not to answer."""
    absolute = Path(os.path.abspath(path))
    return target_of_mount(absolute, mount_of(absolute), servers)


def target_of_mount(directory: Path, mount: Mount, servers: Servers | None = None) -> Target:
    """Return the target of a mount, without checking that the directory exists."""
    chosen = next(target for target in TARGETS if target.claims(mount))
    return chosen(directory, mount, servers=servers)
