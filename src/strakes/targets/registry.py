"""Which file systems strakes knows, and which of them a directory is on."""

from __future__ import annotations

from pathlib import Path

from strakes.targets.base import Target
from strakes.targets.ceph.target import CephTarget
from strakes.targets.command import Servers
from strakes.targets.directory import require_directory
from strakes.targets.local import LocalTarget
from strakes.targets.lustre.target import LustreTarget
from strakes.targets.mountinfo import mount_of

# The first that claims the mount; LocalTarget takes any and stays last.
TARGETS: tuple[type[Target], ...] = (LustreTarget, CephTarget, LocalTarget)


def detect(path: Path, servers: Servers | None = None) -> Target:
    """The target under a directory, with its servers reached by ``servers``. Raises BadInputError when there is no such directory.

    >>> detect(Path("/proc")).facts().file_system
    'proc'
    """
    directory = require_directory(path)
    mount = mount_of(directory)
    chosen = next(target for target in TARGETS if target.claims(mount))
    return chosen(directory, mount, servers=servers)
