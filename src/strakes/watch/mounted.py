"""Detects that the file system of a directory was unmounted, which exposes the one below it."""

from __future__ import annotations

import os
from pathlib import Path

from strakes.targets.mountinfo import Mount, find_mount, read_mounts


class Mounted:
    """The mount point of a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = os.path.abspath(directory)
        self._mount_point = self._now().mount_point

    def why_not(self) -> str:
        """Return why the file system is another one; empty if it is the same or will be mounted on access."""
        mount = self._now()
        if len(mount.mount_point) >= len(self._mount_point):
            self._mount_point = mount.mount_point
        elif mount.file_system != "autofs":
            return f"nothing is mounted on {self._mount_point} any more"
        return ""

    @property
    def remote(self) -> bool:
        """Return whether the file system is remote."""
        return self._now().remote

    def _now(self) -> Mount:
        return find_mount(read_mounts(), self._directory)
